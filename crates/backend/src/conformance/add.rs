//! Add.

use candor_arch::{Node, Op};

use super::bench::{Bench, around, compare, quant, tokens};
use super::{Subject, Tolerance, reference};

/// One rounding.
const TOLERANCE: Tolerance = Tolerance {
    exact: 1e-7,
    fast: 1e-7,
};

/// A row and itself normalised, alone and in front of another normalisation.
pub fn add_matches_the_reference(subject: &Subject) {
    for n_rows in [1, 2, 65] {
        let width = 96;
        let graph = around(width, |builder, embed| {
            let first = norm(builder, "first", embed, width);
            let sum = builder.node(Node {
                name: "sum".to_owned(),
                op: Op::Add,
                inputs: vec![embed, first],
                layer: None,
                width,
            });
            norm(builder, "second", sum, width)
        });
        let bench = Bench::new(graph, |_| quant("F32"));
        let seen = bench.outputs(subject, &tokens("add", n_rows));
        let expected: Vec<f64> = seen["embed"]
            .iter()
            .zip(&seen["first"])
            .map(|(a, b)| f64::from(*a) + f64::from(*b))
            .collect();
        compare(subject, "sum", &seen["sum"], &expected, TOLERANCE);
        let weight = bench
            .graph
            .weights
            .iter()
            .position(|w| w.name == "second.weight");
        let weight = bench.values(candor_arch::WeightId(weight.expect("it has a weight")));
        let expected: Vec<f64> = seen["sum"]
            .chunks_exact(width)
            .flat_map(|row| reference::rms_norm(&reference::wide(row), weight, EPS))
            .collect();
        compare(
            subject,
            "second",
            &seen["second"],
            &expected,
            super::rms_norm::TOLERANCE,
        );
    }
}

const EPS: f32 = 1e-5;

fn norm(
    builder: &mut candor_arch::GraphBuilder<'_>,
    name: &str,
    input: candor_arch::NodeId,
    width: usize,
) -> candor_arch::NodeId {
    let weight = builder.vector(&format!("{name}.weight"), width);
    builder.node(Node {
        name: name.to_owned(),
        op: Op::RmsNorm { weight, eps: EPS },
        inputs: vec![input],
        layer: None,
        width,
    })
}
