//! Attention.

use candor_arch::{Graph, GraphBuilder, Node, NodeId, Op, StateLayout};

use super::bench::{Bench, around, compare, quant, tokens};
use super::reference::Scores;
use super::{Subject, Tolerance, reference};
use crate::KvType;

/// Keys and values as float32; as float16, whose rounding is some 5e-4 of a value.
const FLOAT32: Tolerance = Tolerance {
    exact: 1e-5,
    fast: 1e-5,
};

/// See [`FLOAT32`].
const FLOAT16: Tolerance = Tolerance {
    exact: 2e-3,
    fast: 2e-3,
};

/// As 8-bit codes, whose step is a 127th of the largest of 32 values.
const EIGHT_BITS: Tolerance = Tolerance {
    exact: 2e-2,
    fast: 2e-2,
};

/// One head and many, shared keys or not, heads of odd sizes and of the largest, within a page and
/// over its border, with and without a window; bounded scores and sinks.
pub fn attention_matches_the_reference(subject: &Subject) {
    let cases = [
        (1, 1, 32, 1),
        (4, 4, 32, 20),
        (6, 2, 64, 300),
        (7, 1, 64, 255),
        (2, 1, 128, 520),
        (9, 1, 80, 40),
        (2, 2, 192, 20),
        (3, 1, 256, 290),
    ];
    let simulated = [
        (1, 1, 32, 1),
        (4, 4, 32, 20),
        (6, 2, 64, 290),
        (2, 1, 128, 30),
        (9, 1, 80, 20),
        (2, 2, 192, 12),
        (1, 1, 256, 40),
    ];
    for (n_heads, n_kv_heads, head_dim, n_rows) in subject.size.pick(&cases[..], &simulated[..]) {
        let (n_heads, n_kv_heads, n_rows) = (*n_heads, *n_kv_heads, *n_rows);
        let head_dim = *head_dim;
        let plain = Shape {
            n_heads,
            n_kv_heads,
            head_dim,
            window: None,
            softcap: None,
            sinks: Sinks::Without,
        };
        for window in [None, Some(1), Some(24), Some(300)] {
            check(subject, Shape { window, ..plain }, n_rows);
        }
        for (softcap, sinks) in [
            (Some(2.0), Sinks::Without),
            (None, Sinks::EachHead),
            (Some(2.0), Sinks::EachHead),
        ] {
            let shape = Shape {
                window: Some(270),
                softcap,
                sinks,
                ..plain
            };
            check(subject, shape, n_rows);
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Sinks {
    Without,
    EachHead,
}

#[derive(Clone, Copy, Debug)]
struct Shape {
    n_heads: usize,
    n_kv_heads: usize,
    head_dim: usize,
    window: Option<usize>,
    softcap: Option<f32>,
    sinks: Sinks,
}

/// Larger than the usual root of the head's size, so that the weights differ clearly.
const SCALE: f32 = 2.0;

/// What the heads' sinks are called.
const SINKS: &str = "sinks.weight";

fn graph(shape: Shape) -> Graph {
    let q_width = shape.n_heads * shape.head_dim;
    let kv_width = shape.n_kv_heads * shape.head_dim;
    let width = 64;
    let mut graph = around(width, |builder, embed| {
        let q = projection(builder, "q", embed, (q_width, width));
        let k = projection(builder, "k", embed, (kv_width, width));
        let v = projection(builder, "v", embed, (kv_width, width));
        let Shape {
            n_kv_heads,
            head_dim,
            ..
        } = shape;
        builder.state(match shape.window {
            None => StateLayout::Full {
                n_kv_heads,
                head_dim,
            },
            Some(tokens) => StateLayout::Window {
                tokens,
                n_kv_heads,
                head_dim,
            },
        });
        let sinks = match shape.sinks {
            Sinks::Without => None,
            Sinks::EachHead => Some(builder.vector(SINKS, shape.n_heads)),
        };
        builder.node(Node {
            name: "attn".to_owned(),
            op: Op::Attention {
                n_heads: shape.n_heads,
                n_kv_heads: shape.n_kv_heads,
                head_dim: shape.head_dim,
                scale: SCALE,
                softcap: shape.softcap,
                sinks,
            },
            inputs: vec![q, k, v],
            layer: Some(0),
            width: q_width,
        })
    });
    graph.hparams.n_layers = 1;
    graph
}

fn projection(
    builder: &mut GraphBuilder<'_>,
    name: &str,
    input: NodeId,
    (outputs, inputs): (usize, usize),
) -> NodeId {
    let weight = builder.matrix(&format!("{name}.weight"), outputs, inputs);
    builder.node(Node {
        name: name.to_owned(),
        op: Op::Linear { weight, bias: None },
        inputs: vec![input],
        layer: Some(0),
        width: outputs,
    })
}

fn check(subject: &Subject, shape: Shape, n_rows: usize) {
    let bench = Bench::new(graph(shape), |_| quant("F32"));
    let seen = bench.outputs_in_parts(subject, &tokens("attention", n_rows));
    let Shape {
        n_heads,
        n_kv_heads,
        head_dim,
        window,
        softcap,
        ..
    } = shape;
    let sinks = bench.named(SINKS);
    let rows = |name: &str, heads: usize| -> Vec<Vec<f64>> {
        seen[name]
            .chunks_exact(heads * head_dim)
            .map(reference::wide)
            .collect()
    };
    let (q, k, v) = (
        rows("q", n_heads),
        rows("k", n_kv_heads),
        rows("v", n_kv_heads),
    );
    let mut expected = Vec::new();
    for position in 0..n_rows {
        let first = (position + 1).saturating_sub(window.unwrap_or(n_rows));
        for head in 0..n_heads {
            let of = |rows: &'_ [Vec<f64>], head: usize| -> Vec<Vec<f64>> {
                let part = |row: &Vec<f64>| row[head * head_dim..][..head_dim].to_vec();
                rows.iter().map(part).collect()
            };
            let kv_head = head * n_kv_heads / n_heads;
            let query = of(&q[position..=position], head).concat();
            let (keys, values) = (
                of(&k[first..=position], kv_head),
                of(&v[first..=position], kv_head),
            );
            let keys: Vec<&[f64]> = keys.iter().map(|row| &row[..]).collect();
            let values: Vec<&[f64]> = values.iter().map(|row| &row[..]).collect();
            let how = Scores {
                scale: SCALE,
                softcap,
                sink: sinks.map(|sinks| sinks[head]),
            };
            expected.extend(reference::attention(&query, &keys, &values, how));
        }
    }
    let tolerance = match subject.kv {
        KvType::F32 => FLOAT32,
        KvType::F16 => FLOAT16,
        KvType::Q8_0 => EIGHT_BITS,
    };
    compare(
        subject,
        &format!("{shape:?}, {n_rows} rows"),
        &seen["attn"],
        &expected,
        tolerance,
    );
}
