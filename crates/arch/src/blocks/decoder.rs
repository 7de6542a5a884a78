//! The decoder: embedding, layers, output matrix.

use super::attention::{AttentionShape, attention};
use super::ffn::gated_ffn;
use crate::features::Scales;
use crate::graph::{Activation, GraphBuilder, Node, NodeId, Op, WeightId};
use crate::hparams::HParams;

/// Writes the nodes of a layer's half: from its normalised input to what is added to the row.
pub type Half<'a> = &'a dyn Fn(&mut GraphBuilder<'_>, usize, NodeId) -> NodeId;

/// In what decoders differ whose layers add an attention and a feed-forward, each of normalised
/// values.
pub struct Layers<'a> {
    /// The attention, or what stands for it.
    pub mix: Half<'a>,
    /// The name of the normalisation between the two.
    pub ffn_norm: &'static str,
    /// The feed-forward.
    pub feed: Half<'a>,
    /// Of embeddings, halves and logits.
    pub scales: Option<Scales>,
}

/// The whole graph of a decoder of such layers.
pub fn decoder(h: &HParams, graph: &mut GraphBuilder<'_>, layers: &Layers<'_>) {
    let scales = layers.scales.unwrap_or(Scales {
        embedding: 1.0,
        residual: 1.0,
        logits: 1.0,
    });
    let x = embedding(h, graph);
    let x = scale(graph, None, "embed_scaled", scales.embedding, x);
    let x = (0..h.n_layers).fold(x, |x, layer| {
        let at = Some(layer);
        let normed = norm(h, graph, at, "attn_norm", x);
        let mixed = (layers.mix)(graph, layer, normed);
        let mixed = scale(graph, at, "attn_scaled", scales.residual, mixed);
        let x = add(graph, layer, "attn_residual", x, mixed);
        let normed = norm(h, graph, at, layers.ffn_norm, x);
        let grown = (layers.feed)(graph, layer, normed);
        let grown = scale(graph, at, "ffn_scaled", scales.residual, grown);
        add(graph, layer, "out", x, grown)
    });
    let x = norm(h, graph, None, "output_norm", x);
    let x = scale(graph, None, "output_scaled", scales.logits, x);
    logits(h, graph, x, None);
}

/// The whole graph of a decoder whose layers are all of the plain form.
pub fn dense_decoder(h: &HParams, graph: &mut GraphBuilder<'_>, shape: AttentionShape) {
    let layers = Layers {
        mix: &|graph, layer, x| attention(h, graph, shape, layer, x),
        ffn_norm: "ffn_norm",
        feed: &|graph, layer, x| gated_ffn(h, graph, Activation::Silu, layer, x),
        scales: None,
    };
    decoder(h, graph, &layers);
}

/// The first node: the tokens' rows of the table.
pub fn embedding(h: &HParams, graph: &mut GraphBuilder<'_>) -> NodeId {
    let table = graph.matrix("token_embd.weight", h.vocabulary, h.width);
    graph.node(Node {
        name: "embed".to_owned(),
        op: Op::Embed { table },
        inputs: Vec::new(),
        layer: None,
        width: h.width,
    })
}

/// The last nodes: normalisation and logits.
pub fn output(h: &HParams, graph: &mut GraphBuilder<'_>, x: NodeId) {
    let x = norm(h, graph, None, "output_norm", x);
    logits(h, graph, x, None);
}

/// The last node, from a normalised row.
pub fn logits(h: &HParams, graph: &mut GraphBuilder<'_>, x: NodeId, softcap: Option<f32>) {
    // Files without an output matrix use the embedding table for it.
    let weight = graph
        .optional_matrix("output.weight", h.vocabulary, h.width)
        .unwrap_or_else(|| graph.matrix("token_embd.weight", h.vocabulary, h.width));
    graph.node(Node {
        name: "logits".to_owned(),
        op: Op::Logits { weight, softcap },
        inputs: vec![x],
        layer: None,
        width: h.vocabulary,
    });
}

/// A factor on every value; a factor of one is left out.
pub fn scale(
    graph: &mut GraphBuilder<'_>,
    layer: Option<usize>,
    stem: &str,
    factor: f32,
    input: NodeId,
) -> NodeId {
    if factor == 1.0 {
        return input;
    }
    let width = graph.width(input);
    graph.node(Node {
        name: layer.map_or_else(|| stem.to_owned(), |i| format!("blk.{i}.{stem}")),
        op: Op::Scale { factor },
        inputs: vec![input],
        layer,
        width,
    })
}

/// A normalisation whose weight has the node's name.
pub fn norm(
    h: &HParams,
    graph: &mut GraphBuilder<'_>,
    layer: Option<usize>,
    stem: &str,
    input: NodeId,
) -> NodeId {
    let name = layer.map_or_else(|| stem.to_owned(), |i| format!("blk.{i}.{stem}"));
    let weight = graph.vector(&format!("{name}.weight"), h.width);
    graph.node(Node {
        name,
        op: Op::RmsNorm {
            weight,
            eps: h.norm_eps,
        },
        inputs: vec![input],
        layer,
        width: h.width,
    })
}

/// A normalisation of every run of `len` values on its own: of a head, or of all of them.
pub(super) fn run_norm(
    h: &HParams,
    graph: &mut GraphBuilder<'_>,
    layer: usize,
    (stem, len): (&str, usize),
    input: NodeId,
) -> NodeId {
    let name = format!("blk.{layer}.{stem}");
    let weight = graph.vector(&format!("{name}.weight"), len);
    let width = graph.width(input);
    graph.node(Node {
        name,
        op: Op::RmsNorm {
            weight,
            eps: h.norm_eps,
        },
        inputs: vec![input],
        layer: Some(layer),
        width,
    })
}

/// A product of a layer.
pub(super) fn linear(
    graph: &mut GraphBuilder<'_>,
    layer: usize,
    stem: &str,
    (weight, bias): (WeightId, Option<WeightId>),
    input: NodeId,
) -> NodeId {
    let width = graph.rows(weight);
    graph.node(Node {
        name: format!("blk.{layer}.{stem}"),
        op: Op::Linear { weight, bias },
        inputs: vec![input],
        layer: Some(layer),
        width,
    })
}

/// The sum of two nodes of a layer.
pub fn add(graph: &mut GraphBuilder<'_>, layer: usize, stem: &str, a: NodeId, b: NodeId) -> NodeId {
    let width = graph.width(a);
    graph.node(Node {
        name: format!("blk.{layer}.{stem}"),
        op: Op::Add,
        inputs: vec![a, b],
        layer: Some(layer),
        width,
    })
}
