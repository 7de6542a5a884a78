//! MXFP4: 32 four-bit floating-point numbers with a power of two for all of them.
//! value = 2^(e - 128) * level, the levels being doubled E2M1 numbers.
//!
//! Source of the number formats: OCP Microscaling Formats (MX) Specification 1.0.

use bytemuck::{Pod, Zeroable};

use super::largest_signed;
use super::stepped::{self, Stepped};
use crate::block::{QuantType, describe_integer};

/// The sixteen E2M1 numbers, doubled so that they are whole. Minus zero is zero.
pub const LEVELS: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// 32 values in 17 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Mxfp4 {
    /// The exponent of the scale, 127 for one (E8M0).
    pub e: u8,
    /// Byte i holds value i in its low nibble and value i + 16 in its high one.
    pub qs: [u8; 16],
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Mxfp4>();
const _: () = assert!(size_of::<Mxfp4>() == 17);

/// Half of the scale, since the levels are doubled. The two smallest are subnormal.
fn half_scale(e: u8) -> f32 {
    f32::from_bits(match e {
        0 | 1 => 0x0020_0000 << e,
        _ => u32::from(e - 1) << 23,
    })
}

impl Stepped for Mxfp4 {
    const ID: u32 = 39;
    const NAME: &'static str = "MXFP4";
    const ELEMS: usize = 32;

    fn codes(&self, _sub_block_idx: usize) -> [i8; 32] {
        std::array::from_fn(|i| LEVELS[stepped::nibble(&self.qs, i)])
    }

    fn unit(&self) -> f32 {
        half_scale(self.e)
    }

    fn multiples(&self, _sub_block_idx: usize) -> [i32; 2] {
        [1; 2]
    }

    fn quantize(values: &[f32]) -> Self {
        // The largest value's own exponent, less the two of the largest level (6 = 1.5 * 2^2).
        let exponent = (largest_signed(values).abs().to_bits() >> 23) as u8;
        let e = exponent.saturating_sub(2);
        let mut block = Self { e, qs: [0; 16] };
        for (i, value) in values.iter().enumerate() {
            let code = stepped::nearest_level(&LEVELS, *value, half_scale(e));
            stepped::put_nibble(&mut block.qs, i, code);
        }
        block
    }
}
