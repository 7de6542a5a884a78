//! Holds a table of kernels against the scalar truth, on fixed numbers. It runs at each start,
//! in some thirty milliseconds; the tests use its parts with more cases.

mod attention;
mod linear;
mod rows;

pub(super) use attention::AttentionCase;
#[cfg(test)]
pub(super) use linear::Case;
pub(super) use rows::row_misses;

use super::kernels::Kernels;

/// The difference that the order of summation may make, relative to the sum of magnitudes.
/// Sums of up to 512 products of float32: 512 roundings of 2^-24, if all went one way.
const TOLERANCE: f32 = 512.0 / (1u32 << 24) as f32;

/// What is wrong first, in words; `None` if everything is right.
pub(super) fn first_miss(kernels: &Kernels) -> Option<String> {
    if let Some(name) = linear::first_miss(kernels) {
        return Some(format!("the product with {name} weights"));
    }
    if let Some(name) = row_misses(kernels, 0).first() {
        return Some((*name).to_owned());
    }
    let attention = || AttentionCase::new(32, 2, 3, 254);
    if ![attention(), attention().bounded()]
        .iter()
        .all(|case| case.is_right(kernels))
    {
        return Some("attention".to_owned());
    }
    None
}

/// Fixed numbers between -1 and 1 without a visible pattern.
pub(super) fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    std::iter::repeat_with(|| {
        // xorshift32 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as i32 as f32 / i32::MAX as f32
    })
    .take(count)
    .collect()
}
