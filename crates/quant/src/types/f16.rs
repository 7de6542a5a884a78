//! F16: a little-endian IEEE half-precision number.

use bytemuck::{Pod, Zeroable};

use crate::block::{Block, QuantType, describe};
use crate::half_bits::Half;

/// One number, without alignment.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub struct F16(pub Half);

/// The table row.
pub const TYPE: QuantType = describe::<F16>();
const _: () = assert!(size_of::<F16>() == 2);

impl Block for F16 {
    const ID: u32 = 1;
    const NAME: &'static str = "F16";
    const ELEMS: usize = 1;

    fn dequantize(&self, out: &mut [f32]) {
        out[0] = self.0.to_f32();
    }

    fn quantize(values: &[f32]) -> Self {
        Self(Half::from_f32(values[0]))
    }
}
