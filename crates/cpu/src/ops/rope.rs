//! Rope: turns pairs of a head's values by an angle that grows with the position.

use candor_arch::{Graph, NodeId, Op, Rope, RopeScaling, RopeStyle};

use crate::forward::{Forward, Stopped, each_row};
use crate::weights::Weights;

/// The angles of one way to rotate, for the rows of the present forward.
pub(crate) struct Angles {
    rope: Rope,
    /// Per token, for each pair.
    steps: Vec<f64>,
    /// What the rotated values are multiplied with.
    length: f64,
    /// Cosine and sine for each row and pair.
    turns: Vec<(f32, f32)>,
}

/// One entry for each different rotation in the graph, for sessions of that context.
pub(crate) fn angles(graph: &Graph, weights: &Weights, ctx_len: usize) -> Vec<Angles> {
    let mut all: Vec<Angles> = Vec::new();
    for node in &graph.nodes {
        if let Op::Rope(rope) = node.op
            && !all.iter().any(|angles| angles.rope == rope)
        {
            all.push(Angles {
                rope,
                steps: steps(rope, weights, ctx_len),
                length: rope.scaling.length(),
                turns: Vec::new(),
            });
        }
    }
    all
}

/// In float64, since an angle is a large number of which only the remainder counts.
fn steps(rope: Rope, weights: &Weights, ctx_len: usize) -> Vec<f64> {
    let factors = match rope.scaling {
        RopeScaling::LongRope {
            trained_context, ..
        } if ctx_len > trained_context => rope.long_factors,
        _ => rope.factors,
    };
    let factors = factors.map(|id| weights.vector(id));
    let step = |pair: usize| {
        let power = -2.0 * pair as f64 / rope.n_rot as f64;
        let factor = factors.map_or(1.0, |factors| f64::from(factors[pair]));
        f64::from(rope.base).powf(power) / factor * stretch(rope, pair)
    };
    (0..rope.n_rot / 2).map(step).collect()
}

/// What is left of a pair's step when the context is stretched.
fn stretch(rope: Rope, pair: usize) -> f64 {
    match rope.scaling {
        RopeScaling::None | RopeScaling::LongRope { .. } => 1.0,
        RopeScaling::Linear { factor } => 1.0 / f64::from(factor),
        RopeScaling::Yarn {
            factor,
            trained_context,
        } => {
            let n_rot = rope.n_rot as f64;
            // The pair that turns so many times within the context that was trained for.
            let pair_of = |turns: f64| {
                let wave = trained_context as f64 / (turns * std::f64::consts::TAU);
                n_rot * wave.ln() / (2.0 * f64::from(rope.base).ln())
            };
            let first = pair_of(YARN_TURNS_FAST).floor().max(0.0);
            let last = pair_of(YARN_TURNS_SLOW).ceil().min(n_rot - 1.0);
            let share = (pair as f64 - first) / (last - first).max(YARN_RAMP_MIN);
            let stretched = share.clamp(0.0, 1.0);
            stretched / f64::from(factor) + (1.0 - stretched)
        }
    }
}

/// Pairs that turn more often keep their frequency (the settings of the YaRN paper, section 3.2).
const YARN_TURNS_FAST: f64 = 32.0;

/// Pairs that turn less often are stretched as a whole.
const YARN_TURNS_SLOW: f64 = 1.0;

/// The shortest ramp between the two, in pairs: none would divide by zero.
const YARN_RAMP_MIN: f64 = 0.001;

/// Computes the angles of a forward's rows, once for all layers.
pub(crate) fn prepare(f: &mut Forward<'_>) {
    for angles in &mut f.work.angles {
        angles.turns.clear();
        for run in f.runs {
            for i in 0..run.rows.len() {
                let position = (run.first_position + i) as f64;
                let turns = angles.steps.iter().map(|step| {
                    let (sin, cos) = (position * step).sin_cos();
                    ((cos * angles.length) as f32, (sin * angles.length) as f32)
                });
                angles.turns.extend(turns);
            }
        }
    }
}

pub(crate) fn run(f: &mut Forward<'_>, node: NodeId) -> Result<(), Stopped> {
    let graph = &f.machine.weights.model.graph;
    let Op::Rope(rope) = graph.node(node).op else {
        unreachable!("only rotations come here");
    };
    let (input, width) = (graph.node(node).inputs[0], graph.node(node).width);
    let mut out = f.work.values.take(node, f.rows.len() * width);
    let x = f.work.values.of(input);
    let angles = f.work.angles.iter().find(|angles| angles.rope == rope);
    let turns = &angles
        .expect("every rotation of the graph has angles")
        .turns;
    let pairs = rope.n_rot / 2;
    let threads = &mut f.work.threads;
    let filled = each_row(
        &f.machine,
        f.cancel,
        threads,
        (&mut out, width),
        |row, out| {
            out.copy_from_slice(&x[row * width..][..width]);
            let turns = &turns[row * pairs..][..pairs];
            for head in out.chunks_exact_mut(rope.head_dim) {
                rotate(rope.style, turns, &mut head[..rope.n_rot]);
            }
        },
    );
    f.work.values.put(node, out);
    filled
}

fn rotate(style: RopeStyle, turns: &[(f32, f32)], values: &mut [f32]) {
    let turn = |(cos, sin): (f32, f32), a: &mut f32, b: &mut f32| {
        (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
    };
    match style {
        RopeStyle::Adjacent => {
            for (pair, t) in values.chunks_exact_mut(2).zip(turns) {
                if let [a, b] = pair {
                    turn(*t, a, b);
                }
            }
        }
        RopeStyle::Halves => {
            let (front, back) = values.split_at_mut(turns.len());
            for ((a, b), t) in front.iter_mut().zip(back).zip(turns) {
                turn(*t, a, b);
            }
        }
    }
}
