//! GatedFfn: down · (activation(gate · x) ⊙ (up · x)).
//!
//! A thread computes the same tile of gate and up, and their product while both are in its cache;
//! the activations are rounded once for the two.

use candor_arch::{Activation, NodeId, Op};

use super::linear::{Factor, Tools, add_bias, multiply_tile, prepare, tile_size};
use crate::forward::{Forward, Machine, Stopped};
use crate::simd::grouped_tiles;
use crate::weights::Matrix;

pub(crate) fn run(f: &mut Forward<'_>, node: NodeId) -> Result<(), Stopped> {
    let graph = &f.machine.weights.model.graph;
    let Op::GatedFfn {
        gate,
        up,
        down,
        inner,
        activation,
    } = graph.node(node).op
    else {
        unreachable!("only gated feed-forward nodes come here");
    };
    let n_rows = f.rows.len();
    let mut out = f.work.values.take(node, n_rows * graph.node(node).width);
    let x = f.work.values.of(graph.node(node).inputs[0]);
    let machine = &f.machine;
    let mut tools = Tools {
        machine,
        cancel: f.cancel,
        threads: &mut f.work.threads,
        panel: &mut f.work.panel,
    };
    let ffn = Ffn {
        gate: machine.matrix(gate),
        up: machine.matrix(up),
        down: machine.matrix(down),
        biases: None,
        inner,
        activation,
    };
    let done = multiply_parts(&[(ffn, n_rows)], &mut tools, x, &mut f.work.inner, &mut out);
    f.work.values.put(node, out);
    done
}

/// The three matrices of a feed-forward.
#[derive(Clone, Copy)]
pub(crate) struct Ffn<'a> {
    pub(crate) gate: Matrix<'a>,
    pub(crate) up: Matrix<'a>,
    pub(crate) down: Matrix<'a>,
    pub(crate) biases: Option<FfnBiases<'a>>,
    pub(crate) inner: usize,
    pub(crate) activation: Activation,
}

/// What is added to their products.
#[derive(Clone, Copy)]
pub(crate) struct FfnBiases<'a> {
    pub(crate) gate: &'a [f32],
    pub(crate) up: &'a [f32],
    pub(crate) down: &'a [f32],
}

