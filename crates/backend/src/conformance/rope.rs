//! Rope.

use candor_arch::{Node, Op, Rope, RopeScaling, RopeStyle};

use super::bench::{Bench, around, compare, quant, tokens};
use super::{Subject, Tolerance, reference};

/// Sine and cosine rounded to float32, and two products.
const TOLERANCE: Tolerance = Tolerance {
    exact: 1e-6,
    fast: 1e-6,
};

/// Both styles, whole and partial rotation, with and without factors, over many positions.
pub fn rope_matches_the_reference(subject: &Subject) {
    for style in [RopeStyle::Adjacent, RopeStyle::Halves] {
        for n_rot in [64, 16] {
            for name in ["", "rope_freqs.weight"] {
                check(subject, style, n_rot, name);
            }
        }
    }
}

fn check(subject: &Subject, style: RopeStyle, n_rot: usize, factors: &str) {
    let (head_dim, n_heads) = (64, 3);
    let (width, base) = (head_dim * n_heads, 500_000.0);
    let mut id = None;
    let graph = around(width, |builder, embed| {
        id = (!factors.is_empty()).then(|| builder.vector(factors, n_rot / 2));
        builder.node(Node {
            name: "rope".to_owned(),
            op: Op::Rope(Rope {
                style,
                head_dim,
                n_rot,
                base,
                scaling: RopeScaling::None,
                factors: id,
            }),
            inputs: vec![embed],
            layer: None,
            width,
        })
    });
    let bench = Bench::new(graph, |_| quant("F32"));
    let seen = bench.outputs(subject, &tokens("rope", 300));
    let ones = vec![1.0; n_rot / 2];
    let factors = id.map_or(&ones[..], |id| bench.values(id));
    let mut expected = Vec::new();
    for (position, row) in seen["embed"].chunks_exact(width).enumerate() {
        for head in row.chunks_exact(head_dim) {
            expected.extend(reference::rope(
                style,
                base,
                factors,
                position,
                &reference::wide(head),
            ));
        }
    }
    let what = format!("{style:?} {n_rot} of {head_dim}");
    compare(subject, &what, &seen["rope"], &expected, TOLERANCE);
}
