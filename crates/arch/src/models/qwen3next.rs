//! qwen3next: Qwen3-Next. As qwen35moe, with the delta net's projections in another order.

use crate::architecture::Architecture;
use crate::blocks::{AlphaBeta, FeedForward, hybrid_decoder, hybrid_hparams};
use crate::graph::GraphBuilder;
use crate::hparams::HParams;

/// The row of the table.
pub const QWEN3NEXT: Architecture = Architecture {
    names: &["qwen3next"],
    hparams: |index| hybrid_hparams(index, FeedForward::Experts),
    build,
};

fn build(hparams: &HParams, graph: &mut GraphBuilder<'_>) {
    hybrid_decoder(hparams, graph, AlphaBeta::ByKeyHead);
}
