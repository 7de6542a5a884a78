//! Experts.

use candor_arch::{Activation, Node, Op, WeightId};

use super::bench::{Bench, around, compare, quant, tokens};
use super::{Subject, Tolerance, reference};

/// As for one feed-forward; the router is in float32 on either path, so the choice is the same.
const TOLERANCE: Tolerance = Tolerance {
    exact: 1e-5,
    fast: 2e-2,
};

/// Few and many experts and choices, types with kernels of their own and without, one row and many.
pub fn experts_match_the_reference(subject: &Subject) {
    let cases = [
        ("F32", (4, 1), 1),
        ("Q8_0", (8, 2), 40),
        ("Q4_K", (5, 5), 7),
        ("MXFP4", (16, 4), 33),
    ];
    for (stored, (n_experts, n_used), n_rows) in cases {
        check(subject, stored, (n_experts, n_used), n_rows);
    }
}

/// Of two equal shares the lower expert is chosen.
pub fn ties_go_to_the_lower_expert(subject: &Subject) {
    let mut bench = bench("Q8_0", (6, 2));
    bench.set(
        "router.weight",
        &[6, WIDTH],
        quant("F32"),
        &vec![0.0; 6 * WIDTH],
    );
    hold(subject, &bench, (6, 2), 5, "ties");
}

const WIDTH: usize = 256;

const INNER: usize = 512;

fn check(subject: &Subject, stored: &str, counts: (usize, usize), n_rows: usize) {
    let what = format!("{stored}, {counts:?}, {n_rows} rows");
    hold(subject, &bench(stored, counts), counts, n_rows, &what);
}

fn bench(stored: &str, (n_experts, n_used): (usize, usize)) -> Bench {
    let graph = around(WIDTH, |builder, embed| {
        let op = Op::Experts {
            router: builder.matrix("router.weight", n_experts, WIDTH),
            gate: builder.expert_matrices("gate.weight", n_experts, INNER, WIDTH),
            up: builder.expert_matrices("up.weight", n_experts, INNER, WIDTH),
            down: builder.expert_matrices("down.weight", n_experts, WIDTH, INNER),
            n_used,
            inner: INNER,
            activation: Activation::Silu,
        };
        builder.node(Node {
            name: "experts".to_owned(),
            op,
            inputs: vec![embed],
            layer: None,
            width: WIDTH,
        })
    });
    Bench::new(graph, |name| match name {
        "gate.weight" | "up.weight" | "down.weight" => quant(stored),
        _ => quant("F32"),
    })
}

fn hold(
    subject: &Subject,
    bench: &Bench,
    (n_experts, n_used): (usize, usize),
    n_rows: usize,
    what: &str,
) {
    let seen = bench.outputs(subject, &tokens("experts", n_rows));
    let values = |name: &str| {
        let weights = bench.graph.weights.iter();
        let at = weights.clone().position(|weight| weight.name == name);
        bench.values(WeightId(at.expect("the graph has it")))
    };
    let size = WIDTH * INNER;
    assert_eq!(values("down.weight").len(), n_experts * size);
    let mut expected = Vec::new();
    for row in seen["embed"].chunks_exact(WIDTH).map(reference::wide) {
        let logits = reference::linear(values("router.weight"), &row);
        let mut sum = vec![0.0; WIDTH];
        for (expert, share) in reference::shares(&logits, n_used) {
            let of = |name: &str| &values(name)[expert * size..][..size];
            let gate = reference::linear(of("gate.weight"), &row);
            let up = reference::linear(of("up.weight"), &row);
            let inner = reference::silu_mul(&gate, &up);
            for (sum, given) in sum
                .iter_mut()
                .zip(reference::linear(of("down.weight"), &inner))
            {
                *sum += share * given;
            }
        }
        expected.extend(sum);
    }
    compare(subject, what, &seen["experts"], &expected, TOLERANCE);
}
