//! IQ4_NL: 32 nibbles with one scale, which choose among sixteen uneven levels.
//! value = d * level.

use bytemuck::{Pod, Zeroable};

use super::largest_signed;
use super::stepped::{self, Stepped};
use crate::block::{QuantType, describe_integer};
use crate::half_bits::Half;

/// What the nibbles stand for. Source: `kvalues_iq4nl` of ggml (ggml-common.h).
pub const LEVELS: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

/// 32 values in 18 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Iq4Nl {
    /// The value of one step.
    pub d: Half,
    /// Byte i holds value i in its low nibble and value i + 16 in its high one.
    pub qs: [u8; 16],
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Iq4Nl>();
const _: () = assert!(size_of::<Iq4Nl>() == 18);

impl Stepped for Iq4Nl {
    const ID: u32 = 20;
    const NAME: &'static str = "IQ4_NL";
    const ELEMS: usize = 32;

    fn codes(&self, _sub_block_idx: usize) -> [i8; 32] {
        std::array::from_fn(|i| LEVELS[stepped::nibble(&self.qs, i)])
    }

    fn unit(&self) -> f32 {
        self.d.to_f32()
    }

    fn multiples(&self, _sub_block_idx: usize) -> [i32; 2] {
        [1; 2]
    }

    fn quantize(values: &[f32]) -> Self {
        let d = Half::from_f32(largest_signed(values) / f32::from(LEVELS[0]));
        let mut block = Self { d, qs: [0; 16] };
        for (i, value) in values.iter().enumerate() {
            let code = stepped::nearest_level(&LEVELS, *value, d.to_f32());
            stepped::put_nibble(&mut block.qs, i, code);
        }
        block
    }
}
