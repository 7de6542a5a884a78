//! What all types of 32 codes with a step for each 16 of them have in common.

use crate::activation::{ACTIVATION_ELEMS, ActivationBlock, code_dot};

/// A block whose value i is a step times a code.
pub trait Stepped {
    /// The codes of one sub-block of 32, in order.
    fn codes(&self, sub_block_idx: usize) -> [i8; 32];

    /// The steps of the first and of the second 16 values of a sub-block.
    fn steps(&self, sub_block_idx: usize) -> [f32; 2];
}

/// value = step * code.
pub(super) fn dequantize(block: &impl Stepped, out: &mut [f32]) {
    for (s, out) in out.chunks_exact_mut(ACTIVATION_ELEMS).enumerate() {
        let steps = block.steps(s);
        for (i, (value, code)) in out.iter_mut().zip(block.codes(s)).enumerate() {
            *value = steps[i / 16] * f32::from(code);
        }
    }
}

/// sum(act_scale * (step_0 * products_0 + step_1 * products_1)), the sum over the sub-blocks
/// of 32 in order; the sums of 16 products are exact.
pub(super) fn dot(block: &impl Stepped, activations: &[ActivationBlock]) -> f32 {
    let mut sum = 0.0;
    for (s, a) in activations.iter().enumerate() {
        let (codes, steps) = (block.codes(s), block.steps(s));
        let first = code_dot(&codes[..16], &a.codes[..16]) as f32;
        let second = code_dot(&codes[16..], &a.codes[16..]) as f32;
        sum += a.scale * (steps[0] * first + steps[1] * second);
    }
    sum
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
