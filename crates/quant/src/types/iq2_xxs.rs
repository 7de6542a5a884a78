//! IQ2_XXS: 256 values as vectors of eight magnitudes out of a list of 256, with signs; each 32
//! have a four-bit scale. value = (d * (scale + 1/2) / 4) * signed magnitude.

use bytemuck::{Pod, Zeroable};

use super::codebook::{self, IQ2_LADDER};
use super::grids::IQ2_XXS;
use super::stepped::Stepped;
use crate::block::{QuantType, describe_integer};
use crate::half_bits::Half;

/// 256 values in 66 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Iq2Xxs {
    /// The unit of the scales.
    pub d: Half,
    /// Eight bytes for each 32 values: four numbers of vectors, then 32 bits with the signs of
    /// each vector (seven bits) and the scale (the upper four).
    pub qs: [u8; 64],
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Iq2Xxs>();
const _: () = assert!(size_of::<Iq2Xxs>() == 66);

impl Iq2Xxs {
    /// The numbers of the vectors of a sub-block of 32, and its signs and scale.
    fn parts(&self, sub_block_idx: usize) -> ([u8; 4], u32) {
        let bytes = &self.qs[sub_block_idx * 8..][..8];
        let vectors = std::array::from_fn(|i| bytes[i]);
        (
            vectors,
            u32::from_le_bytes(std::array::from_fn(|i| bytes[4 + i])),
        )
    }
}

impl Stepped for Iq2Xxs {
    const ID: u32 = 16;
    const NAME: &'static str = "IQ2_XXS";
    const ELEMS: usize = 256;

    fn codes(&self, sub_block_idx: usize) -> [i8; 32] {
        let (vectors, signs) = self.parts(sub_block_idx);
        codebook::signed(
            |v| &IQ2_XXS[usize::from(vectors[v])],
            |v| codebook::even_signs(signs >> (7 * v)),
        )
    }

    fn unit(&self) -> f32 {
        self.d.to_f32() * IQ2_LADDER.unit
    }

    fn multiples(&self, sub_block_idx: usize) -> [i32; 2] {
        let (_, bits) = self.parts(sub_block_idx);
        [codebook::odd((bits >> 28) as u8); 2]
    }

    fn quantize(values: &[f32]) -> Self {
        let d = IQ2_LADDER.d(values);
        let mut block = Self { d, qs: [0; 64] };
        let parts = values.chunks_exact(32).zip(block.qs.chunks_exact_mut(8));
        for (values, bytes) in parts {
            let scale = IQ2_LADDER.multiple(values, d);
            let step = IQ2_LADDER.step(d, scale);
            let mut bits = u32::from(scale) << 28;
            for (v, values) in values.as_chunks::<8>().0.iter().enumerate() {
                let signs = codebook::even_signs_of(values);
                bits |= u32::from(signs & 127) << (7 * v);
                bytes[v] = codebook::nearest(&IQ2_XXS, values.map(f32::abs), step) as u8;
            }
            bytes[4..].copy_from_slice(&bits.to_le_bytes());
        }
        block
    }
}
