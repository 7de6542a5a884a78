//! Q3_K: 256 three-bit codes; each 16 have a six-bit scale, which is a multiple of one number
//! of the whole block. value = (d * (scale - 32)) * (code - 4).

use bytemuck::{Pod, Zeroable};

use super::stepped::Stepped;
use super::{code, largest_signed};
use crate::block::{QuantType, describe_integer};
use crate::half_bits::Half;

/// 256 values in 110 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Q3K {
    /// Bit s of byte i is the third bit of value i of sub-block s.
    pub hmask: [u8; 32],
    /// The lower two bits: each 32 bytes hold four sub-blocks, the first in the lowest bits.
    pub qs: [u8; 64],
    /// Sixteen scales of six bits; see [`Q3K::scales`].
    pub scales: [u8; 12],
    /// The unit of the scales.
    pub d: Half,
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Q3K>();
const _: () = assert!(size_of::<Q3K>() == 110);

impl Q3K {
    /// The scale of each 16 values, -32 to 31.
    ///
    /// The low nibbles of bytes 0 to 7 are those of scales 0 to 7, the high ones those of
    /// scales 8 to 15. Byte 8 + j % 4 holds the upper two bits of scale j at bit 2 * (j / 4).
    pub fn scales(&self) -> [i8; 16] {
        std::array::from_fn(|j| {
            let low = (self.scales[j % 8] >> (j / 8 * 4)) & 15;
            let high = (self.scales[8 + j % 4] >> (j / 4 * 2)) & 3;
            (low | (high << 4)) as i8 - 32
        })
    }
}

impl Stepped for Q3K {
    const ID: u32 = 11;
    const NAME: &'static str = "Q3_K";
    const ELEMS: usize = 256;

    fn codes(&self, sub_block_idx: usize) -> [i8; 32] {
        let bytes = &self.qs[sub_block_idx / 4 * 32..][..32];
        let shift = sub_block_idx % 4 * 2;
        std::array::from_fn(|i| {
            let third = (self.hmask[i] >> sub_block_idx) & 1;
            (((bytes[i] >> shift) & 3) | (third << 2)) as i8 - 4
        })
    }

    fn unit(&self) -> f32 {
        self.d.to_f32()
    }

    fn multiples(&self, sub_block_idx: usize) -> [i32; 2] {
        let scales = self.scales();
        [0, 1].map(|half| i32::from(scales[sub_block_idx * 2 + half]))
    }

    fn quantize(values: &[f32]) -> Self {
        // The value of largest magnitude gets the code -4, of which there is no positive twin.
        let mut steps = [0.0; 16];
        for (step, values) in steps.iter_mut().zip(values.chunks_exact(16)) {
            *step = largest_signed(values) / -4.0;
        }
        let d = Half::from_f32(largest_signed(&steps) / -32.0);
        let scales = steps.map(|step| code(step, d.to_f32(), -32.0, 31.0));
        let mut block = Self {
            hmask: [0; 32],
            qs: [0; 64],
            scales: [0; 12],
            d,
        };
        for (j, scale) in scales.iter().enumerate() {
            let bits = (scale + 32) as u8;
            block.scales[j % 8] |= (bits & 15) << (j / 8 * 4);
            block.scales[8 + j % 4] |= (bits >> 4) << (j / 4 * 2);
        }
        for (i, value) in values.iter().enumerate() {
            let step = d.to_f32() * f32::from(scales[i / 16]);
            let bits = (code(*value, step, -4.0, 3.0) + 4) as u8;
            block.qs[i / 128 * 32 + i % 32] |= (bits & 3) << (i / 32 % 4 * 2);
            block.hmask[i % 32] |= (bits >> 2) << (i / 32);
        }
        block
    }
}
