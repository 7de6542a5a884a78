//! Q4_0: 32 nibbles with one scale. value = d * (nibble - 8).

use bytemuck::{Pod, Zeroable};

use super::{code, largest_signed};
use crate::activation::{ActivationBlock, code_dot};
use crate::block::{Block, IntegerBlock, QuantType, describe_integer};
use crate::half_bits::Half;

/// 32 values in 18 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Q4_0 {
    /// The value of one step.
    pub d: Half,
    /// Byte i holds value i in its low nibble and value i + 16 in its high one.
    pub qs: [u8; 16],
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Q4_0>();
const _: () = assert!(size_of::<Q4_0>() == 18);

impl Q4_0 {
    /// The codes in order, -8 to 7.
    pub fn codes(&self) -> [i8; 32] {
        std::array::from_fn(|i| {
            let byte = self.qs[i % 16];
            let nibble = if i < 16 { byte & 15 } else { byte >> 4 };
            nibble as i8 - 8
        })
    }
}

impl Block for Q4_0 {
    const ID: u32 = 2;
    const NAME: &'static str = "Q4_0";
    const ELEMS: usize = 32;

    fn dequantize(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (value, code) in out.iter_mut().zip(self.codes()) {
            *value = d * f32::from(code);
        }
    }

    fn quantize(values: &[f32]) -> Self {
        // The value of largest magnitude gets the code -8, of which there is no positive twin.
        let d = largest_signed(values) / -8.0;
        let mut block = Self {
            d: Half::from_f32(d),
            qs: [0; 16],
        };
        for (i, value) in values.iter().enumerate() {
            let nibble = (code(*value, d, -8.0, 7.0) + 8) as u8;
            block.qs[i % 16] |= if i < 16 { nibble } else { nibble << 4 };
        }
        block
    }
}

impl IntegerBlock for Q4_0 {
    /// (d * scale) * sum of code products.
    fn dot(&self, activations: &[ActivationBlock]) -> f32 {
        let a = &activations[0];
        (self.d.to_f32() * a.scale) * code_dot(&self.codes(), &a.codes) as f32
    }
}
