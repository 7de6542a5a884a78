//! Q5_1: 32 five-bit codes with a scale and an offset. value = d * code + m.

use bytemuck::{Pod, Zeroable};

use super::{code, q5_0, range_with_zero};
use crate::activation::{ActivationBlock, code_dot};
use crate::block::{Block, IntegerBlock, QuantType, describe_integer};
use crate::half_bits::Half;

/// 32 values in 24 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Q5_1 {
    /// The value of one step.
    pub d: Half,
    /// The value of code 0.
    pub m: Half,
    /// The fifth bits: bit i of this little-endian number belongs to value i.
    pub qh: [u8; 4],
    /// Byte i holds value i in its low nibble and value i + 16 in its high one.
    pub qs: [u8; 16],
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Q5_1>();
const _: () = assert!(size_of::<Q5_1>() == 24);

impl Q5_1 {
    /// The codes in order, 0 to 31.
    pub fn codes(&self) -> [i8; 32] {
        q5_0::unpack(&self.qs, self.qh)
    }
}

impl Block for Q5_1 {
    const ID: u32 = 7;
    const NAME: &'static str = "Q5_1";
    const ELEMS: usize = 32;

    fn dequantize(&self, out: &mut [f32]) {
        let (d, m) = (self.d.to_f32(), self.m.to_f32());
        for (value, code) in out.iter_mut().zip(self.codes()) {
            *value = d * f32::from(code) + m;
        }
    }

    fn quantize(values: &[f32]) -> Self {
        let (low, high) = range_with_zero(values);
        let d = (high - low) / 31.0;
        let codes = std::array::from_fn(|i| code(values[i] - low, d, 0.0, 31.0) as u8);
        let (qs, qh) = q5_0::pack(&codes);
        Self {
            d: Half::from_f32(d),
            m: Half::from_f32(low),
            qh,
            qs,
        }
    }
}

impl IntegerBlock for Q5_1 {
    /// (d * scale) * sum of code products + (m * scale) * sum of activation codes.
    fn dot(&self, activations: &[ActivationBlock]) -> f32 {
        let a = &activations[0];
        let products = code_dot(&self.codes(), &a.codes) as f32;
        (self.d.to_f32() * a.scale) * products + (self.m.to_f32() * a.scale) * a.sum as f32
    }
}
