//! GatedFfn.

use candor_arch::{Activation, Node, Op, RowsOf, WeightId};

use super::bench::{Bench, around, compare, quant, tokens};
use super::gate::ACTIVATIONS;
use super::{Subject, Tolerance, reference};

/// Two roundings of activations to 8 bits behind each other on the fast path.
const TOLERANCE: Tolerance = Tolerance {
    exact: 1e-5,
    fast: 2e-2,
};

/// Some types, mixed ones among them; one row and many.
pub fn gated_ffn_matches_the_reference(subject: &Subject) {
    let cases = [
        ("F32", "F32", 1),
        ("Q8_0", "Q8_0", 40),
        ("Q4_K", "Q6_K", 3),
        ("F16", "Q5_0", 17),
    ];
    let first = subject.size.pick(0, 2);
    for (gate_up, down, n_rows) in &cases[first..] {
        for activation in ACTIVATIONS {
            for matrices in [Matrices::Apart, Matrices::Stacked] {
                check(subject, (gate_up, down), (activation, matrices), *n_rows);
            }
        }
    }
}

/// One storage type.
pub fn gated_ffn_of(subject: &Subject, stored: &str) {
    for n_rows in [1, 3, 17] {
        let how = (Activation::Silu, Matrices::Apart);
        check(subject, (stored, stored), how, n_rows);
    }
}

/// How gate and up lie in the file.
#[derive(Clone, Copy, Debug)]
enum Matrices {
    Apart,
    /// One below the other in one tensor.
    Stacked,
}

fn check(
    subject: &Subject,
    (gate_up, down_type): (&str, &str),
    (activation, matrices): (Activation, Matrices),
    n_rows: usize,
) {
    let (width, inner) = (256, subject.size.pick(512, 256));
    let mut ids = [WeightId(0); 3];
    let graph = around(width, |builder, embed| {
        let [gate, up] = match matrices {
            Matrices::Apart => {
                ["gate.weight", "up.weight"].map(|name| builder.matrix(name, inner, width))
            }
            Matrices::Stacked => [0, inner].map(|first| {
                let total = 2 * inner;
                builder.matrix_rows("up.weight", inner, RowsOf { first, total }, width)
            }),
        };
        let down = builder.matrix("down.weight", width, inner);
        ids = [gate, up, down];
        builder.node(Node {
            name: "ffn".to_owned(),
            op: Op::GatedFfn {
                gate,
                up,
                down,
                inner,
                activation,
            },
            inputs: vec![embed],
            layer: None,
            width,
        })
    });
    let stored = |name: &str| match name {
        "gate.weight" | "up.weight" => quant(gate_up),
        "down.weight" => quant(down_type),
        _ => quant("F32"),
    };
    let bench = Bench::new(graph, stored);
    let seen = bench.outputs(subject, &tokens("gated_ffn", n_rows));
    let [gate, up, down] = ids.map(|id| bench.values(id));
    let expected = seen["embed"].chunks_exact(width).flat_map(|row| {
        let row = reference::wide(row);
        let (gate, up) = (reference::linear(gate, &row), reference::linear(up, &row));
        let product = reference::all_gated(activation, &gate, &up);
        reference::linear(down, &product)
    });
    let expected: Vec<f64> = expected.collect();
    let what = format!("{activation} {matrices:?} {gate_up} and {down_type}, {n_rows} rows");
    compare(subject, &what, &seen["ffn"], &expected, TOLERANCE);
}
