//! F32: a little-endian IEEE single-precision number.

use bytemuck::{Pod, Zeroable};

use crate::block::{Block, QuantType, describe};

/// One number, without alignment.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub struct F32(pub [u8; 4]);

/// The table row.
pub const TYPE: QuantType = describe::<F32>();
const _: () = assert!(size_of::<F32>() == 4);

impl Block for F32 {
    const ID: u32 = 0;
    const NAME: &'static str = "F32";
    const ELEMS: usize = 1;

    fn dequantize(&self, out: &mut [f32]) {
        out[0] = f32::from_le_bytes(self.0);
    }

    fn quantize(values: &[f32]) -> Self {
        Self(values[0].to_le_bytes())
    }
}
