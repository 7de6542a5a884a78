//! Q4_K: 256 nibbles; each 32 have a six-bit scale and a six-bit offset, which
//! are multiples of two numbers of the whole block.
//! value = (d * scale) * nibble - dmin * offset.

use bytemuck::{Pod, Zeroable};

use super::scales_k::{self, Head};
use crate::activation::ActivationBlock;
use crate::block::{Block, IntegerBlock, QuantType, describe_integer};

/// 256 values in 144 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Q4K {
    /// Scales and offsets.
    pub head: Head,
    /// Each 32 bytes hold a sub-block in the low nibbles and the next one in the high ones.
    pub qs: [u8; 128],
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Q4K>();
const _: () = assert!(size_of::<Q4K>() == 144);

impl Q4K {
    /// The codes of one sub-block, 0 to 15.
    pub fn codes(&self, sub_block_idx: usize) -> [i8; 32] {
        std::array::from_fn(|i| scales_k::nibble(&self.qs, sub_block_idx, i) as i8)
    }
}

impl Block for Q4K {
    const ID: u32 = 12;
    const NAME: &'static str = "Q4_K";
    const ELEMS: usize = 256;

    fn dequantize(&self, out: &mut [f32]) {
        self.head.dequantize(|s| self.codes(s), out);
    }

    fn quantize(values: &[f32]) -> Self {
        let (head, codes) = scales_k::quantize(values, 15.0);
        let qs = scales_k::nibbles(&codes);
        Self { head, qs }
    }
}

impl IntegerBlock for Q4K {
    fn dot(&self, activations: &[ActivationBlock]) -> f32 {
        self.head.dot(|s| self.codes(s), activations)
    }
}
