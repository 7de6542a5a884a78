//! gemma2: Gemma 2. Scores and logits are held within bounds, every other layer sees the last
//! tokens only, and attention and feed-forward are normalised in front and behind.

use candor_modelfile::Index;

use super::gemma3;
use crate::architecture::Architecture;
use crate::blocks::{self, AttentionShape, FrontNorms, PostNormed};
use crate::error::ArchError;
use crate::features::{RopeScaling, Softcaps, Window};
use crate::graph::{Activation, GraphBuilder, RopeStyle};
use crate::hparams::{HParams, limits};
use crate::keys::Keys;

/// The row of the table.
pub const GEMMA2: Architecture = Architecture {
    names: &["gemma2"],
    hparams,
    build,
};

/// Every other layer sees all tokens where the file says nothing (the models' configuration files,
/// as the numbers below).
const PERIOD_DEFAULT: usize = 2;

/// Tokens that the others see.
const WINDOW_DEFAULT: usize = 4_096;

/// Bounds of the attention's scores and of the logits.
const SOFTCAPS_DEFAULT: Softcaps = Softcaps {
    attention: 50.0,
    logits: 30.0,
};

/// Layers of the model of 27 billion weights.
const LAYERS_OF_27B: usize = 46;

fn hparams(index: &Index) -> Result<HParams, ArchError> {
    let keys = Keys { index };
    keys.refuse_experts()?;
    let mut h = HParams::decoder(&keys)?;
    if keys.rope_scaling(h.context_length)? != RopeScaling::None {
        return Err(keys.unsupported("rope.scaling.factor", "a stretched rotation"));
    }
    h.attention_scale = gemma3::attention_scale(&keys, &h, LAYERS_OF_27B)?;
    let tokens = "attention.sliding_window";
    h.features.window = Some(Window {
        tokens: keys.count_or(tokens, limits::CONTEXT_MAX, WINDOW_DEFAULT)?,
        period: keys.window_period(h.n_layers, PERIOD_DEFAULT)?,
        rope_base: keys.positive("rope.freq_base_swa", Some(h.rope_base))?,
    });
    let cap = |stem, otherwise| keys.positive(stem, Some(otherwise));
    h.features.softcaps = Some(Softcaps {
        attention: cap("attn_logit_softcapping", SOFTCAPS_DEFAULT.attention)?,
        logits: cap("final_logit_softcapping", SOFTCAPS_DEFAULT.logits)?,
    });
    Ok(h)
}

fn build(h: &HParams, graph: &mut GraphBuilder<'_>) {
    let mut shape = AttentionShape::plain(h, RopeStyle::Halves);
    shape.softcap = h.features.softcaps.map(|caps| caps.attention);
    let form = PostNormed {
        shape: &|layer| shape.of_layer(h, layer),
        front_norms: FrontNorms::Required,
        activation: Activation::Gelu,
        embedding_scale: (h.width as f32).sqrt(),
    };
    blocks::post_normed_decoder(h, graph, &form);
}
