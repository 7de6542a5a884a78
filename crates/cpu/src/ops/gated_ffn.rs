//! GatedFfn: down · (silu(gate · x) ⊙ (up · x)).
//!
//! A thread computes the same tile of gate and up, and their product while both are in its cache;
//! the activations are rounded once for the two.

use candor_arch::{Activation, NodeId, Op};

use super::linear::{Factor, Product, Tools, multiply, multiply_tile, prepare, tile_size, tiles};
use crate::forward::{Forward, Machine, Stopped};

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
    // The one activation there is.
    let Activation::Silu = activation;
    let n_rows = f.rows.len();
    let mut out = f.work.values.take(node, n_rows * graph.node(node).width);
    let x = f.work.values.of(graph.node(node).inputs[0]);
    let [gates, ups] = &mut f.work.inner;
    gates.resize(n_rows * inner, 0.0);
    ups.resize(n_rows * inner, 0.0);
    let machine = &f.machine;
    let mut tools = Tools {
        machine,
        cancel: f.cancel,
        threads: &mut f.work.threads,
        panel: &mut f.work.panel,
    };
    let (gate, up, down) = (
        machine.matrix(gate),
        machine.matrix(up),
        machine.matrix(down),
    );
    let done = prepare(&mut tools, x, n_rows, [gate, up].into_iter()).and_then(|()| {
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
                    silu_mul(machine, g.row(row), u.row(row));
                }
            },
        )?;
        let product = Product {
            matrix: down,
            bias: None,
            out: &mut out,
        };
        multiply(&mut tools, gates, &mut [product])
    });
    f.work.values.put(node, out);
    done
}

fn silu_mul(machine: &Machine<'_>, gate: &mut [f32], up: &[f32]) {
    if !machine.is_exact() {
        return machine.kernels.silu_mul(gate, up);
    }
    for (gate, up) in gate.iter_mut().zip(up) {
        *gate = *gate / (1.0 + (-*gate).exp()) * up;
    }
}
