//! Gate: x ⊙ activation(gate), where a value of the gate may be for several of x.

use candor_arch::{Activation, NodeId};

use super::gated_ffn::{activate, gated};
use crate::forward::{Forward, Stopped, each_row};

pub(crate) fn run(
    f: &mut Forward<'_>,
    node: NodeId,
    activation: Activation,
) -> Result<(), Stopped> {
    let graph = &f.machine.weights.model.graph;
    let (x, gate) = (graph.node(node).inputs[0], graph.node(node).inputs[1]);
    let (width, n_gates) = (graph.node(node).width, graph.node(gate).width);
    let mut out = f.work.values.take(node, f.rows.len() * width);
    let (x, gates) = (f.work.values.of(x), f.work.values.of(gate));
    let threads = &mut f.work.threads;
    let filled = each_row(
        &f.machine,
        f.cancel,
        threads,
        (&mut out, width),
        |row, out| {
            let gates = &gates[row * n_gates..][..n_gates];
            let x = x[row * width..][..width].chunks_exact(width / n_gates);
            let parts = out.chunks_exact_mut(width / n_gates).zip(x);
            for ((out, x), gate) in parts.zip(gates) {
                let factor = activate(activation, *gate);
                for (out, x) in out.iter_mut().zip(x) {
                    *out = gated(activation, *x) * factor;
                }
            }
        },
    );
    f.work.values.put(node, out);
    filled
}
