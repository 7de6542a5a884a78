//! What all types of 32 codes with a step for each 16 of them have in common.

use bytemuck::Pod;

use crate::activation::{ACTIVATION_ELEMS, ActivationBlock, code_dot};
use crate::block::{Block, IntegerBlock};

/// A block whose value i is a step times a code, the steps being multiples of one unit.
pub trait Stepped: Pod {
    /// See [`Block::ID`].
    const ID: u32;
    /// See [`Block::NAME`].
    const NAME: &'static str;
    /// See [`Block::ELEMS`].
    const ELEMS: usize;

    /// The codes of one sub-block of 32, in order.
    fn codes(&self, sub_block_idx: usize) -> [i8; 32];

    /// What every step of the block is a multiple of.
    fn unit(&self) -> f32;

    /// The steps of the first and of the second 16 values of a sub-block, in units.
    fn multiples(&self, sub_block_idx: usize) -> [i32; 2];

    /// See [`Block::quantize`].
    fn quantize(values: &[f32]) -> Self;
}

/// The steps of the first and of the second 16 values of a sub-block. They are exact: a
/// unit has eleven significant bits at the most, a multiple six.
pub(super) fn steps(block: &impl Stepped, sub_block_idx: usize) -> [f32; 2] {
    let unit = block.unit();
    block.multiples(sub_block_idx).map(|m| unit * m as f32)
}

impl<T: Stepped> Block for T {
    const ID: u32 = <T as Stepped>::ID;
    const NAME: &'static str = <T as Stepped>::NAME;
    const ELEMS: usize = <T as Stepped>::ELEMS;

    /// value = step * code.
    fn dequantize(&self, out: &mut [f32]) {
        for (s, out) in out.chunks_exact_mut(ACTIVATION_ELEMS).enumerate() {
            let steps = steps(self, s);
            for (i, (value, code)) in out.iter_mut().zip(self.codes(s)).enumerate() {
                *value = steps[i / 16] * f32::from(code);
            }
        }
    }

    fn quantize(values: &[f32]) -> Self {
        <T as Stepped>::quantize(values)
    }
}

impl<T: Stepped> IntegerBlock for T {
    /// sum(act_scale * (step_0 * products_0 + step_1 * products_1)), the sum over the sub-blocks
    /// of 32 in order; the sums of 16 products are exact.
    fn dot(&self, activations: &[ActivationBlock]) -> f32 {
        let mut sum = 0.0;
        for (s, a) in activations.iter().enumerate() {
            let (codes, steps) = (self.codes(s), steps(self, s));
            let first = code_dot(&codes[..16], &a.codes[..16]) as f32;
            let second = code_dot(&codes[16..], &a.codes[16..]) as f32;
            sum += a.scale * (steps[0] * first + steps[1] * second);
        }
        sum
    }
}

/// The code of `level` nearest to `value / step`; the first one where the step is zero.
pub(super) fn nearest_level(levels: &[i8; 16], value: f32, step: f32) -> u8 {
    if step == 0.0 {
        return 0;
    }
    let wanted = value / step;
    let distance = |level: &i8| (f32::from(*level) - wanted).abs();
    let mut best = 0;
    for (i, level) in levels.iter().enumerate() {
        if distance(level) < distance(&levels[best]) {
            best = i;
        }
    }
    best as u8
}

/// Nibbles of 32 values: byte i holds value i in its low nibble and value i + 16 in its high one.
pub(super) fn nibble(qs: &[u8], i: usize) -> usize {
    let byte = qs[i % 16];
    usize::from(if i < 16 { byte & 15 } else { byte >> 4 })
}

/// The reverse of [`nibble`], into zeroed bytes.
pub(super) fn put_nibble(qs: &mut [u8], i: usize, code: u8) {
    qs[i % 16] |= if i < 16 { code } else { code << 4 };
}
