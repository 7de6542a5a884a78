//! phi3: Phi-3, Phi-3.5 and Phi-4, dense. As llama, with rotated halves; Q, K and V are one tensor,
//! gate and up another. The models for long contexts have two sets of divisors of the frequencies.

use candor_modelfile::Index;

use crate::architecture::Architecture;
use crate::blocks::{self, AttentionShape, Layers, Matrices};
use crate::error::ArchError;
use crate::features::{RopeScaling, Window};
use crate::graph::{Activation, GraphBuilder, RopeStyle};
use crate::hparams::{HParams, limits};
use crate::keys::Keys;

/// The row of the table.
pub const PHI3: Architecture = Architecture {
    names: &["phi3"],
    hparams,
    build,
};

fn hparams(index: &Index) -> Result<HParams, ArchError> {
    let keys = Keys { index };
    keys.refuse_experts()?;
    let mut h = HParams::decoder(&keys)?;
    h.features.rope_scaling = rope_scaling(&keys, h.context_length)?;
    // Every layer has the window, as in the models' published code; llama.cpp leaves it out, so
    // that it is held against the suite of the backends only. One that is no shorter than the
    // context hides nothing.
    let tokens = match keys.find("attention.sliding_window")? {
        None | Some(0) => h.context_length,
        Some(_) => keys.count("attention.sliding_window", limits::CONTEXT_MAX)?,
    };
    h.features.window = (tokens < h.context_length).then_some(Window {
        tokens,
        period: h.n_layers + 1,
        rope_base: h.rope_base,
    });
    Ok(h)
}

fn rope_scaling(keys: &Keys<'_>, context: usize) -> Result<RopeScaling, ArchError> {
    if keys.index.tensor("rope_factors_long.weight").is_none() {
        return keys.rope_scaling(context);
    }
    match keys.text("rope.scaling.type")? {
        None | Some("longrope") => {}
        Some(other) => return Err(keys.unsupported("rope.scaling.type", &format!("{other:?}"))),
    }
    keys.refuse_other("rope.scaling.factor", 1.0)?;
    Ok(RopeScaling::LongRope {
        trained_context: keys.count_or(
            "rope.scaling.original_context_length",
            limits::CONTEXT_MAX,
            context,
        )?,
        length: keys.positive("rope.scaling.attn_factor", Some(1.0))?,
    })
}

fn build(h: &HParams, graph: &mut GraphBuilder<'_>) {
    let mut shape = AttentionShape::plain(h, RopeStyle::Halves);
    shape.matrices = Matrices::Stacked;
    shape.window = h.features.window.map(|window| window.tokens);
    let layers = Layers {
        mix: &|graph, layer, x| blocks::attention(h, graph, shape, layer, x),
        ffn_norm: "ffn_norm",
        feed: &|graph, layer, x| blocks::stacked_ffn(h, graph, Activation::Silu, layer, x),
        scales: None,
    };
    blocks::decoder(h, graph, &layers);
}
