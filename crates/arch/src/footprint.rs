//! What a model will take, as arithmetic.

use candor_modelfile::Index;

use crate::graph::{Graph, Op};

/// What the footprint depends on beside the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FootprintOptions {
    /// Tokens that all slots together may hold.
    pub state_tokens: usize,
    /// Bytes of one value of a key or value.
    pub state_value_bytes: usize,
    /// Rows of the largest batch.
    pub rows_max: usize,
}

/// Bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Of the weights, as stored in the file.
    pub weights_bytes: u64,
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
        .filter_map(|w| index.tensor(&w.name))
        .map(|t| t.range.end - t.range.start)
        .fold(0, u64::saturating_add);
    let values: usize = graph
        .state
        .iter()
        .map(|layout| layout.values_per_token())
        .sum();
    let per_token = (values as u64).saturating_mul(options.state_value_bytes as u64);
    let state_bytes = graph.state.iter().map(|layout| {
        let kept = layout.tokens_kept(options.state_tokens) as u64;
        let of_tokens = (layout.values_per_token() as u64)
            .saturating_mul(kept)
            .saturating_mul(options.state_value_bytes as u64);
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
        state_bytes_per_token: per_token,
        state_bytes,
        scratch_bytes: row.saturating_mul(options.rows_max as u64),
    }
}
