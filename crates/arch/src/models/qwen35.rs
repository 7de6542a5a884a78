//! qwen35 and qwen35moe: Qwen3.5. Hybrids of delta nets and gated attention, dense or of experts.

use crate::architecture::Architecture;
use crate::blocks::{AlphaBeta, FeedForward, hybrid_decoder, hybrid_hparams};
use crate::graph::GraphBuilder;
use crate::hparams::HParams;

/// The dense row of the table.
pub const QWEN35: Architecture = Architecture {
    names: &["qwen35"],
    hparams: |index| hybrid_hparams(index, FeedForward::Dense),
    build,
};

/// The row of the experts.
pub const QWEN35MOE: Architecture = Architecture {
    names: &["qwen35moe"],
    hparams: |index| hybrid_hparams(index, FeedForward::Experts),
    build,
};

fn build(hparams: &HParams, graph: &mut GraphBuilder<'_>) {
    hybrid_decoder(hparams, graph, AlphaBeta::Apart);
}
