//! Activations in 8 bits: the other factor of the integer products.

use bytemuck::{Pod, Zeroable};

/// How many activations share one scale.
pub const ACTIVATION_ELEMS: usize = 32;

/// 32 activations as 8-bit codes with one scale: value = `scale` * code.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct ActivationBlock {
    /// The value of one step; NaN if an input was not finite.
    pub scale: f32,
    /// The sum of the codes, for types that store an offset.
    pub sum: i32,
    /// The codes, from -127 to 127.
    pub codes: [i8; ACTIVATION_ELEMS],
}

const _: () = assert!(size_of::<ActivationBlock>() == 40);

/// Rounds activations to 8 bits: the scale is the largest magnitude over 127, a
/// code is the value times 127 over the largest magnitude, rounded to nearest,
/// ties to even.
///
/// A block that holds a NaN or an infinity gets a NaN scale, so that each product
/// with it is NaN and the fault stays visible. A block whose largest magnitude is
/// below about 4e-37 becomes zero, since 127 over it is no longer finite.
///
/// Panics if `blocks` is not a thirty-second of `values`.
pub fn quantize_activations(values: &[f32], blocks: &mut [ActivationBlock]) {
    assert_eq!(
        values.len(),
        blocks.len() * ACTIVATION_ELEMS,
        "whole blocks of activations"
    );
    for (block, values) in blocks.iter_mut().zip(values.chunks_exact(ACTIVATION_ELEMS)) {
        *block = quantize_block(values);
    }
}

fn quantize_block(values: &[f32]) -> ActivationBlock {
    let zero = ActivationBlock {
        scale: 0.0,
        sum: 0,
        codes: [0; ACTIVATION_ELEMS],
    };
    // `max` ignores NaN, so finiteness is asked for separately. A sum would not do:
    // finite values may overflow in it.
    let finite = values.iter().fold(true, |all, v| all & v.is_finite());
    if !finite {
        return ActivationBlock {
            scale: f32::NAN,
            ..zero
        };
    }
    let largest = values
        .iter()
        .fold(0.0f32, |largest, v| largest.max(v.abs()));
    let inverse = 127.0 / largest;
    if !inverse.is_finite() {
        return zero;
    }
    let mut block = ActivationBlock {
        scale: largest / 127.0,
        ..zero
    };
    for (code, value) in block.codes.iter_mut().zip(values) {
        *code = (value * inverse).round_ties_even() as i8;
        block.sum += i32::from(*code);
    }
    block
}

/// The sum of the products of codes, exact.
pub(crate) fn code_dot(weights: &[i8], activations: &[i8]) -> i32 {
    weights
        .iter()
        .zip(activations)
        .map(|(w, a)| i32::from(*w) * i32::from(*a))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: [f32; 32]) -> ActivationBlock {
        let mut block = [ActivationBlock::zeroed()];
        quantize_activations(&values, &mut block);
        block[0]
    }

    #[test]
    fn codes_are_rounded_to_even_and_summed() {
        let mut values = [0.0; 32];
        values[..5].copy_from_slice(&[127.0, -127.0, 2.5, 3.5, -0.5]);
        let block = check(values);
        assert_eq!(block.scale, 1.0);
        assert_eq!(block.codes[..5], [127, -127, 2, 4, 0]);
        assert_eq!(block.sum, 6);
    }

    #[test]
    fn what_is_not_finite_shows_in_the_scale() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for place in [0, 31] {
                let mut values = [1.0; 32];
                values[place] = bad;
                assert!(check(values).scale.is_nan(), "{bad} at {place}");
            }
        }
    }

    #[test]
    fn the_extremes_of_finite_input_stay_finite() {
        assert_eq!(check([0.0; 32]).scale, 0.0);
        assert_eq!(check([f32::MIN_POSITIVE / 2.0; 32]).codes, [0; 32]);
        let block = check([f32::MAX; 32]);
        assert_eq!(block.codes, [127; 32]);
        assert!(block.scale.is_finite());
    }
}
