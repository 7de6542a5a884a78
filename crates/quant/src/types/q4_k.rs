//! Q4_K: 256 nibbles; each 32 have a six-bit scale and a six-bit offset, which
//! are multiples of two numbers of the whole block.
//! value = (d * scale) * nibble - dmin * offset.

use bytemuck::{Pod, Zeroable};

use super::scales_k;
use crate::activation::{ActivationBlock, code_dot};
use crate::block::{Block, IntegerBlock, QuantType, describe_integer};
use crate::half_bits::Half;

/// 256 values in 144 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Q4K {
    /// The unit of the scales.
    pub d: Half,
    /// The unit of the offsets.
    pub dmin: Half,
    /// Eight scales and eight offsets of six bits; see [`Q4K::scales_and_offsets`].
    pub scales: [u8; 12],
    /// Each 32 bytes hold a sub-block in the low nibbles and the next one in the high ones.
    pub qs: [u8; 128],
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Q4K>();
const _: () = assert!(size_of::<Q4K>() == 144);

impl Q4K {
    /// Scale and offset of each sub-block of 32, 0 to 63.
    pub fn scales_and_offsets(&self) -> ([u8; 8], [u8; 8]) {
        scales_k::unpack(&self.scales)
    }

    /// The codes of one sub-block, 0 to 15.
    pub fn codes(&self, sub_block_idx: usize) -> [i8; 32] {
        let bytes = &self.qs[sub_block_idx / 2 * 32..][..32];
        let shift = sub_block_idx % 2 * 4;
        std::array::from_fn(|i| ((bytes[i] >> shift) & 15) as i8)
    }
}

impl Block for Q4K {
    const ID: u32 = 12;
    const NAME: &'static str = "Q4_K";
    const ELEMS: usize = 256;

    fn dequantize(&self, out: &mut [f32]) {
        let (d, dmin) = (self.d.to_f32(), self.dmin.to_f32());
        let (scales, offsets) = self.scales_and_offsets();
        for (s, out) in out.chunks_exact_mut(32).enumerate() {
            let step = d * f32::from(scales[s]);
            let offset = dmin * f32::from(offsets[s]);
            for (value, code) in out.iter_mut().zip(self.codes(s)) {
                *value = step * f32::from(code) - offset;
            }
        }
    }

    fn quantize(values: &[f32]) -> Self {
        let packed = scales_k::quantize(values, 15.0);
        let mut qs = [0; 128];
        for (i, code) in packed.codes.iter().enumerate() {
            qs[i / 64 * 32 + i % 32] |= code << (i / 32 % 2 * 4);
        }
        Self {
            d: packed.d,
            dmin: packed.dmin,
            scales: packed.scales,
            qs,
        }
    }
}

impl IntegerBlock for Q4K {
    /// d * sum(act_scale * (scale * products)) - dmin * sum(act_scale * (offset * act_sum)),
    /// both sums over the eight sub-blocks in order; what is in the inner brackets
    /// is an exact integer (below 2^24, so it is exact in `f32` too).
    fn dot(&self, activations: &[ActivationBlock]) -> f32 {
        let (scales, offsets) = self.scales_and_offsets();
        let mut products = 0.0;
        let mut shifts = 0.0;
        for (s, a) in activations.iter().enumerate() {
            let scaled = i32::from(scales[s]) * code_dot(&self.codes(s), &a.codes);
            products += a.scale * scaled as f32;
            shifts += a.scale * (i32::from(offsets[s]) * a.sum) as f32;
        }
        self.d.to_f32() * products - self.dmin.to_f32() * shifts
    }
}
