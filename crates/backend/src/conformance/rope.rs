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
                for scaling in SCALINGS {
                    check(subject, (style, scaling), n_rot, name);
                }
            }
        }
    }
}

const SCALINGS: [RopeScaling; 5] = [
    RopeScaling::None,
    RopeScaling::Linear { factor: 2.5 },
    RopeScaling::Yarn {
        factor: 4.0,
        trained_context: 64,
    },
    // The bench's sessions are of 1024 tokens.
    RopeScaling::LongRope {
        trained_context: 1024,
        length: 1.25,
    },
    RopeScaling::LongRope {
        trained_context: 1023,
        length: 1.25,
    },
];

/// What the divisors of sessions beyond the trained context are called.
const LONG: &str = "rope_factors_long.weight";

/// What divides the frequency of each pair, and what the rotated values are multiplied with.
fn stretched(scaling: RopeScaling, base: f32, factors: &[f32]) -> (Vec<f32>, f64) {
    let pairs = factors.len();
    match scaling {
        RopeScaling::None => (factors.to_vec(), 1.0),
        RopeScaling::Linear { factor } => (factors.iter().map(|f| f * factor).collect(), 1.0),
        RopeScaling::Yarn {
            factor,
            trained_context,
        } => {
            // Turns within the trained context: from 32 on as it was, up to 1 divided.
            let pair_of = |turns: f64| {
                let wave = trained_context as f64 / turns / std::f64::consts::TAU;
                pairs as f64 * wave.ln() / f64::from(base).ln()
            };
            let first = pair_of(32.0).floor().max(0.0);
            let last = pair_of(1.0).ceil().min(2.0 * pairs as f64 - 1.0);
            let divisor = |(pair, given): (usize, &f32)| {
                let share = ((pair as f64 - first) / (last - first).max(0.001)).clamp(0.0, 1.0);
                let kept = share / f64::from(factor) + (1.0 - share);
                (f64::from(*given) / kept) as f32
            };
            let divisors = factors.iter().enumerate().map(divisor).collect();
            (divisors, 1.0 + 0.1 * f64::from(factor).ln())
        }
        RopeScaling::LongRope { length, .. } => (factors.to_vec(), f64::from(length)),
    }
}

fn check(
    subject: &Subject,
    (style, scaling): (RopeStyle, RopeScaling),
    n_rot: usize,
    factors: &str,
) {
    let (head_dim, n_heads) = (64, 3);
    let (width, base) = (head_dim * n_heads, 500_000.0);
    let mut ids = [None; 2];
    let graph = around(width, |builder, embed| {
        ids = [factors, LONG].map(|name| {
            let used = !factors.is_empty();
            used.then(|| builder.vector(name, n_rot / 2))
        });
        builder.node(Node {
            name: "rope".to_owned(),
            op: Op::Rope(Rope {
                style,
                head_dim,
                n_rot,
                base,
                scaling,
                factors: ids[0],
                long_factors: ids[1],
            }),
            inputs: vec![embed],
            layer: None,
            width,
        })
    });
    let bench = Bench::new(graph, |_| quant("F32"));
    let seen = bench.outputs(subject, &tokens("rope", subject.size.pick(300, 40)));
    let ones = vec![1.0; n_rot / 2];
    let id = match scaling {
        RopeScaling::LongRope {
            trained_context: 1023,
            ..
        } => ids[1],
        _ => ids[0],
    };
    let factors = id.map_or(&ones[..], |id| bench.values(id));
    let (factors, length) = stretched(scaling, base, factors);
    let mut expected = Vec::new();
    for (position, row) in seen["embed"].chunks_exact(width).enumerate() {
        for head in row.chunks_exact(head_dim) {
            let head = reference::wide(head);
            let mut turned = reference::rope(style, base, &factors, position, &head);
            turned[..n_rot].iter_mut().for_each(|v| *v *= length);
            expected.extend(turned);
        }
    }
    let what = format!("{style:?} {scaling:?} {n_rot} of {head_dim}");
    compare(subject, &what, &seen["rope"], &expected, TOLERANCE);
}
