//! NVFP4: 64 four-bit floating-point numbers; each 16 have an eight-bit floating-point scale.
//! value = (scale / 2) * level, the levels being those of MXFP4.

use bytemuck::{Pod, Zeroable};

use super::largest_signed;
use super::mxfp4::LEVELS;
use super::stepped::{self, Stepped};
use crate::block::{QuantType, describe_integer};

/// 64 values in 36 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Nvfp4 {
    /// The scale of each 16 values: an E4M3 number, whose sign is not used.
    pub d: [u8; 4],
    /// Eight bytes for each 16 values: byte i holds value i low and value i + 8 high.
    pub qs: [u8; 32],
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Nvfp4>();
const _: () = assert!(size_of::<Nvfp4>() == 36);

/// Scales are 0 to 126; 127 is the format's not-a-number, which is read as zero.
const SCALE_CODES: u8 = 127;

/// What the halves of all E4M3 scales are multiples of: half of 2^-9.
const SCALE_UNIT: f32 = 1.0 / 1024.0;

/// Half of an E4M3 scale, since the levels are doubled, in units.
fn half_scale(bits: u8) -> i32 {
    // Four bits of exponent, of which 0 and 1 are the smallest, and three of fraction.
    let (exponent, fraction) = ((bits >> 3) & 15, i32::from(bits & 7));
    match (bits, exponent) {
        (SCALE_CODES, _) => 0,
        (_, 0) => fraction,
        _ => (8 + fraction) << (exponent - 1),
    }
}

impl Stepped for Nvfp4 {
    const ID: u32 = 40;
    const NAME: &'static str = "NVFP4";
    const ELEMS: usize = 64;

    fn codes(&self, sub_block_idx: usize) -> [i8; 32] {
        std::array::from_fn(|i| {
            let byte = self.qs[(sub_block_idx * 2 + i / 16) * 8 + i % 8];
            let nibble = if i % 16 < 8 { byte & 15 } else { byte >> 4 };
            LEVELS[usize::from(nibble)]
        })
    }

    fn unit(&self) -> f32 {
        SCALE_UNIT
    }

    fn multiples(&self, sub_block_idx: usize) -> [i32; 2] {
        [0, 1].map(|half| half_scale(self.d[sub_block_idx * 2 + half]))
    }

    fn quantize(values: &[f32]) -> Self {
        let mut block = Self {
            d: [0; 4],
            qs: [0; 32],
        };
        for (part, values) in values.chunks_exact(16).enumerate() {
            let wanted = largest_signed(values).abs() / 12.0;
            let step = |bits: u8| SCALE_UNIT * half_scale(bits) as f32;
            let distance = |bits: &u8| (step(*bits) - wanted).abs();
            let nearest = (0..SCALE_CODES).min_by(|a, b| distance(a).total_cmp(&distance(b)));
            block.d[part] = nearest.unwrap_or(0);
            for (i, value) in values.iter().enumerate() {
                let code = stepped::nearest_level(&LEVELS, *value, step(block.d[part]));
                block.qs[part * 8 + i % 8] |= if i < 8 { code } else { code << 4 };
            }
        }
        block
    }
}
