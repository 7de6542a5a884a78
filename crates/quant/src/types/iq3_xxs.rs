//! IQ3_XXS: 256 values as vectors of four magnitudes out of a list of 256, with signs; each 32
//! have a four-bit scale. value = (d * (scale + 1/2) / 2) * signed magnitude.

use bytemuck::{Pod, Zeroable};

use super::codebook::{self, Ladder};
use super::grids::IQ3_XXS;
use super::stepped::Stepped;
use crate::block::{QuantType, describe_integer};
use crate::half_bits::Half;

/// 256 values in 98 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Iq3Xxs {
    /// The unit of the scales.
    pub d: Half,
    /// The number of each vector.
    pub qs: [u8; 64],
    /// Little-endian, for each 32 values: the signs of each eight (seven bits) and the scale
    /// (the upper four).
    pub signs_and_scales: [[u8; 4]; 8],
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Iq3Xxs>();
const _: () = assert!(size_of::<Iq3Xxs>() == 98);

/// The steps: half of half a unit, and half a unit more for each scale.
const LADDER: Ladder = Ladder {
    unit: 0.25,
    k_max: 15,
    level_max: 62.0,
};

impl Stepped for Iq3Xxs {
    const ID: u32 = 18;
    const NAME: &'static str = "IQ3_XXS";
    const ELEMS: usize = 256;

    fn codes(&self, sub_block_idx: usize) -> [i8; 32] {
        let signs = u32::from_le_bytes(self.signs_and_scales[sub_block_idx]);
        codebook::signed(
            |v| &IQ3_XXS[usize::from(self.qs[sub_block_idx * 8 + v])],
            |eight| codebook::even_signs(signs >> (7 * eight)),
        )
    }

    fn unit(&self) -> f32 {
        self.d.to_f32() * LADDER.unit
    }

    fn multiples(&self, sub_block_idx: usize) -> [i32; 2] {
        let bits = u32::from_le_bytes(self.signs_and_scales[sub_block_idx]);
        [codebook::odd((bits >> 28) as u8); 2]
    }

    fn quantize(values: &[f32]) -> Self {
        let d = LADDER.d(values);
        let mut block = Self {
            d,
            qs: [0; 64],
            signs_and_scales: [[0; 4]; 8],
        };
        for (s, values) in values.chunks_exact(32).enumerate() {
            let scale = LADDER.multiple(values, d);
            let step = LADDER.step(d, scale);
            let mut bits = u32::from(scale) << 28;
            for (eight, values) in values.chunks_exact(8).enumerate() {
                bits |= u32::from(codebook::even_signs_of(values) & 127) << (7 * eight);
            }
            block.signs_and_scales[s] = bits.to_le_bytes();
            for (v, values) in values.as_chunks::<4>().0.iter().enumerate() {
                let vector = codebook::nearest(&IQ3_XXS, values.map(f32::abs), step);
                block.qs[s * 8 + v] = vector as u8;
            }
        }
        block
    }
}
