//! One file for each storage type.
//!
//! Source of the layouts: ggml's block structures (ggml-common.h). The values
//! agree bit for bit with the `gguf` Python package; see `tests/golden.rs`.

pub mod bf16;
pub mod f16;
pub mod f32;
pub mod iq1_m;
pub mod iq1_s;
pub mod iq2_s;
pub mod iq2_xs;
pub mod iq2_xxs;
pub mod iq3_s;
pub mod iq3_xxs;
pub mod iq4_nl;
pub mod iq4_xs;
pub mod mxfp4;
pub mod nvfp4;
pub mod q2_k;
pub mod q3_k;
pub mod q4_0;
pub mod q4_1;
pub mod q4_k;
pub mod q5_0;
pub mod q5_1;
pub mod q5_k;
pub mod q6_k;
pub mod q8_0;
pub mod tq1_0;
pub mod tq2_0;

mod codebook;
mod grids;
mod scales_k;
mod stepped;

pub use scales_k::Head;
pub use stepped::Stepped;

/// The smallest and the largest of some values, both together with zero: the
/// range that a type with an offset has to cover.
fn range_with_zero(values: &[f32]) -> (f32, f32) {
    values
        .iter()
        .fold((0.0, 0.0), |(low, high), v| (v.min(low), v.max(high)))
}

/// The value of largest magnitude, with its sign.
fn largest_signed(values: &[f32]) -> f32 {
    values.iter().fold(
        0.0,
        |most: f32, v| if v.abs() > most.abs() { *v } else { most },
    )
}

/// `value` over `step` as an integer within `low..=high`; a step of zero gives
/// zero, for which each such type has a code.
fn code(value: f32, step: f32, low: f32, high: f32) -> i8 {
    if step == 0.0 {
        return 0;
    }
    (value / step).round_ties_even().clamp(low, high) as i8
}
