//! IQ2_XS: 256 values as vectors of eight magnitudes out of a list of 512, with signs; each 16
//! have a four-bit scale. value = (d * (scale + 1/2) / 4) * signed magnitude.

use bytemuck::{Pod, Zeroable};

use super::codebook::{self, IQ2_LADDER};
use super::grids::IQ2_XS;
use super::stepped::Stepped;
use crate::block::{QuantType, describe_integer};
use crate::half_bits::Half;

/// 256 values in 74 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Iq2Xs {
    /// The unit of the scales.
    pub d: Half,
    /// Little-endian: the number of a vector in nine bits, its signs in the upper seven.
    pub qs: [[u8; 2]; 32],
    /// For each 32 values: the scale of the first 16 in the low nibble, of the others in the
    /// high one.
    pub scales: [u8; 8],
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Iq2Xs>();
const _: () = assert!(size_of::<Iq2Xs>() == 74);

impl Stepped for Iq2Xs {
    const ID: u32 = 17;
    const NAME: &'static str = "IQ2_XS";
    const ELEMS: usize = 256;

    fn codes(&self, sub_block_idx: usize) -> [i8; 32] {
        let bits = |v: usize| u16::from_le_bytes(self.qs[sub_block_idx * 4 + v]);
        codebook::signed(
            |v| &IQ2_XS[usize::from(bits(v) & 511)],
            |v| codebook::even_signs(u32::from(bits(v) >> 9)),
        )
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
            qs: [[0; 2]; 32],
            scales: [0; 8],
        };
        for (part, values) in values.chunks_exact(16).enumerate() {
            let scale = IQ2_LADDER.multiple(values, d);
            let step = IQ2_LADDER.step(d, scale);
            block.scales[part / 2] |= scale << (part % 2 * 4);
            for (v, values) in values.as_chunks::<8>().0.iter().enumerate() {
                let signs = u16::from(codebook::even_signs_of(values) & 127);
                let vector = codebook::nearest(&IQ2_XS, values.map(f32::abs), step) as u16;
                block.qs[part * 2 + v] = (vector | (signs << 9)).to_le_bytes();
            }
        }
        block
    }
}
