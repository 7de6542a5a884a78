//! TQ1_0: 256 codes of -1, 0 and 1, five to a byte, with one scale. value = d * (digit - 1).

use bytemuck::{Pod, Zeroable};

use super::stepped::Stepped;
use super::{code, largest_signed};
use crate::block::{QuantType, describe_integer};
use crate::half_bits::Half;

/// 256 values in 54 bytes.
///
/// A byte is a fraction of 256 whose digits in base 3 are the codes. Values 0 to 159 are the
/// five digits of the first 32 bytes of `qs` (32 values a digit), 160 to 239 those of the
/// other 16 bytes (16 a digit), 240 to 255 the four digits of the 4 bytes of `qh`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Tq1_0 {
    /// Five digits a byte.
    pub qs: [u8; 48],
    /// Four digits a byte.
    pub qh: [u8; 4],
    /// The value of one step.
    pub d: Half,
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Tq1_0>();
const _: () = assert!(size_of::<Tq1_0>() == 54);

/// What brings a digit to the front.
const POWERS: [u8; 5] = [1, 3, 9, 27, 81];

/// The byte (of `qs`, then `qh`) and the digit of a value.
fn place(i: usize) -> (usize, usize) {
    match i {
        0..160 => (i % 32, i / 32),
        160..240 => (32 + i % 16, (i - 160) / 16),
        _ => (48 + i % 4, (i - 240) / 4),
    }
}

impl Stepped for Tq1_0 {
    const ID: u32 = 34;
    const NAME: &'static str = "TQ1_0";
    const ELEMS: usize = 256;

    fn codes(&self, sub_block_idx: usize) -> [i8; 32] {
        std::array::from_fn(|i| {
            let (byte, digit) = place(sub_block_idx * 32 + i);
            let byte = if byte < 48 {
                self.qs[byte]
            } else {
                self.qh[byte - 48]
            };
            let rest = byte.wrapping_mul(POWERS[digit]);
            ((u16::from(rest) * 3) >> 8) as i8 - 1
        })
    }

    fn unit(&self) -> f32 {
        self.d.to_f32()
    }

    fn multiples(&self, _sub_block_idx: usize) -> [i32; 2] {
        [1; 2]
    }

    fn quantize(values: &[f32]) -> Self {
        let d = largest_signed(values).abs();
        let mut numbers = [0u16; 52];
        for (i, value) in values.iter().enumerate() {
            let (byte, digit) = place(i);
            let code = (code(*value, d, -1.0, 1.0) + 1) as u16;
            numbers[byte] += code * u16::from(POWERS[4 - digit]);
        }
        // Rounded up, so that cutting off gives the digits back.
        let bytes = numbers.map(|number| ((number * 256).div_ceil(243)) as u8);
        let mut block = Self {
            qs: [0; 48],
            qh: [0; 4],
            d: Half::from_f32(d),
        };
        block.qs.copy_from_slice(&bytes[..48]);
        block.qh.copy_from_slice(&bytes[48..]);
        block
    }
}
