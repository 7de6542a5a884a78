//! qwen3moe: Qwen3 whose feed-forward is a choice of experts.

use candor_modelfile::Index;

use crate::architecture::Architecture;
use crate::blocks::{self, AttentionShape, HeadNorms};
use crate::error::ArchError;
use crate::graph::{GraphBuilder, RopeStyle};
use crate::hparams::HParams;
use crate::keys::Keys;

/// The row of the table.
pub const QWEN3MOE: Architecture = Architecture {
    names: &["qwen3moe"],
    hparams,
    build,
};

fn hparams(index: &Index) -> Result<HParams, ArchError> {
    let keys = Keys { index };
    let mut h = HParams::decoder(&keys)?;
    h.features.rope_scaling = keys.rope_scaling(h.context_length)?;
    h.features.experts = Some(keys.experts()?);
    Ok(h)
}

fn build(h: &HParams, graph: &mut GraphBuilder<'_>) {
    let mut shape = AttentionShape::plain(h, RopeStyle::Halves);
    shape.head_norms = HeadNorms::PerHead;
    let experts = h.features.experts.expect("read with the other numbers");
    let x = blocks::embedding(h, graph);
    let x = (0..h.n_layers).fold(x, |x, layer| {
        let normed = blocks::norm(h, graph, Some(layer), "attn_norm", x);
        let mixed = blocks::attention(h, graph, shape, layer, normed);
        let x = blocks::add(graph, layer, "attn_residual", x, mixed);
        let normed = blocks::norm(h, graph, Some(layer), "ffn_norm", x);
        let grown = blocks::experts(experts, graph, layer, normed);
        blocks::add(graph, layer, "out", x, grown)
    });
    blocks::output(h, graph, x);
}
