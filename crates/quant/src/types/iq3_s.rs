//! IQ3_S: 256 values as vectors of four magnitudes out of a list of 512, with signs; each 32
//! have a four-bit scale. value = (d * (2 * scale + 1)) * signed magnitude.

use bytemuck::{Pod, Zeroable};

use super::codebook::{self, Ladder};
use super::grids::IQ3_S;
use super::stepped::Stepped;
use crate::block::{QuantType, describe_integer};
use crate::half_bits::Half;

/// 256 values in 110 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Iq3S {
    /// The unit of the scales.
    pub d: Half,
    /// The lower eight bits of the number of each vector.
    pub qs: [u8; 64],
    /// For each 32 values: the ninth bits of the numbers of their eight vectors.
    pub qh: [u8; 8],
    /// The signs of each eight values, a bit each.
    pub signs: [u8; 32],
    /// Two scales a byte, the first in the low nibble.
    pub scales: [u8; 4],
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Iq3S>();
const _: () = assert!(size_of::<Iq3S>() == 110);

/// The steps: one unit, and two more for each scale.
const LADDER: Ladder = Ladder {
    unit: 1.0,
    k_max: 15,
    level_max: 15.0,
};

impl Stepped for Iq3S {
    const ID: u32 = 21;
    const NAME: &'static str = "IQ3_S";
    const ELEMS: usize = 256;

    fn codes(&self, sub_block_idx: usize) -> [i8; 32] {
        let vector = |v: usize| {
            let ninth = (self.qh[sub_block_idx] >> v) & 1;
            usize::from(self.qs[sub_block_idx * 8 + v]) | (usize::from(ninth) << 8)
        };
        codebook::signed(
            |v| &IQ3_S[vector(v)],
            |eight| self.signs[sub_block_idx * 4 + eight],
        )
    }

    fn unit(&self) -> f32 {
        self.d.to_f32() * LADDER.unit
    }

    fn multiples(&self, sub_block_idx: usize) -> [i32; 2] {
        let scale = (self.scales[sub_block_idx / 2] >> (sub_block_idx % 2 * 4)) & 15;
        [codebook::odd(scale); 2]
    }

    fn quantize(values: &[f32]) -> Self {
        let d = LADDER.d(values);
        let mut block = Self {
            d,
            qs: [0; 64],
            qh: [0; 8],
            signs: [0; 32],
            scales: [0; 4],
        };
        for (s, values) in values.chunks_exact(32).enumerate() {
            let scale = LADDER.multiple(values, d);
            let step = LADDER.step(d, scale);
            block.scales[s / 2] |= scale << (s % 2 * 4);
            for (eight, values) in values.chunks_exact(8).enumerate() {
                block.signs[s * 4 + eight] = codebook::signs_of(values);
            }
            for (v, values) in values.as_chunks::<4>().0.iter().enumerate() {
                let vector = codebook::nearest(&IQ3_S, values.map(f32::abs), step);
                block.qs[s * 8 + v] = vector as u8;
                block.qh[s] |= ((vector >> 8) as u8) << v;
            }
        }
        block
    }
}
