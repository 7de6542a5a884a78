//! DeltaNet: the gated delta rule, head by head, token after token.
//!
//! A head's matrix is kept by the elements of the key, then of the value. Sums have a fixed order,
//! so that they have the same bits on every machine, and a row's result does not depend on where a
//! chunk begins.

use candor_arch::{DeltaNet, KeyOrder, NodeId};
use candor_backend::Run;

use crate::forward::{Forward, Stopped};
use crate::simd::{DeltaStep, Kernels, Tile, TileQueue};
use crate::state::Kept;

pub(crate) fn run(f: &mut Forward<'_>, node: NodeId, net: DeltaNet) -> Result<(), Stopped> {
    let it = f.machine.weights.model.graph.node(node);
    let layer = it.layer.expect("a delta net belongs to a layer");
    let width = it.width;
    let mut out = f.work.values.take(node, f.rows.len() * width);
    let mixed = f.work.values.of(it.inputs[0]);
    let alpha = f.work.values.of(it.inputs[1]);
    let beta = f.work.values.of(it.inputs[2]);
    let rows = Rows {
        net,
        kernels: f.machine.kernels,
        mixed,
        alpha,
        beta,
        a: f.machine.weights.vector(net.a),
        dt: f.machine.weights.vector(net.dt),
    };
    let threads = &mut f.work.threads;
    let mut done = Ok(());
    for run in f.runs {
        let Kept { before, now } = f.state.matrices(layer, run.slot);
        let size = net.state_size * net.state_size;
        let part = &mut out[run.rows.start * width..run.rows.end * width];
        let queue = TileQueue::new(part, width, run.rows.len(), net.state_size);
        let tiles = std::iter::from_fn(|| queue.take());
        let mut heads: Vec<_> = tiles
            .zip(now.chunks_exact_mut(size))
            .enumerate()
            .map(|(head, (tile, state))| {
                let before = before.map(|before| &before[head * size..][..size]);
                (head, tile, state, before)
            })
            .collect();
        let told = f.machine.pool.each(
            &mut heads,
            threads,
            f.cancel,
            |scratch, (head, tile, state, before)| {
                if let Some(before) = before {
                    state.copy_from_slice(before);
                }
                rows.tell(*head, run, (state, scratch), tile);
            },
        );
        if let Err(error) = told {
            done = Err(error.into());
            break;
        }
    }
    f.work.values.put(node, out);
    done
}

/// The inputs of all rows, and the numbers of the heads.
struct Rows<'a> {
    net: DeltaNet,
    kernels: &'static Kernels,
    mixed: &'a [f32],
    alpha: &'a [f32],
    beta: &'a [f32],
    a: &'a [f32],
    dt: &'a [f32],
}

impl Rows<'_> {
    /// One value head through the rows of a run. `state` is its matrix.
    fn tell(
        &self,
        head: usize,
        run: &Run,
        (state, scratch): (&mut [f32], &mut Vec<f32>),
        tile: &mut Tile<'_>,
    ) {
        let DeltaNet {
            n_key_heads,
            n_value_heads,
            state_size: n,
            ..
        } = self.net;
        let key_head = match self.net.key_order {
            KeyOrder::Grouped => head / (n_value_heads / n_key_heads),
            KeyOrder::Cyclic => head % n_key_heads,
        };
        let keys = n_key_heads * n;
        let channels = 2 * keys + n_value_heads * n;
        scratch.clear();
        scratch.resize(2 * n, 0.0);
        let (q, k) = scratch.split_at_mut(n);
        let scale = 1.0 / (n as f32).sqrt();
        for (i, row) in run.rows.clone().enumerate() {
            let mixed = &self.mixed[row * channels..][..channels];
            self.unit(&mixed[key_head * n..][..n], q);
            self.unit(&mixed[keys + key_head * n..][..n], k);
            let v = &mixed[2 * keys + head * n..][..n];
            let at = row * n_value_heads + head;
            let beta = 1.0 / (1.0 + (-self.beta[at]).exp());
            let decay = (self.a[head] * softplus(self.alpha[at] + self.dt[head])).exp();
            self.kernels.delta(DeltaStep {
                state,
                query: q,
                key: k,
                value: v,
                decay,
                beta,
                scale,
                out: tile.row(i),
            });
        }
    }

    /// A vector over its length.
    fn unit(&self, x: &[f32], out: &mut [f32]) {
        let factor = 1.0 / (dot(x, x) + self.net.eps).sqrt();
        for (out, x) in out.iter_mut().zip(x) {
            *out = x * factor;
        }
    }
}

/// ln(1 + exp(x)), which for large x is x.
fn softplus(x: f32) -> f32 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// Lanes of a sum.
const LANES: usize = 16;

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    lanes.iter().sum()
}
