//! IQ4_XS: 256 nibbles that choose among the levels of IQ4_NL; each 32 have a six-bit scale,
//! which is a multiple of one number of the whole block. value = (d * (scale - 32)) * level.

use bytemuck::{Pod, Zeroable};

use super::iq4_nl::LEVELS;
use super::stepped::{self, Stepped};
use super::{code, largest_signed};
use crate::block::{QuantType, describe_integer};
use crate::half_bits::Half;

/// 256 values in 136 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Iq4Xs {
    /// The unit of the scales.
    pub d: Half,
    /// Little-endian: the upper two bits of scale s at bit 2 * s.
    pub scales_h: [u8; 2],
    /// The lower four bits of two scales a byte, the first in the low nibble.
    pub scales_l: [u8; 4],
    /// Sixteen bytes a sub-block: byte i holds value i low and value i + 16 high.
    pub qs: [u8; 128],
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Iq4Xs>();
const _: () = assert!(size_of::<Iq4Xs>() == 136);

impl Stepped for Iq4Xs {
    const ID: u32 = 23;
    const NAME: &'static str = "IQ4_XS";
    const ELEMS: usize = 256;

    fn codes(&self, sub_block_idx: usize) -> [i8; 32] {
        let bytes = &self.qs[sub_block_idx * 16..][..16];
        std::array::from_fn(|i| LEVELS[stepped::nibble(bytes, i)])
    }

    fn unit(&self) -> f32 {
        self.d.to_f32()
    }

    fn multiples(&self, sub_block_idx: usize) -> [i32; 2] {
        let low = (self.scales_l[sub_block_idx / 2] >> (sub_block_idx % 2 * 4)) & 15;
        let high = (u16::from_le_bytes(self.scales_h) >> (sub_block_idx * 2)) & 3;
        [i32::from(u16::from(low) | (high << 4)) - 32; 2]
    }

    fn quantize(values: &[f32]) -> Self {
        let mut steps = [0.0; 8];
        for (step, values) in steps.iter_mut().zip(values.chunks_exact(32)) {
            *step = largest_signed(values) / f32::from(LEVELS[0]);
        }
        let d = Half::from_f32(largest_signed(&steps) / -32.0);
        let mut block = Self {
            d,
            scales_h: [0; 2],
            scales_l: [0; 4],
            qs: [0; 128],
        };
        let mut high = 0u16;
        for (s, step) in steps.iter().enumerate() {
            let bits = (code(*step, d.to_f32(), -32.0, 31.0) + 32) as u8;
            block.scales_l[s / 2] |= (bits & 15) << (s % 2 * 4);
            high |= u16::from(bits >> 4) << (s * 2);
        }
        block.scales_h = high.to_le_bytes();
        for (i, value) in values.iter().enumerate() {
            let [step, _] = stepped::steps(&block, i / 32);
            let code = stepped::nearest_level(&LEVELS, *value, step);
            stepped::put_nibble(&mut block.qs[i / 32 * 16..][..16], i % 32, code);
        }
        block
    }
}
