//! Q4_1: 32 nibbles with a scale and an offset. value = d * nibble + m.

use bytemuck::{Pod, Zeroable};

use super::{code, range_with_zero};
use crate::activation::{ActivationBlock, code_dot};
use crate::block::{Block, IntegerBlock, QuantType, describe_integer};
use crate::half_bits::Half;

/// 32 values in 20 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Q4_1 {
    /// The value of one step.
    pub d: Half,
    /// The value of code 0.
    pub m: Half,
    /// Byte i holds value i in its low nibble and value i + 16 in its high one.
    pub qs: [u8; 16],
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Q4_1>();
const _: () = assert!(size_of::<Q4_1>() == 20);

impl Q4_1 {
    /// The codes in order, 0 to 15.
    pub fn codes(&self) -> [i8; 32] {
        std::array::from_fn(|i| {
            let byte = self.qs[i % 16];
            (if i < 16 { byte & 15 } else { byte >> 4 }) as i8
        })
    }
}

impl Block for Q4_1 {
    const ID: u32 = 3;
    const NAME: &'static str = "Q4_1";
    const ELEMS: usize = 32;

    fn dequantize(&self, out: &mut [f32]) {
        let (d, m) = (self.d.to_f32(), self.m.to_f32());
        for (value, code) in out.iter_mut().zip(self.codes()) {
            *value = d * f32::from(code) + m;
        }
    }

    fn quantize(values: &[f32]) -> Self {
        let (low, high) = range_with_zero(values);
        let d = (high - low) / 15.0;
        let mut block = Self {
            d: Half::from_f32(d),
            m: Half::from_f32(low),
            qs: [0; 16],
        };
        for (i, value) in values.iter().enumerate() {
            let nibble = code(value - low, d, 0.0, 15.0) as u8;
            block.qs[i % 16] |= if i < 16 { nibble } else { nibble << 4 };
        }
        block
    }
}

impl IntegerBlock for Q4_1 {
    /// (d * scale) * sum of code products + (m * scale) * sum of activation codes.
    fn dot(&self, activations: &[ActivationBlock]) -> f32 {
        let a = &activations[0];
        let products = code_dot(&self.codes(), &a.codes) as f32;
        (self.d.to_f32() * a.scale) * products + (self.m.to_f32() * a.scale) * a.sum as f32
    }
}
