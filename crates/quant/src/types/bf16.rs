//! BF16: the upper half of a single-precision number, little-endian.

use bytemuck::{Pod, Zeroable};
use half::bf16;

use crate::block::{Block, QuantType, describe};

/// One number, without alignment.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub struct Bf16(pub [u8; 2]);

/// The table row.
pub const TYPE: QuantType = describe::<Bf16>();
const _: () = assert!(size_of::<Bf16>() == 2);

impl Block for Bf16 {
    const ID: u32 = 30;
    const NAME: &'static str = "BF16";
    const ELEMS: usize = 1;

    fn dequantize(&self, out: &mut [f32]) {
        out[0] = f32::from_bits(u32::from(u16::from_le_bytes(self.0)) << 16);
    }

    fn quantize(values: &[f32]) -> Self {
        Self(bf16::from_f32(values[0]).to_le_bytes())
    }
}
