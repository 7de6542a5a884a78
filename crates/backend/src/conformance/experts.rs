//! Experts.

use candor_arch::{Activation, ExpertBiases, Node, Op, Routing, Shares};

use super::bench::{Bench, around, compare, quant, tokens};
use super::{Subject, Tolerance, reference};

/// As for one feed-forward; the router is in float32 on either path, so the choice is the same.
const TOLERANCE: Tolerance = Tolerance {
    exact: 1e-5,
    fast: 2e-2,
};

/// Few and many experts and choices, types with kernels of their own and without, one row and many,
/// and every way to count what is chosen.
pub fn experts_match_the_reference(subject: &Subject) {
    let cases = [
        ("F32", (4, 1), 1),
        ("Q8_0", (8, 2), 40),
        ("Q4_K", (5, 5), 7),
        ("MXFP4", (16, 4), 33),
        // A reply with more experts than any one part of a device holds.
        ("Q4_K", (40, 6), 3),
    ];
    for (stored, (n_experts, n_used), n_rows) in cases {
        let routing = Routing {
            n_used,
            ..OF_CHOSEN
        };
        let plain = Case {
            stored: all_of(stored),
            n_experts,
            inner: subject.size.pick(512, 256),
            routing,
            activation: Activation::Silu,
            biases: Biases::Without,
        };
        let of_all = Routing {
            shares: Shares::OfAll,
            scale: 2.5,
            ..routing
        };
        let clamped = Case {
            activation: Activation::ClampedSwiglu,
            biases: Biases::Everywhere,
            ..plain
        };
        for case in [
            plain,
            Case {
                routing: of_all,
                ..plain
            },
            clamped,
        ] {
            hold(subject, &bench(case), case, n_rows);
        }
    }
}

/// One storage type.
pub fn experts_of(subject: &Subject, stored: &str) {
    let case = Case {
        stored: all_of(quant(stored).name),
        n_experts: 4,
        inner: subject.size.pick(512, 256),
        routing: OF_CHOSEN,
        activation: Activation::Silu,
        biases: Biases::Without,
    };
    for n_rows in [1, 3, 17] {
        hold(subject, &bench(case), case, n_rows);
    }
}

/// Every matrix may be stored in its own way, the router too.
pub fn experts_of_mixed_types_match_the_reference(subject: &Subject) {
    let cases = [
        (["F16", "Q4_K", "Q4_K", "Q6_K"], Biases::Without),
        (["BF16", "Q8_0", "Q4_0", "F16"], Biases::Everywhere),
        (["Q8_0", "F32", "Q5_K", "Q8_0"], Biases::Without),
        (["F32", "F16", "BF16", "F32"], Biases::Everywhere),
    ];
    for (stored, biases) in cases {
        let case = Case {
            stored,
            n_experts: 5,
            inner: 256,
            routing: OF_CHOSEN,
            activation: Activation::Silu,
            biases,
        };
        for n_rows in [1, 3, 17] {
            hold(subject, &bench(case), case, n_rows);
        }
    }
}

/// Of two equal shares the lower expert is chosen, whether all are equal or only some of them, and
/// whatever the shares are counted of.
pub fn ties_go_to_the_lower_expert(subject: &Subject) {
    // Each of the router's rows holds one value only: all tie, or three do for the second place (for
    // tokens whose values add up to less than nothing, the two zeros are the best).
    let routers = [[0.0; 6], [0.0, 0.25, 0.5, 0.25, 0.25, 0.0]];
    let shares = [Shares::OfChosen, Shares::OfAll];
    for (router, shares) in routers.iter().flat_map(|r| shares.map(|s| (r, s))) {
        let case = Case {
            stored: all_of("Q8_0"),
            n_experts: 6,
            inner: 256,
            routing: Routing {
                shares,
                ..OF_CHOSEN
            },
            activation: Activation::Silu,
            biases: Biases::Without,
        };
        let rows: Vec<f32> = router.iter().flat_map(|value| [*value; WIDTH]).collect();
        let mut bench = bench(case);
        bench.set("router.weight", &[6, WIDTH], quant("F32"), &rows);
        hold(subject, &bench, case, 5);
    }
}

