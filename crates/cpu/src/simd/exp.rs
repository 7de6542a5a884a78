//! The constants of the exponential, which all instruction sets compute in one way.
//!
//! e^x = 2^n * e^r with n = round(x / ln 2), so |r| <= ln(2) / 2. e^r is its Taylor polynomial of
//! degree 7, whose rest is below 6e-9 there; together with the roundings the result is within
//! 2 units in the last place (measured in the tests).

/// Above this the result is infinite in float32.
pub(super) const EXP_MAX: f32 = 89.0;

/// From here down the result is zero: it would be below the normal numbers of float32.
pub(super) const EXP_MIN: f32 = -87.336;

/// The upper bits of ln 2, few enough that their product with n is exact.
pub(super) const LN2_HIGH: f32 = 0.693_359_4;

/// The rest of ln 2.
pub(super) const LN2_LOW: f32 = -2.121_944_4e-4;

/// 1/7!, 1/6! and so on to 1/0!.
pub(super) const EXP_TERMS: [f32; 8] = [
    1.0 / 5040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
    1.0,
    1.0,
];
