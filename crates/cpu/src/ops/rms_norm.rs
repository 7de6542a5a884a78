//! RmsNorm: x / sqrt(mean(x²) + eps) · weight, for each part of the row as long as the weight.

use candor_arch::{NodeId, WeightId};

use crate::forward::{Forward, Machine, Stopped, each_row};

pub(crate) fn run(
    f: &mut Forward<'_>,
    node: NodeId,
    weight: WeightId,
    eps: f32,
) -> Result<(), Stopped> {
    let graph = &f.machine.weights.model.graph;
    let (input, width) = (graph.node(node).inputs[0], graph.node(node).width);
    let mut out = f.work.values.take(node, f.rows.len() * width);
    let x = f.work.values.of(input);
    let weight = f.machine.weights.vector(weight);
    let threads = &mut f.work.threads;
    let machine = &f.machine;
    let filled = each_row(machine, f.cancel, threads, (&mut out, width), |row, out| {
        norm_row(machine, &x[row * width..][..width], weight, eps, out);
    });
    f.work.values.put(node, out);
    filled
}

/// One row, with the arithmetic of the path.
pub(crate) fn norm_row(
    machine: &Machine<'_>,
    x: &[f32],
    weight: &[f32],
    eps: f32,
    out: &mut [f32],
) {
    for (x, out) in x
        .chunks_exact(weight.len())
        .zip(out.chunks_exact_mut(weight.len()))
    {
        norm_part(machine, x, weight, eps, out);
    }
}

fn norm_part(machine: &Machine<'_>, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    if !machine.is_exact() {
        return machine.kernels.rms_norm(x, weight, eps, out);
    }
    let squares: f64 = x.iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
    let scale = (1.0 / (squares / x.len() as f64 + f64::from(eps)).sqrt()) as f32;
    for ((out, x), weight) in out.iter_mut().zip(x).zip(weight) {
        *out = x * scale * weight;
    }
}
