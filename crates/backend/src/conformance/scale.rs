//! Scale.

use candor_arch::Op;

use super::Subject;
use super::bench::check_op;

/// Every value times the factor.
pub fn scale_matches_the_reference(subject: &Subject) {
    let factor = 25.25;
    check_op(subject, Op::Scale { factor }, (96, 96), |row| {
        row.iter().map(|v| v * f64::from(factor)).collect()
    });
}