/// Sends rows through feed-forwards of one shape: the first rows of `x` through the first, the rows
/// behind them through the next. `parts` says how many through each. Fills `out`, whose rows are as
/// wide as those of `x`. The tiles of all of them are in one store, so that a thread that is done
/// with one feed-forward helps with the next instead of waiting.
pub(crate) fn multiply_parts(
    parts: &[(Ffn<'_>, usize)],
    tools: &mut Tools<'_>,
    x: &[f32],
    [gates, ups]: &mut [Vec<f32>; 2],
    out: &mut [f32],
) -> Result<(), Stopped> {
    let machine = tools.machine;
    let Some((first, _)) = parts.first() else {
        return Ok(());
    };
    let (inner, width) = (first.inner, first.down.rows());
    let n_rows: usize = parts.iter().map(|(_, rows)| rows).sum();
    gates.resize(n_rows * inner, 0.0);
    ups.resize(n_rows * inner, 0.0);
    let both = parts.iter().flat_map(|(ffn, _)| [ffn.gate, ffn.up]);
    prepare(tools, x, n_rows, both)?;
    let of_inner = |values| {
        let gates = parts.iter().map(|(ffn, rows)| (ffn.gate, *rows));
        grouped_tiles(values, inner, sizes(machine, gates, inner * parts.len()))
    };
    let mut pairs: Vec<_> = of_inner(gates).into_iter().zip(of_inner(ups)).collect();
    let factor = Factor {
        floats: x,
        panel: tools.panel,
    };
    machine.pool.each(
        &mut pairs,
        tools.threads,
        tools.cancel,
        |scratch, ((part, g), (_, u))| {
            let ffn = &parts[*part].0;
            multiply_tile(machine, ffn.gate, factor, scratch, g);
            multiply_tile(machine, ffn.up, factor, scratch, u);
            if let Some(biases) = ffn.biases {
                add_bias(machine, biases.gate, g);
                add_bias(machine, biases.up, u);
            }
            for row in g.rows() {
                gate_mul(machine, ffn.activation, g.row(row), u.row(row));
            }
        },
    )?;
    drop(pairs);
    prepare(tools, gates, n_rows, parts.iter().map(|(ffn, _)| ffn.down))?;
    let downs = parts.iter().map(|(ffn, rows)| (ffn.down, *rows));
    let mut tiles = grouped_tiles(out, width, sizes(machine, downs, width * parts.len()));
    let factor = Factor {
        floats: gates,
        panel: tools.panel,
    };
    machine.pool.each(
        &mut tiles,
        tools.threads,
        tools.cancel,
        |scratch, (part, tile)| {
            let ffn = &parts[*part].0;
            multiply_tile(machine, ffn.down, factor, scratch, tile);
            if let Some(biases) = ffn.biases {
                add_bias(machine, biases.down, tile);
            }
        },
    )?;
    Ok(())
}

/// For each matrix and its rows, how many they are and the size of a tile of their product.
fn sizes<'m>(
    machine: &Machine<'_>,
    matrices: impl Iterator<Item = (Matrix<'m>, usize)>,
    total: usize,
) -> impl Iterator<Item = (usize, (usize, usize))> {
    matrices.map(move |(matrix, rows)| (rows, tile_size(machine, matrix, rows, total)))
}

/// `gate` becomes activation(gate) ⊙ up; what `up` holds then is not said.
pub(crate) fn gate_mul(
    machine: &Machine<'_>,
    activation: Activation,
    gate: &mut [f32],
    up: &mut [f32],
) {
    match activation {
        Activation::Silu if !machine.is_exact() => machine.kernels.silu_mul(gate, up),
        Activation::Gelu if !machine.is_exact() => {
            // gelu(x) = silu(t x) / t, where t = 2 √(2/π) (1 + 0.044715 x²).
            for (gate, up) in gate.iter_mut().zip(up.iter_mut()) {
                let t = 2.0 * GELU_SLOPE * (1.0 + GELU_CUBE * *gate * *gate);
                *gate *= t;
                *up /= t;
            }
            machine.kernels.silu_mul(gate, up);
        }
        Activation::ClampedSwiglu if !machine.is_exact() => {
            // x / (1 + exp(-s x)) = silu(s x) / s.
            for (gate, up) in gate.iter_mut().zip(up.iter_mut()) {
                *gate = at_most(SWIGLU_LIMIT, *gate) * SWIGLU_SLOPE;
                *up = gated(activation, *up) / SWIGLU_SLOPE;
            }
            machine.kernels.silu_mul(gate, up);
        }
        _ => {
            for (gate, up) in gate.iter_mut().zip(up) {
                *gate = activate(activation, *gate) * gated(activation, *up);
            }
        }
    }
}

/// √(2/π).
const GELU_SLOPE: f32 = 0.797_884_6;

/// Hendrycks and Gimpel, 2016.
const GELU_CUBE: f32 = 0.044_715;

/// How far the clamped function reaches, and its slope (gpt-oss's model card and published code).
const SWIGLU_LIMIT: f32 = 7.0;

/// See [`SWIGLU_LIMIT`].
const SWIGLU_SLOPE: f32 = 1.702;

/// What is no number stays none, unlike with `min`.
fn at_most(limit: f32, x: f32) -> f32 {
    if x > limit { limit } else { x }
}

/// What the gate is for, as the product takes it.
pub(crate) fn gated(activation: Activation, x: f32) -> f32 {
    match activation {
        Activation::ClampedSwiglu => x.clamp(-SWIGLU_LIMIT, SWIGLU_LIMIT) + 1.0,
        Activation::Silu | Activation::Gelu | Activation::Sigmoid => x,
    }
}

/// The function as it is written.
pub(crate) fn activate(activation: Activation, x: f32) -> f32 {
    match activation {
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Gelu => 0.5 * x * (1.0 + (GELU_SLOPE * (x + GELU_CUBE * x * x * x)).tanh()),
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Activation::ClampedSwiglu => {
            let x = at_most(SWIGLU_LIMIT, x);
            x / (1.0 + (-SWIGLU_SLOPE * x).exp())
        }
    }
}
