//! Part.

use candor_arch::Op;

use super::Subject;
use super::bench::check_op;

/// The front and the back of every period.
pub fn part_matches_the_reference(subject: &Subject) {
    for (period, start, len) in [(96, 0, 32), (32, 16, 16), (4, 1, 2), (1, 0, 1)] {
        let op = Op::Part { period, start, len };
        check_op(subject, op, (96, 96 / period * len), |row| {
            let parts = row.chunks_exact(period);
            parts
                .flat_map(|part| part[start..start + len].to_vec())
                .collect()
        });
    }
}
