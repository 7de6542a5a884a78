//! GatedFfn: down · (activation(gate · x) ⊙ (up · x)).
//!
//! A thread computes the same tile of gate and up, and their product while both are in its cache;
//! the activations are rounded once for the two.

use candor_arch::{Activation, NodeId, Op};

use super::linear::{Factor, Product, Tools, multiply, multiply_tile, prepare, tile_size, tiles};
use crate::forward::{Forward, Machine, Stopped};
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
        inner,
        activation,
    };
    let done = ffn.multiply(&mut tools, x, &mut f.work.inner, &mut out);
    f.work.values.put(node, out);
    done
}

/// The three matrices of a feed-forward.
pub(crate) struct Ffn<'a> {
    pub(crate) gate: Matrix<'a>,
    pub(crate) up: Matrix<'a>,
    pub(crate) down: Matrix<'a>,
    pub(crate) inner: usize,
    pub(crate) activation: Activation,
}

impl Ffn<'_> {
    /// Fills `out`, whose rows are as wide as those of `x`.
    pub(crate) fn multiply(
        &self,
        tools: &mut Tools<'_>,
        x: &[f32],
        [gates, ups]: &mut [Vec<f32>; 2],
        out: &mut [f32],
    ) -> Result<(), Stopped> {
        let (inner, machine) = (self.inner, tools.machine);
        let (gate, up) = (self.gate, self.up);
        let n_rows = out.len() / self.down.rows();
        gates.resize(n_rows * inner, 0.0);
        ups.resize(n_rows * inner, 0.0);
        prepare(tools, x, n_rows, [gate, up].into_iter())?;
        let size = tile_size(machine, gate, n_rows, inner);
        let pairs = tiles(gates, inner, size).zip(tiles(ups, inner, size));
        let mut pairs: Vec<_> = pairs.collect();
        let factor = Factor {
            floats: x,
            panel: tools.panel,
        };
        machine.pool.each(
            &mut pairs,
            tools.threads,
            tools.cancel,
            |scratch, (g, u)| {
                multiply_tile(machine, gate, factor, scratch, g);
                multiply_tile(machine, up, factor, scratch, u);
                for row in g.rows() {
                    gate_mul(machine, self.activation, g.row(row), u.row(row));
                }
            },
        )?;
        let product = Product {
            matrix: self.down,
            bias: None,
            out,
        };
        multiply(tools, gates, &mut [product])
    }
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
        _ => {
            for (gate, up) in gate.iter_mut().zip(up) {
                *gate = activate(activation, *gate) * *up;
            }
        }
    }
}

/// √(2/π).
const GELU_SLOPE: f32 = 0.797_884_6;

/// Hendrycks and Gimpel, 2016.
const GELU_CUBE: f32 = 0.044_715;

/// The function as it is written.
pub(crate) fn activate(activation: Activation, x: f32) -> f32 {
    match activation {
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Gelu => 0.5 * x * (1.0 + (GELU_SLOPE * (x + GELU_CUBE * x * x * x)).tanh()),
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
    }
}
