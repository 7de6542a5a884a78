//! gemma3: Gemma 3, text. Most layers see the last tokens only and turn with a base of their own;
//! attention and feed-forward are normalised once more behind; embeddings are scaled.

use candor_modelfile::Index;

use crate::architecture::Architecture;
use crate::blocks::{self, AttentionShape, HeadNorms};
use crate::error::ArchError;
use crate::features::{RopeScaling, Window};
use crate::graph::{Activation, GraphBuilder, Node, Op, RopeStyle};
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

fn hparams(index: &Index) -> Result<HParams, ArchError> {
    let keys = Keys { index };
    keys.refuse_experts()?;
    keys.refuse_other("attn_logit_softcapping", 0.0)?;
    keys.refuse_other("final_logit_softcapping", 0.0)?;
    let mut h = HParams::decoder(&keys)?;
    // The models from four billion weights on stretch the layers without a window only. No
    // reference was there to check that against, so it is refused.
    if keys.rope_scaling(h.context_length)? != RopeScaling::None {
        return Err(keys.unsupported("rope.scaling.factor", "a stretched rotation"));
    }
    h.features.window = Some(Window {
        tokens: keys.count("attention.sliding_window", limits::CONTEXT_MAX)?,
        period: keys.count_or(
            "attention.sliding_window_pattern",
            limits::LAYERS_MAX,
            PERIOD_DEFAULT,
        )?,
        rope_base: keys.positive("rope.freq_base_swa", Some(WINDOW_ROPE_BASE))?,
    });
    Ok(h)
}

fn build(h: &HParams, graph: &mut GraphBuilder<'_>) {
    let window = h.features.window.expect("read with the other numbers");
    let x = blocks::embedding(h, graph);
    let x = graph.node(Node {
        name: "embed_scaled".to_owned(),
        op: Op::Scale {
            factor: (h.width as f32).sqrt(),
        },
        inputs: vec![x],
        layer: None,
        width: h.width,
    });
    let x = (0..h.n_layers).fold(x, |x, layer| {
        let mut shape = AttentionShape::plain(h, RopeStyle::Halves);
        shape.head_norms = HeadNorms::PerHead;
        if !window.is_global(layer) {
            shape.window = Some(window.tokens);
            shape.rope_base = window.rope_base;
        }
        let normed = blocks::norm(h, graph, Some(layer), "attn_norm", x);
        let mixed = blocks::attention(h, graph, shape, layer, normed);
        let mixed = blocks::norm(h, graph, Some(layer), "post_attention_norm", mixed);
        let x = blocks::add(graph, layer, "attn_residual", x, mixed);
        let normed = blocks::norm(h, graph, Some(layer), "ffn_norm", x);
        let grown = blocks::gated_ffn(h, graph, Activation::Gelu, layer, normed);
        let grown = blocks::norm(h, graph, Some(layer), "post_ffw_norm", grown);
        blocks::add(graph, layer, "out", x, grown)
    });
    blocks::output(h, graph, x);
}
