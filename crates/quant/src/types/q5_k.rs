//! Q5_K: 256 five-bit codes; each 32 have a six-bit scale and a six-bit offset,
//! which are multiples of two numbers of the whole block.
//! value = (d * scale) * code - dmin * offset.

use bytemuck::{Pod, Zeroable};

use super::scales_k::{self, Head};
use crate::activation::ActivationBlock;
use crate::block::{Block, IntegerBlock, QuantType, describe_integer};

/// 256 values in 176 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Q5K {
    /// Scales and offsets.
    pub head: Head,
    /// Bit s of byte i is the fifth bit of value i of sub-block s.
    pub qh: [u8; 32],
    /// The other four bits, as in [`Q4K`](super::q4_k::Q4K).
    pub qs: [u8; 128],
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Q5K>();
const _: () = assert!(size_of::<Q5K>() == 176);

impl Q5K {
    /// The codes of one sub-block, 0 to 31.
    pub fn codes(&self, sub_block_idx: usize) -> [i8; 32] {
        std::array::from_fn(|i| {
            let fifth = (self.qh[i] >> sub_block_idx) & 1;
            (scales_k::nibble(&self.qs, sub_block_idx, i) | (fifth << 4)) as i8
        })
    }
}

impl Block for Q5K {
    const ID: u32 = 13;
    const NAME: &'static str = "Q5_K";
    const ELEMS: usize = 256;

    fn dequantize(&self, out: &mut [f32]) {
        self.head.dequantize(|s| self.codes(s), out);
    }

    fn quantize(values: &[f32]) -> Self {
        let (head, codes) = scales_k::quantize(values, 31.0);
        let mut qh = [0; 32];
        for (i, code) in codes.iter().enumerate() {
            qh[i % 32] |= (code >> 4) << (i / 32);
        }
        let qs = scales_k::nibbles(&codes);
        Self { head, qh, qs }
    }
}

impl IntegerBlock for Q5K {
    fn dot(&self, activations: &[ActivationBlock]) -> f32 {
        self.head.dot(|s| self.codes(s), activations)
    }
}
