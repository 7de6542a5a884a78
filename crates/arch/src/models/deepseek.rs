//! deepseek: DeepSeekMoE, the first generation. As llama, with an ordinary feed-forward in the first
//! layers and experts in the others: the shares stay as the softmax over all gives them, and a few
//! experts are for every row, in one matrix.

use candor_modelfile::Index;

use crate::architecture::Architecture;
use crate::blocks::{self, AttentionShape, ExpertsShape, Layers};
use crate::error::ArchError;
use crate::features::Experts;
use crate::graph::{Activation, GraphBuilder, RopeStyle, Shares};
use crate::hparams::{HParams, limits};
use crate::keys::Keys;

/// The row of the table.
pub const DEEPSEEK: Architecture = Architecture {
    names: &["deepseek"],
    hparams,
    build,
};

fn hparams(index: &Index) -> Result<HParams, ArchError> {
    let keys = Keys { index };
    if keys.flag("expert_weights_norm")? == Some(true) {
        return Err(keys.unsupported("expert_weights_norm", "true"));
    }
    keys.refuse_other_count("expert_gating_func", 1)?;
    let mut h = HParams::decoder(&keys)?;
    h.features.rope_scaling = keys.rope_scaling(h.context_length)?;
    let experts = keys.experts()?;
    let shared = match keys.find("expert_shared_count")? {
        None | Some(0) => 0,
        Some(_) => keys.count("expert_shared_count", limits::EXPERTS_MAX)?,
    };
    let dense_layers = match keys.find("leading_dense_block_count")? {
        None | Some(0) => 0,
        Some(_) => keys.count("leading_dense_block_count", h.n_layers)?,
    };
    h.features.experts = Some(Experts {
        shared_inner: match experts.inner * shared {
            0 => 0,
            inner => keys.within("expert_shared_count", inner, limits::FFN_WIDTH_MAX)?,
        },
        dense_layers,
        ..experts
    });
    Ok(h)
}

fn build(h: &HParams, graph: &mut GraphBuilder<'_>) {
    let shape = AttentionShape::plain(h, RopeStyle::Adjacent);
    let numbers = h.features.experts.expect("read with the other numbers");
    let routed = ExpertsShape {
        shares: Shares::OfAll,
        ..ExpertsShape::PLAIN
    };
    let layers = Layers {
        mix: &|graph, layer, x| blocks::attention(h, graph, shape, layer, x),
        ffn_norm: "ffn_norm",
        feed: &|graph, layer, x| {
            if layer < numbers.dense_layers {
                blocks::gated_ffn(h, graph, Activation::Silu, layer, x)
            } else {
                blocks::experts(numbers, routed, graph, layer, x)
            }
        },
        scales: None,
    };
    blocks::decoder(h, graph, &layers);
}
