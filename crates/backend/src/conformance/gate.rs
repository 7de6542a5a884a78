//! Gate.

use candor_arch::{Activation, Node, Op};

use super::bench::{Bench, ONE_BY_ONE, around, compare, quant, tokens};
use super::{Subject, reference};

/// A gate for each value, for some together, and for the whole row.
pub fn gate_matches_the_reference(subject: &Subject) {
    for activation in ACTIVATIONS {
        for n_gates in [96, 12, 1] {
            check(subject, activation, n_gates);
        }
    }
}

/// All of them.
pub(super) const ACTIVATIONS: [Activation; 4] = [
    Activation::Silu,
    Activation::Gelu,
    Activation::Sigmoid,
    Activation::ClampedSwiglu,
];

fn check(subject: &Subject, activation: Activation, n_gates: usize) {
    let width = 96;
    let graph = around(width, |builder, embed| {
        let gate = builder.node(Node {
            name: "gate".to_owned(),
            op: Op::Part {
                period: width,
                start: 0,
                len: n_gates,
            },
            inputs: vec![embed],
            layer: None,
            width: n_gates,
        });
        builder.node(Node {
            name: "out".to_owned(),
            op: Op::Gate { activation },
            inputs: vec![embed, gate],
            layer: None,
            width,
        })
    });
    let bench = Bench::new(graph, |_| quant("F32"));
    let seen = bench.outputs(subject, &tokens("gate", 9));
    let rows = seen["embed"].chunks_exact(width).map(reference::wide);
    let gated = rows.flat_map(|row| {
        let product =
            |(i, x): (usize, &f64)| reference::gated(activation, row[i * n_gates / width], *x);
        row.iter().enumerate().map(product).collect::<Vec<f64>>()
    });
    let expected: Vec<f64> = gated.collect();
    let what = format!("{activation}, {n_gates} gates");
    compare(subject, &what, &seen["out"], &expected, ONE_BY_ONE);
}
