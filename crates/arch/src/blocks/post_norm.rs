//! Decoders that normalise what a layer's halves give, before it is added to the row.

use super::attention::{AttentionShape, attention};
use super::decoder::{add, embedding, logits, norm, scale};
use super::ffn::gated_ffn;
use crate::graph::{Activation, GraphBuilder};
use crate::hparams::HParams;

/// Whether a half reads normalised values too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontNorms {
    /// The row as it is.
    Without,
    /// Normalised.
    Required,
}

/// In what such decoders differ.
pub struct PostNormed<'a> {
    /// The attention of a layer.
    pub shape: &'a dyn Fn(usize) -> AttentionShape,
    /// Of both halves.
    pub front_norms: FrontNorms,
    /// The function on the gate of the feed-forward.
    pub activation: Activation,
    /// Of the embeddings.
    pub embedding_scale: f32,
}

/// The whole graph of such a decoder.
pub fn post_normed_decoder(h: &HParams, graph: &mut GraphBuilder<'_>, form: &PostNormed<'_>) {
    let x = embedding(h, graph);
    let x = scale(graph, None, "embed_scaled", form.embedding_scale, x);
    let x = (0..h.n_layers).fold(x, |x, layer| {
        let at = Some(layer);
        let in_front = |graph: &mut GraphBuilder<'_>, stem, x| match form.front_norms {
            FrontNorms::Without => x,
            FrontNorms::Required => norm(h, graph, at, stem, x),
        };
        let read = in_front(graph, "attn_norm", x);
        let mixed = attention(h, graph, (form.shape)(layer), layer, read);
        let mixed = norm(h, graph, at, "post_attention_norm", mixed);
        let x = add(graph, layer, "attn_residual", x, mixed);
        let read = in_front(graph, "ffn_norm", x);
        let grown = gated_ffn(h, graph, form.activation, layer, read);
        let grown = norm(h, graph, at, "post_ffw_norm", grown);
        add(graph, layer, "out", x, grown)
    });
    let x = norm(h, graph, None, "output_norm", x);
    logits(h, graph, x, h.features.softcaps.map(|caps| caps.logits));
}
