//! CausalConv: silu of a weighted sum over each channel's last values.
//!
//! The state keeps the rows before a run, the oldest first.

use candor_arch::{Activation, NodeId, WeightId};

use super::gated_ffn::activate;
use crate::forward::{Forward, Stopped, each_row};

pub(crate) fn run(
    f: &mut Forward<'_>,
    node: NodeId,
    weight: WeightId,
    taps: usize,
) -> Result<(), Stopped> {
    let it = f.machine.weights.model.graph.node(node);
    let layer = it.layer.expect("a convolution belongs to a layer");
    let (input, width) = (it.inputs[0], it.width);
    let mut out = f.work.values.take(node, f.rows.len() * width);
    let weight = f.machine.weights.vector(weight);
    // Tap by tap, as the rows of values are, so that channels are summed side by side.
    let by_tap: Vec<f32> = (0..taps)
        .flat_map(|tap| weight[tap..].iter().step_by(taps))
        .copied()
        .collect();
    let (exact, kernels) = (f.machine.is_exact(), f.machine.kernels);
    let ones = vec![1.0; width];
    let mut done = Ok(());
    for run in f.runs {
        let rows = run.rows.start * width..run.rows.end * width;
        let x = &f.work.values.of(input)[rows.clone()];
        let kept = f.state.conv(layer, run.slot);
        let before = kept.before.unwrap_or(kept.now);
        // The rows before the run, then those of the run.
        let mut padded = Vec::with_capacity(before.len() + x.len());
        padded.extend_from_slice(before);
        padded.extend_from_slice(x);
        kept.now
            .copy_from_slice(&padded[padded.len() - (taps - 1) * width..]);
        let threads = &mut f.work.threads;
        let filled = each_row(
            &f.machine,
            f.cancel,
            threads,
            (&mut out[rows], width),
            |row, out| {
                out.fill(0.0);
                let last = padded[row * width..].chunks_exact(width);
                for (values, weights) in last.zip(by_tap.chunks_exact(width)) {
                    for ((out, v), w) in out.iter_mut().zip(values).zip(weights) {
                        *out += v * w;
                    }
                }
                if exact {
                    for out in out {
                        *out = activate(Activation::Silu, *out);
                    }
                } else {
                    kernels.silu_mul(out, &ones);
                }
            },
        );
        if filled.is_err() {
            done = filled;
            break;
        }
    }
    f.work.values.put(node, out);
    done
}
