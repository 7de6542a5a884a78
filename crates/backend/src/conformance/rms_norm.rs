//! RmsNorm.

use candor_arch::{Node, Op, WeightId};

use super::bench::{Bench, around, compare, quant, tokens};
use super::{Subject, Tolerance, reference};

/// A sum of squares in float32, and two products.
pub(super) const TOLERANCE: Tolerance = Tolerance {
    exact: 1e-6,
    fast: 1e-6,
};

/// Widths with and without tails, one row and many; whole rows, and heads on their own.
pub fn rms_norm_matches_the_reference(subject: &Subject) {
    let cases = [
        (1, 1, 3),
        (96, 96, 1),
        (100, 100, 7),
        (2_050, 2_050, subject.size.pick(70, 10)),
        (256, 64, 9),
        (60, 20, 3),
    ];
    for (width, part, n_rows) in cases {
        let eps = 1e-6;
        let mut id = WeightId(0);
        let graph = around(width, |builder, embed| {
            id = builder.vector("norm.weight", part);
            builder.node(Node {
                name: "norm".to_owned(),
                op: Op::RmsNorm { weight: id, eps },
                inputs: vec![embed],
                layer: None,
                width,
            })
        });
        let bench = Bench::new(graph, |_| quant("F32"));
        let seen = bench.outputs(subject, &tokens("rms_norm", n_rows));
        let expected: Vec<f64> = seen["embed"]
            .chunks_exact(part)
            .flat_map(|row| reference::rms_norm(&reference::wide(row), bench.values(id), eps))
            .collect();
        compare(
            subject,
            &format!("width {width}"),
            &seen["norm"],
            &expected,
            TOLERANCE,
        );
    }
}
