//! What a model will take, as arithmetic.

use candor_modelfile::Index;

use crate::graph::{Graph, Op};
use crate::state::StateSizes;

/// What the footprint depends on beside the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FootprintOptions {
    /// How large the state is to be.
    pub state: StateSizes,
    /// Rows of the largest batch.
    pub rows_max: usize,
}

/// Bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Of the weights, as stored in the file.
    pub weights_bytes: u64,
    /// Of tensors that are laid out anew before a backend readies its own weights.
    pub unpacked_bytes: u64,
    /// Of the state, for each token while every layer keeps it.
    pub state_bytes_per_token: u64,
    /// Of the state, for all slots, with what they can come back to.
    pub state_bytes: u64,
    /// Of the values between the nodes, about, and of keys and values unfolded from 8 bits.
    pub scratch_bytes: u64,
}

impl Footprint {
    /// All of it.
    pub fn total_bytes(&self) -> u64 {
        self.weights_bytes
            .saturating_add(self.unpacked_bytes)
            .saturating_add(self.state_bytes)
            .saturating_add(self.scratch_bytes)
    }
}

/// Values that a row keeps at once, in widths of the widest node: input, sum, and an operation's
/// own inner values twice.
const LIVE_WIDTHS: u64 = 4;

/// The footprint of a graph that was checked against this index.
pub fn footprint(graph: &Graph, index: &Index, options: FootprintOptions) -> Footprint {
    let weights_bytes = graph
        .weights
        .iter()
        .filter_map(|w| Some((w, index.tensor(&w.name)?)))
        .map(|(w, t)| w.bytes_of(0..(t.range.end - t.range.start) as usize).len() as u64)
        .fold(0, u64::saturating_add);
    let layouts = graph.state.iter();
    let of_tokens = layouts.map(|layout| layout.bytes_per_token(options.state.kv) as u64);
    let per_token = of_tokens.fold(0, u64::saturating_add);
    let widest = graph.nodes.iter().map(|node| match node.op {
        Op::Logits { .. } => 0,
        Op::GatedFfn { inner, .. } | Op::Experts { inner, .. } => inner.max(node.width),
        _ => node.width,
    });
    let row = (widest.max().unwrap_or(0) as u64).saturating_mul(LIVE_WIDTHS * 4);
    Footprint {
        weights_bytes,
        unpacked_bytes: index.unpacked_bytes,
        state_bytes_per_token: per_token,
        state_bytes: options.state.pool_bytes(&graph.state),
        scratch_bytes: row
            .saturating_mul(options.rows_max as u64)
            .saturating_add(options.state.unfolded_bytes(&graph.state)),
    }
}
