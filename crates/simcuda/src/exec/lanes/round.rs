//! Rounding of doubles to floats in the four ways, and sums that keep what rounding needs.

/// A way to round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    /// To the nearest, ties to even.
    Nearest,
    /// Towards zero.
    Zero,
    /// Towards minus infinity.
    Down,
    /// Towards plus infinity.
    Up,
}

/// The sum of two doubles, of which an inexact one has an odd last bit: rounding it once more, to
/// a float and in any way, gives what rounding the exact sum gives.
#[inline]
pub(super) fn odd_sum(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let of_b = sum - a;
    let error = (a - (sum - of_b)) + (b - of_b);
    if error == 0.0 || !sum.is_finite() || sum.to_bits() & 1 == 1 {
        return sum;
    }
    if error > 0.0 {
        sum.next_up()
    } else {
        sum.next_down()
    }
}

/// To a float.
#[inline]
pub(super) fn to_f32(value: f64, how: Round) -> f32 {
    let nearest = value as f32;
    let back = f64::from(nearest);
    match how {
        Round::Zero if back.abs() > value.abs() && value.is_finite() => {
            if nearest > 0.0 {
                nearest.next_down()
            } else {
                nearest.next_up()
            }
        }
        Round::Down if back > value => nearest.next_down(),
        Round::Up if back < value => nearest.next_up(),
        _ => nearest,
    }
}

/// The double as a float with an odd last bit where it does not fit: what is rounded once more, to
/// 16 bits, is as if it were rounded once.
pub(super) fn odd_f32(value: f64) -> f32 {
    let cut = to_f32(value, Round::Zero);
    if f64::from(cut) == value || !value.is_finite() {
        return cut;
    }
    f32::from_bits(cut.to_bits() | 1)
}

/// a + b
#[inline]
pub(super) fn add(a: f32, b: f32, how: Round) -> f32 {
    let sum = to_f32(odd_sum(f64::from(a), f64::from(b)), how);
    zero(
        sum,
        a.is_sign_negative() && b.is_sign_negative(),
        a + b == 0.0,
        how,
    )
}

/// a × b + c with one rounding.
#[inline]
pub(super) fn fma(a: f32, b: f32, c: f32, how: Round) -> f32 {
    // The product of two floats is exact in a double.
    let product = f64::from(a) * f64::from(b);
    let sum = odd_sum(product, f64::from(c));
    let negative = product.is_sign_negative() && c.is_sign_negative();
    zero(to_f32(sum, how), negative, sum == 0.0, how)
}

/// An exact zero of two that are not both negative is +0, but -0 when rounding down.
fn zero(sum: f32, both_negative: bool, is_zero: bool, how: Round) -> f32 {
    match (is_zero && sum == 0.0 && how == Round::Down, both_negative) {
        (true, false) => -0.0,
        _ => sum,
    }
}
