//! Rope: turns pairs of a head's values by an angle that grows with the position.

use candor_arch::{Graph, NodeId, Op, Rope, RopeAngles, RopeStyle};

use crate::forward::{Forward, Stopped, each_row};
use crate::weights::Weights;

/// The angles of one way to rotate, for the rows of the present forward.
pub(crate) struct Angles {
    rope: Rope,
    of_positions: RopeAngles,
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
                of_positions: RopeAngles::new(&rope, ctx_len, |id| weights.vector(id)),
                turns: Vec::new(),
            });
        }
    }
    all
}

/// Computes the angles of a forward's rows, once for all layers.
pub(crate) fn prepare(f: &mut Forward<'_>) {
    for angles in &mut f.work.angles {
        angles.turns.clear();
        for run in f.runs {
            for position in (run.first_position..).take(run.rows.len()) {
                angles.turns.extend(angles.of_positions.turns(position));
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
