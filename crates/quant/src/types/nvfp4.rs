//! NVFP4: 64 four-bit floating-point numbers; each 16 have an eight-bit floating-point scale.
//! value = (scale / 2) * level, the levels being those of MXFP4.

use bytemuck::{Pod, Zeroable};

use super::largest_signed;
use super::mxfp4::LEVELS;
use super::stepped::{self, Stepped};
use crate::activation::ActivationBlock;
use crate::block::{Block, IntegerBlock, QuantType, describe_integer};

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

/// Half of an E4M3 scale, since the levels are doubled.
fn half_scale(bits: u8) -> f32 {
    // Four bits of exponent around 7 (around 8 for the half; 127 - 8 = 119 in single
    // precision), three of fraction; 2^-9 is the smallest number.
    let (exponent, fraction) = ((bits >> 3) & 15, f32::from(bits & 7));
    if bits == SCALE_CODES {
        return 0.0;
    }
    let two_to_the = |power: u8| f32::from_bits(u32::from(power + 119) << 23);
    match exponent {
        0 => fraction / 1024.0,
        _ => (1.0 + fraction / 8.0) * two_to_the(exponent),
    }
}

impl Stepped for Nvfp4 {
    fn codes(&self, sub_block_idx: usize) -> [i8; 32] {
        std::array::from_fn(|i| {
            let byte = self.qs[(sub_block_idx * 2 + i / 16) * 8 + i % 8];
            let nibble = if i % 16 < 8 { byte & 15 } else { byte >> 4 };
            LEVELS[usize::from(nibble)]
        })
    }

    fn steps(&self, sub_block_idx: usize) -> [f32; 2] {
        [
            half_scale(self.d[sub_block_idx * 2]),
            half_scale(self.d[sub_block_idx * 2 + 1]),
        ]
    }
}

impl Block for Nvfp4 {
    const ID: u32 = 40;
    const NAME: &'static str = "NVFP4";
    const ELEMS: usize = 64;

    fn dequantize(&self, out: &mut [f32]) {
        stepped::dequantize(self, out);
    }

    fn quantize(values: &[f32]) -> Self {
        let mut block = Self {
            d: [0; 4],
            qs: [0; 32],
        };
        for (part, values) in values.chunks_exact(16).enumerate() {
            let wanted = largest_signed(values).abs() / 12.0;
            let distance = |bits: &u8| (half_scale(*bits) - wanted).abs();
            let nearest = (0..SCALE_CODES).min_by(|a, b| distance(a).total_cmp(&distance(b)));
            block.d[part] = nearest.unwrap_or(0);
            for (i, value) in values.iter().enumerate() {
                let code = stepped::nearest_level(&LEVELS, *value, half_scale(block.d[part]));
                block.qs[part * 8 + i % 8] |= if i < 8 { code } else { code << 4 };
            }
        }
        block
    }
}

impl IntegerBlock for Nvfp4 {
    /// As each [`Stepped`] type: steps times exact sums of 16 products, sub-block by sub-block.
    fn dot(&self, activations: &[ActivationBlock]) -> f32 {
        stepped::dot(self, activations)
    }
}
