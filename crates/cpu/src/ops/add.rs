//! Add: the residual, alone or with the normalisation of its sum.

use candor_arch::{NodeId, Op};

use super::rms_norm::norm_row;
use crate::forward::{Forward, Stopped, each_row};

pub(crate) fn run(f: &mut Forward<'_>, node: NodeId) -> Result<(), Stopped> {
    let graph = &f.machine.weights.model.graph;
    let (a, b) = (graph.node(node).inputs[0], graph.node(node).inputs[1]);
    let width = graph.node(node).width;
    let mut out = f.work.values.take(node, f.rows.len() * width);
    let (a, b) = (f.work.values.of(a), f.work.values.of(b));
    let threads = &mut f.work.threads;
    let filled = each_row(
        &f.machine,
        f.cancel,
        threads,
        (&mut out, width),
        |row, out| {
            sum_row(&a[row * width..], &b[row * width..], out);
        },
    );
    f.work.values.put(node, out);
    filled
}

/// The sum and its normalisation, row by row, while the row is in the cache.
pub(crate) fn with_norm(f: &mut Forward<'_>, sum: NodeId, normed: NodeId) -> Result<(), Stopped> {
    let graph = &f.machine.weights.model.graph;
    let Op::RmsNorm { weight, eps } = graph.node(normed).op else {
        unreachable!("the pattern ends with a normalisation");
    };
    let (a, b) = (graph.node(sum).inputs[0], graph.node(sum).inputs[1]);
    let width = graph.node(sum).width;
    let n_rows = f.rows.len();
    let mut sums = f.work.values.take(sum, n_rows * width);
    let mut out = f.work.values.take(normed, n_rows * width);
    let (a, b) = (f.work.values.of(a), f.work.values.of(b));
    let weight = f.machine.weights.vector(weight);
    let machine = &f.machine;
    let threads = &mut f.work.threads;
    let filled = each_row(
        machine,
        f.cancel,
        threads,
        (&mut sums, width),
        |row, out| {
            sum_row(&a[row * width..], &b[row * width..], out);
        },
    )
    .and_then(|()| {
        each_row(machine, f.cancel, threads, (&mut out, width), |row, out| {
            norm_row(machine, &sums[row * width..][..width], weight, eps, out);
        })
    });
    f.work.values.put(sum, sums);
    f.work.values.put(normed, out);
    filled
}

fn sum_row(a: &[f32], b: &[f32], out: &mut [f32]) {
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = a + b;
    }
}
