//! TQ2_0: 256 codes of -1, 0 and 1 in two bits each, with one scale. value = d * (code - 1).

use bytemuck::{Pod, Zeroable};

use super::stepped::Stepped;
use super::{code, largest_signed};
use crate::block::{QuantType, describe_integer};
use crate::half_bits::Half;

/// 256 values in 66 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Tq2_0 {
    /// Each 32 bytes hold four sub-blocks of 32, the first in the lowest bits.
    pub qs: [u8; 64],
    /// The value of one step.
    pub d: Half,
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Tq2_0>();
const _: () = assert!(size_of::<Tq2_0>() == 66);

impl Stepped for Tq2_0 {
    const ID: u32 = 35;
    const NAME: &'static str = "TQ2_0";
    const ELEMS: usize = 256;

    fn codes(&self, sub_block_idx: usize) -> [i8; 32] {
        let bytes = &self.qs[sub_block_idx / 4 * 32..][..32];
        let shift = sub_block_idx % 4 * 2;
        std::array::from_fn(|i| ((bytes[i] >> shift) & 3) as i8 - 1)
    }

    fn unit(&self) -> f32 {
        self.d.to_f32()
    }

    fn multiples(&self, _sub_block_idx: usize) -> [i32; 2] {
        [1; 2]
    }

    fn quantize(values: &[f32]) -> Self {
        let d = largest_signed(values).abs();
        let mut block = Self {
            qs: [0; 64],
            d: Half::from_f32(d),
        };
        for (i, value) in values.iter().enumerate() {
            let bits = (code(*value, d, -1.0, 1.0) + 1) as u8;
            block.qs[i / 128 * 32 + i % 32] |= bits << (i / 32 % 4 * 2);
        }
        block
    }
}
