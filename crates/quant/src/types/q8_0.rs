//! Q8_0: 32 signed bytes with one scale. value = d * code.

use bytemuck::{Pod, Zeroable};

use super::{code, largest_signed};
use crate::activation::{ActivationBlock, code_dot};
use crate::block::{Block, IntegerBlock, QuantType, describe_integer};
use crate::half_bits::Half;

/// 32 values in 34 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Q8_0 {
    /// The value of one step.
    pub d: Half,
    /// The codes, in order.
    pub qs: [i8; 32],
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Q8_0>();
const _: () = assert!(size_of::<Q8_0>() == 34);

impl Block for Q8_0 {
    const ID: u32 = 8;
    const NAME: &'static str = "Q8_0";
    const ELEMS: usize = 32;

    fn dequantize(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (value, code) in out.iter_mut().zip(self.qs) {
            *value = d * f32::from(code);
        }
    }

    fn quantize(values: &[f32]) -> Self {
        let d = largest_signed(values).abs() / 127.0;
        let mut block = Self {
            d: Half::from_f32(d),
            qs: [0; 32],
        };
        for (q, value) in block.qs.iter_mut().zip(values) {
            *q = code(*value, d, -127.0, 127.0);
        }
        block
    }
}

impl IntegerBlock for Q8_0 {
    /// (d * scale) * sum of code products.
    fn dot(&self, activations: &[ActivationBlock]) -> f32 {
        let a = &activations[0];
        (self.d.to_f32() * a.scale) * code_dot(&self.qs, &a.codes) as f32
    }
}
