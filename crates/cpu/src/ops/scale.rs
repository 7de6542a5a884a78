//! Scale: factor · x.

use candor_arch::NodeId;

use crate::forward::{Forward, Stopped, each_row};

pub(crate) fn run(f: &mut Forward<'_>, node: NodeId, factor: f32) -> Result<(), Stopped> {
    let graph = &f.machine.weights.model.graph;
    let (input, width) = (graph.node(node).inputs[0], graph.node(node).width);
    let mut out = f.work.values.take(node, f.rows.len() * width);
    let x = f.work.values.of(input);
    let threads = &mut f.work.threads;
    let filled = each_row(
        &f.machine,
        f.cancel,
        threads,
        (&mut out, width),
        |row, out| {
            for (out, x) in out.iter_mut().zip(&x[row * width..]) {
                *out = x * factor;
            }
        },
    );
    f.work.values.put(node, out);
    filled
}
