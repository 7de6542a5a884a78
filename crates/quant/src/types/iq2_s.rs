//! IQ2_S: 256 values as vectors of eight magnitudes out of a list of 1024, with signs; each 16
//! have a four-bit scale. value = (d * (scale + 1/2) / 4) * signed magnitude.

use bytemuck::{Pod, Zeroable};

use super::codebook::{self, IQ2_LADDER};
use super::grids::IQ2_S;
use super::stepped::Stepped;
use crate::block::{QuantType, describe_integer};
use crate::half_bits::Half;

/// 256 values in 82 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Iq2S {
    /// The unit of the scales.
    pub d: Half,
    /// The lower eight bits of the number of each vector.
    pub qs: [u8; 32],
    /// The signs of each vector, a bit each.
    pub signs: [u8; 32],
    /// For each 32 values: the upper two bits of the numbers of their four vectors.
    pub qh: [u8; 8],
    /// For each 32 values: the scale of the first 16 in the low nibble, of the others in the
    /// high one.
    pub scales: [u8; 8],
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Iq2S>();
const _: () = assert!(size_of::<Iq2S>() == 82);

impl Stepped for Iq2S {
    const ID: u32 = 22;
    const NAME: &'static str = "IQ2_S";
    const ELEMS: usize = 256;

    fn codes(&self, sub_block_idx: usize) -> [i8; 32] {
        let vector = |v: usize| {
            let high = (self.qh[sub_block_idx] >> (2 * v)) & 3;
            usize::from(self.qs[sub_block_idx * 4 + v]) | (usize::from(high) << 8)
        };
        codebook::signed(|v| &IQ2_S[vector(v)], |v| self.signs[sub_block_idx * 4 + v])
    }

    fn unit(&self) -> f32 {
        self.d.to_f32() * IQ2_LADDER.unit
    }

    fn multiples(&self, sub_block_idx: usize) -> [i32; 2] {
        codebook::odd_nibbles(self.scales[sub_block_idx])
    }

    fn quantize(values: &[f32]) -> Self {
        let d = IQ2_LADDER.d(values);
        let mut block = Self {
            d,
            qs: [0; 32],
            signs: [0; 32],
            qh: [0; 8],
            scales: [0; 8],
        };
        for (part, values) in values.chunks_exact(16).enumerate() {
            let scale = IQ2_LADDER.multiple(values, d);
            let step = IQ2_LADDER.step(d, scale);
            block.scales[part / 2] |= scale << (part % 2 * 4);
            for (v, values) in values.as_chunks::<8>().0.iter().enumerate() {
                let at = part * 2 + v;
                let vector = codebook::nearest(&IQ2_S, values.map(f32::abs), step);
                block.signs[at] = codebook::signs_of(values);
                block.qs[at] = vector as u8;
                block.qh[at / 4] |= ((vector >> 8) as u8) << (at % 4 * 2);
            }
        }
        block
    }
}
