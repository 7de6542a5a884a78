//! Part: some values of every period of a row.

use candor_arch::{NodeId, Op};

use crate::forward::{Forward, Stopped, each_row};

pub(crate) fn run(f: &mut Forward<'_>, node: NodeId) -> Result<(), Stopped> {
    let graph = &f.machine.weights.model.graph;
    let Op::Part { period, start, len } = graph.node(node).op else {
        unreachable!("only parts come here");
    };
    let (input, width) = (graph.node(node).inputs[0], graph.node(node).width);
    let input_width = graph.node(input).width;
    let mut out = f.work.values.take(node, f.rows.len() * width);
    let x = f.work.values.of(input);
    let threads = &mut f.work.threads;
    let filled = each_row(
        &f.machine,
        f.cancel,
        threads,
        (&mut out, width),
        |row, out| {
            let x = x[row * input_width..][..input_width].chunks_exact(period);
            for (out, x) in out.chunks_exact_mut(len).zip(x) {
                out.copy_from_slice(&x[start..start + len]);
            }
        },
    );
    f.work.values.put(node, out);
    filled
}
