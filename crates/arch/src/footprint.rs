//! What a model will take, as arithmetic.

use candor_modelfile::Index;

use crate::graph::{Graph, Op};
use crate::state::{KvType, StateLayout};

/// What the footprint depends on beside the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FootprintOptions {
    /// Tokens that all slots together may hold.
    pub state_tokens: usize,
    /// How keys and values are kept.
    pub kv: KvType,
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
    /// Of the state, for all tokens of one sequence.
    pub state_bytes: u64,
    /// Of the values between the nodes, about.
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
    let of_token = |layout: &StateLayout| layout.bytes_per_token(options.kv) as u64;
    let per_token = graph
        .state
        .iter()
        .map(of_token)
        .fold(0, u64::saturating_add);
    let state_bytes = graph.state.iter().map(|layout| {
        let kept = layout.tokens_kept(options.state_tokens) as u64;
        let of_tokens = of_token(layout).saturating_mul(kept);
        // What is summed up stays in float32.
        of_tokens.saturating_add(layout.values_per_slot() as u64 * 4)
    });
    let state_bytes = state_bytes.fold(0, u64::saturating_add);
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
        state_bytes,
        scratch_bytes: row.saturating_mul(options.rows_max as u64),
    }
}
