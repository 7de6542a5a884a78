//! Linear.

use candor_arch::{Node, Op, WeightId};
use candor_quant::QuantType;

use super::bench::{Bench, around, compare, quant, tokens};
use super::{Subject, Tolerance, reference};

/// float32 sums; on the fast path of the integer types, activations of 8 bits for each 32 values,
/// whose rounding is some 0.5 % of a value.
const INTEGERS: Tolerance = Tolerance {
    exact: 1e-5,
    fast: 1e-2,
};

/// The float types keep float32 activations on either path.
const FLOATS: Tolerance = Tolerance {
    exact: 1e-5,
    fast: 1e-5,
};

/// Every storage type; outputs with and without a partial group, one block a row and several, one
/// row of activations and many; with a bias, and several matrices of one input.
pub fn linear_matches_the_reference(subject: &Subject) {
    let types = subject.size.pick(candor_quant::TYPES, &[]);
    for stored in types {
        linear_of(subject, stored.name);
    }
    for (stored, shape, n_rows) in BY_SHAPE {
        check(subject, quant(stored), *shape, *n_rows);
    }
}

/// More rows and outputs than a tile may have, rows that several threads share, and rows of float
/// types of no round length.
const BY_SHAPE: &[(&str, (usize, usize), usize)] = &[
    ("Q8_0", (130, 160), 140),
    ("Q4_K", (9, 2048), 2),
    ("Q8_0", (9, 4640), 1),
    ("F16", (7, 130), 3),
    ("BF16", (7, 131), 18),
];

/// One storage type.
pub fn linear_of(subject: &Subject, stored: &str) {
    let stored = quant(stored);
    let block = stored.block_elems.max(32);
    let full = [(16, 1, 1), (17, 3, 5), (100, 2, 33), (203, 4, 130)];
    let simulated = [(16, 1, 1), (35, 2, 5), (67, 1, 19)];
    for (outputs, blocks, n_rows) in subject.size.pick(&full[..], &simulated[..]) {
        check(subject, stored, (*outputs, blocks * block), *n_rows);
    }
}

fn check(subject: &Subject, stored: &'static QuantType, shape: (usize, usize), n_rows: usize) {
    let (outputs, width) = shape;
    let mut ids = Vec::new();
    let graph = around(width, |builder, embed| {
        let nodes = ["a", "b"].map(|name| {
            let weight = builder.matrix(&format!("{name}.weight"), outputs, width);
            let bias = (name == "b").then(|| builder.vector("b.bias", outputs));
            ids.push((weight, bias));
            builder.node(Node {
                name: name.to_owned(),
                op: Op::Linear { weight, bias },
                inputs: vec![embed],
                layer: None,
                width: outputs,
            })
        });
        // Both are read, so that neither can be left out.
        builder.node(Node {
            name: "sum".to_owned(),
            op: Op::Add,
            inputs: nodes.to_vec(),
            layer: None,
            width: outputs,
        })
    });
    let stored_as = |name: &str| match name {
        "a.weight" | "b.weight" => stored,
        _ => quant("F32"),
    };
    let bench = Bench::new(graph, stored_as);
    let seen = bench.outputs(subject, &tokens("linear", n_rows));
    let tolerance = if stored.dot.is_some() {
        INTEGERS
    } else {
        FLOATS
    };
    for (name, (weight, bias)) in ["a", "b"].into_iter().zip(ids) {
        let expected = seen["embed"].chunks_exact(width).flat_map(|row| {
            let mut out = reference::linear(bench.values(weight), &reference::wide(row));
            add_bias(&bench, bias, &mut out);
            out
        });
        let expected: Vec<f64> = expected.collect();
        let what = format!("{stored} {outputs}×{width}, {n_rows} rows, {name}");
        let tolerance = tolerance.of_product(subject, n_rows);
        compare(subject, &what, &seen[name], &expected, tolerance);
    }
}

fn add_bias(bench: &Bench, bias: Option<WeightId>, out: &mut [f64]) {
    let Some(bias) = bias else { return };
    for (out, bias) in out.iter_mut().zip(bench.values(bias)) {
        *out += f64::from(*bias);
    }
}