/// Two, whose shares add up to one.
const OF_CHOSEN: Routing = Routing {
    n_used: 2,
    shares: Shares::OfChosen,
    scale: 1.0,
};

#[derive(Clone, Copy, Debug)]
enum Biases {
    Without,
    /// On the router and in every expert.
    Everywhere,
}

/// A router in float32, and matrices of one type.
fn all_of(stored: &'static str) -> [&'static str; 4] {
    ["F32", stored, stored, stored]
}

#[derive(Clone, Copy, Debug)]
struct Case {
    /// Router, gate, up, down.
    stored: [&'static str; 4],
    n_experts: usize,
    inner: usize,
    routing: Routing,
    activation: Activation,
    biases: Biases,
}

const WIDTH: usize = 256;

fn bench(case: Case) -> Bench {
    let Case {
        n_experts, inner, ..
    } = case;
    let graph = around(WIDTH, |builder, embed| {
        let op = Op::Experts {
            router: builder.matrix("router.weight", n_experts, WIDTH),
            gate: builder.expert_matrices("gate.weight", n_experts, inner, WIDTH),
            up: builder.expert_matrices("up.weight", n_experts, inner, WIDTH),
            down: builder.expert_matrices("down.weight", n_experts, WIDTH, inner),
            biases: match case.biases {
                Biases::Without => None,
                Biases::Everywhere => Some(ExpertBiases {
                    router: builder.vector("router.bias", n_experts),
                    gate: builder.table("gate.bias", &[n_experts, inner]),
                    up: builder.table("up.bias", &[n_experts, inner]),
                    down: builder.table("down.bias", &[n_experts, WIDTH]),
                }),
            },
            routing: case.routing,
            inner,
            activation: case.activation,
        };
        builder.node(Node {
            name: "experts".to_owned(),
            op,
            inputs: vec![embed],
            layer: None,
            width: WIDTH,
        })
    });
    let [router, gate, up, down] = case.stored;
    Bench::new(graph, |name| match name {
        "router.weight" => quant(router),
        "gate.weight" => quant(gate),
        "up.weight" => quant(up),
        "down.weight" => quant(down),
        _ => quant("F32"),
    })
}

/// The product with one expert's matrix, or with the router's, and its bias where it has one.
fn product(bench: &Bench, name: &str, (expert, outputs): (usize, usize), x: &[f64]) -> Vec<f64> {
    let size = outputs * x.len();
    let matrix = bench.named(&format!("{name}.weight"));
    let matrix = matrix.expect("the graph has it");
    let mut out = reference::linear(&matrix[expert * size..][..size], x);
    if let Some(bias) = bench.named(&format!("{name}.bias")) {
        for (out, bias) in out.iter_mut().zip(&bias[expert * outputs..]) {
            *out += f64::from(*bias);
        }
    }
    out
}

fn hold(subject: &Subject, bench: &Bench, case: Case, n_rows: usize) {
    let seen = bench.outputs(subject, &tokens("experts", n_rows));
    let mut expected = Vec::new();
    for row in seen["embed"].chunks_exact(WIDTH).map(reference::wide) {
        let logits = product(bench, "router", (0, case.n_experts), &row);
        let mut sum = vec![0.0; WIDTH];
        for (expert, share) in reference::shares(&logits, case.routing) {
            let gate = product(bench, "gate", (expert, case.inner), &row);
            let up = product(bench, "up", (expert, case.inner), &row);
            let inner = reference::all_gated(case.activation, &gate, &up);
            let given = product(bench, "down", (expert, WIDTH), &inner);
            for (sum, given) in sum.iter_mut().zip(given) {
                *sum += share * given;
            }
        }
        expected.extend(sum);
    }
    let what = format!("{case:?}, {n_rows} rows");
    compare(subject, &what, &seen["experts"], &expected, TOLERANCE);
}
