//! gemma3: Gemma 3, text. Most layers see the last tokens only and turn with a base of their own;
//! attention and feed-forward are normalised once more behind; embeddings are scaled. The models
//! from four billion weights on stretch the rotation of the layers without a window.

use candor_modelfile::Index;

use crate::architecture::Architecture;
use crate::blocks::{self, AttentionShape, FrontNorms, HeadNorms, PostNormed};
use crate::error::ArchError;
use crate::features::{RopeScaling, Window};
use crate::graph::{Activation, GraphBuilder, RopeStyle};
use crate::hparams::{HParams, limits};
use crate::keys::Keys;

/// The row of the table.
pub const GEMMA3: Architecture = Architecture {
    names: &["gemma3"],
    hparams,
    build,
};

/// Each sixth layer sees all tokens where the file says nothing (the models' configuration files).
const PERIOD_DEFAULT: usize = 6;

/// Base of the frequencies in the layers with a window, likewise.
const WINDOW_ROPE_BASE: f32 = 10_000.0;

/// Layers of the model of 27 billion weights.
const LAYERS_OF_27B: usize = 62;

fn hparams(index: &Index) -> Result<HParams, ArchError> {
    let keys = Keys { index };
    keys.refuse_experts()?;
    keys.refuse_other("attn_logit_softcapping", 0.0)?;
    keys.refuse_other("final_logit_softcapping", 0.0)?;
    let mut h = HParams::decoder(&keys)?;
    h.attention_scale = attention_scale(&keys, &h, LAYERS_OF_27B)?;
    h.features.rope_scaling = match keys.rope_scaling(h.context_length)? {
        plain @ (RopeScaling::None | RopeScaling::Linear { .. }) => plain,
        // No published model has another one, and none was checked.
        _ => return Err(keys.unsupported("rope.scaling.type", "not linear")),
    };
    h.features.window = Some(Window {
        tokens: keys.count("attention.sliding_window", limits::CONTEXT_MAX)?,
        period: keys.window_period(h.n_layers, PERIOD_DEFAULT)?,
        rope_base: keys.positive("rope.freq_base_swa", Some(WINDOW_ROPE_BASE))?,
    });
    Ok(h)
}

/// The factor of the scores. The largest model of either generation takes the model's width over
/// its heads in the place of a head's width, which no key says: it is known by its layers.
pub(super) fn attention_scale(
    keys: &Keys<'_>,
    h: &HParams,
    layers_of_27b: usize,
) -> Result<f32, ArchError> {
    let width = if h.n_layers == layers_of_27b {
        h.width / h.n_heads
    } else {
        h.head_dim
    };
    keys.positive("attention.scale", Some(1.0 / (width as f32).sqrt()))
}

fn build(h: &HParams, graph: &mut GraphBuilder<'_>) {
    let mut shape = AttentionShape::plain(h, RopeStyle::Halves);
    shape.head_norms = HeadNorms::PerHead;
    let form = PostNormed {
        shape: &|layer| shape.of_layer(h, layer),
        front_norms: FrontNorms::Required,
        activation: Activation::Gelu,
        embedding_scale: (h.width as f32).sqrt(),
    };
    blocks::post_normed_decoder(h, graph, &form);
}
