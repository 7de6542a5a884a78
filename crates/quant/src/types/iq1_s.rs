//! IQ1_S: 256 values as vectors of eight numbers -1, 0 and 1 out of a list of 2048; each 32
//! have a three-bit scale and are shifted by an eighth up or down.
//! value = (d * (2 * scale + 1)) * (number + 1/8 or - 1/8).

use bytemuck::{Pod, Zeroable};

use super::codebook::{self, IQ1_LADDER};
use super::grids::IQ1;
use super::stepped::Stepped;
use crate::block::{QuantType, describe_integer};
use crate::half_bits::Half;

/// 256 values in 50 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Iq1S {
    /// The unit of the scales.
    pub d: Half,
    /// The lower eight bits of the number of each vector.
    pub qs: [u8; 32],
    /// Little-endian, for each 32 values: the upper three bits of the numbers of their four
    /// vectors, the scale (bits 12 to 14), and whether the shift is down (bit 15).
    pub qh: [[u8; 2]; 8],
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Iq1S>();
const _: () = assert!(size_of::<Iq1S>() == 50);

impl Iq1S {
    fn high_bits(&self, sub_block_idx: usize) -> u16 {
        u16::from_le_bytes(self.qh[sub_block_idx])
    }
}

impl Stepped for Iq1S {
    const ID: u32 = 19;
    const NAME: &'static str = "IQ1_S";
    const ELEMS: usize = 256;

    /// In eighths, so that the shift is a whole number.
    fn codes(&self, sub_block_idx: usize) -> [i8; 32] {
        let bits = self.high_bits(sub_block_idx);
        let shift = if bits >> 15 == 0 { 1 } else { -1 };
        std::array::from_fn(|i| {
            let low = self.qs[sub_block_idx * 4 + i / 8];
            let high = (bits >> (3 * (i / 8))) & 7;
            IQ1[usize::from(low) | (usize::from(high) << 8)][i % 8] * 8 + shift
        })
    }

    /// In eighths, as the codes are; an eighth of a unit is exact.
    fn unit(&self) -> f32 {
        self.d.to_f32() * 0.125
    }

    fn multiples(&self, sub_block_idx: usize) -> [i32; 2] {
        [codebook::odd((self.high_bits(sub_block_idx) >> 12) & 7); 2]
    }

    /// Shifts up everywhere.
    fn quantize(values: &[f32]) -> Self {
        let d = IQ1_LADDER.d(values);
        let mut block = Self {
            d,
            qs: [0; 32],
            qh: [[0; 2]; 8],
        };
        for (s, values) in values.chunks_exact(32).enumerate() {
            let scale = IQ1_LADDER.multiple(values, d);
            let step = IQ1_LADDER.step(d, scale);
            let mut bits = u16::from(scale) << 12;
            for (v, values) in values.as_chunks::<8>().0.iter().enumerate() {
                let vector = codebook::nearest(&IQ1, values.map(|v| v - step / 8.0), step);
                block.qs[s * 4 + v] = vector as u8;
                bits |= ((vector >> 8) as u16) << (3 * v);
            }
            block.qh[s] = bits.to_le_bytes();
        }
        block
    }
}
