//! qwen3moe: Qwen3 whose feed-forward is a choice of experts.

use candor_modelfile::Index;

use crate::architecture::Architecture;
use crate::blocks::{self, AttentionShape, ExpertsShape, HeadNorms, Layers};
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
    keys.refuse_other_count("expert_shared_count", 0)?;
    h.features.experts = Some(keys.experts()?);
    Ok(h)
}

fn build(h: &HParams, graph: &mut GraphBuilder<'_>) {
    let mut shape = AttentionShape::plain(h, RopeStyle::Halves);
    shape.head_norms = HeadNorms::PerHead;
    let these = h.features.experts.expect("read with the other numbers");
    let layers = Layers {
        mix: &|graph, layer, x| blocks::attention(h, graph, shape, layer, x),
        ffn_norm: "ffn_norm",
        feed: &|graph, layer, x| blocks::experts(these, ExpertsShape::PLAIN, graph, layer, x),
        scales: None,
    };
    blocks::decoder(h, graph, &layers);
}
