//! llama: Llama 1 to 3.x, Mistral, SmolLM2 and others that keep its form; and Mixtral, whose
//! feed-forward is a choice of experts.
//!
//! The converter that writes these files reorders the rows of Q and K so that rotated pairs are
//! neighbours. Llama 3.1 and later scale the frequencies by `rope_freqs.weight`.

use candor_modelfile::Index;

use crate::architecture::Architecture;
use crate::blocks::{self, AttentionShape, ExpertsShape, Layers};
use crate::error::ArchError;
use crate::graph::{Activation, GraphBuilder, RopeStyle};
use crate::hparams::{HParams, limits};
use crate::keys::Keys;

/// The row of the table.
pub const LLAMA: Architecture = Architecture {
    names: &["llama"],
    hparams,
    build,
};

fn hparams(index: &Index) -> Result<HParams, ArchError> {
    let keys = Keys { index };
    let mut h = HParams::decoder(&keys)?;
    h.features.rope_scaling = keys.rope_scaling(h.context_length)?;
    keys.refuse_other_count("expert_shared_count", 0)?;
    h.features.experts = match keys.find("expert_count")? {
        None | Some(0) => None,
        // Each is as wide as a dense feed-forward would be.
        Some(_) => {
            Some(keys.experts_of(keys.count("feed_forward_length", limits::FFN_WIDTH_MAX)?)?)
        }
    };
    Ok(h)
}

/// A decoder with a feed-forward or with experts; other families add numbers only.
pub(super) fn build(h: &HParams, graph: &mut GraphBuilder<'_>) {
    let shape = AttentionShape::plain(h, RopeStyle::Adjacent);
    let layers = Layers {
        mix: &|graph, layer, x| blocks::attention(h, graph, shape, layer, x),
        ffn_norm: "ffn_norm",
        feed: &|graph, layer, x| match h.features.experts {
            None => blocks::gated_ffn(h, graph, Activation::Silu, layer, x),
            Some(these) => blocks::experts(these, ExpertsShape::PLAIN, graph, layer, x),
        },
        scales: h.features.scales,
    };
    blocks::decoder(h, graph, &layers);
}
