//! IQ1_M: 256 values as vectors of eight numbers -1, 0 and 1 out of a list of 2048, each vector
//! shifted by an eighth up or down; each 16 values have a three-bit scale.
//! value = (d * (2 * scale + 1)) * (number + 1/8 or - 1/8).

use bytemuck::{Pod, Zeroable};

use super::codebook::{self, IQ1_LADDER};
use super::grids::IQ1;
use super::stepped::Stepped;
use crate::block::{QuantType, describe_integer};
use crate::half_bits::Half;

/// 256 values in 56 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Iq1M {
    /// The lower eight bits of the number of each vector.
    pub qs: [u8; 32],
    /// A nibble for each vector, the first in the low one: the upper three bits of its number,
    /// and whether its shift is down.
    pub qh: [u8; 16],
    /// Little-endian, for each 64 values: four scales of three bits, and four bits of `d`,
    /// the lowest first.
    pub scales: [[u8; 2]; 4],
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Iq1M>();
const _: () = assert!(size_of::<Iq1M>() == 56);

impl Iq1M {
    /// The unit of the scales.
    pub fn d(&self) -> Half {
        let parts = self.scales.iter().enumerate();
        let bits = parts.fold(0, |all, (i, part)| {
            all | (u16::from_le_bytes(*part) >> 12 << (4 * i))
        });
        Half(bits.to_le_bytes())
    }

    fn high_bits(&self, vector_idx: usize) -> u8 {
        (self.qh[vector_idx / 2] >> (vector_idx % 2 * 4)) & 15
    }
}

impl Stepped for Iq1M {
    const ID: u32 = 29;
    const NAME: &'static str = "IQ1_M";
    const ELEMS: usize = 256;

    /// In eighths, so that the shift is a whole number.
    fn codes(&self, sub_block_idx: usize) -> [i8; 32] {
        std::array::from_fn(|i| {
            let v = sub_block_idx * 4 + i / 8;
            let bits = self.high_bits(v);
            let shift = if bits >> 3 == 0 { 1 } else { -1 };
            let vector = usize::from(self.qs[v]) | (usize::from(bits & 7) << 8);
            IQ1[vector][i % 8] * 8 + shift
        })
    }

    /// In eighths, as the codes are; an eighth of a unit is exact.
    fn unit(&self) -> f32 {
        self.d().to_f32() * 0.125
    }

    fn multiples(&self, sub_block_idx: usize) -> [i32; 2] {
        [0, 1].map(|half| {
            let part = sub_block_idx * 2 + half;
            codebook::odd((u16::from_le_bytes(self.scales[part / 4]) >> (part % 4 * 3)) & 7)
        })
    }

    /// Shifts up everywhere.
    fn quantize(values: &[f32]) -> Self {
        let d = IQ1_LADDER.d(values);
        let mut block = Self {
            qs: [0; 32],
            qh: [0; 16],
            scales: [[0; 2]; 4],
        };
        let mut scales: [u16; 4] = std::array::from_fn(|i| (d.bits() >> (4 * i)) << 12);
        for (part, values) in values.chunks_exact(16).enumerate() {
            let scale = IQ1_LADDER.multiple(values, d);
            let step = IQ1_LADDER.step(d, scale);
            scales[part / 4] |= u16::from(scale) << (part % 4 * 3);
            for (v, values) in values.as_chunks::<8>().0.iter().enumerate() {
                let vector = codebook::nearest(&IQ1, values.map(|v| v - step / 8.0), step);
                block.qs[part * 2 + v] = vector as u8;
                block.qh[part] |= ((vector >> 8) as u8) << (4 * v);
            }
        }
        block.scales = scales.map(u16::to_le_bytes);
        block
    }
}
