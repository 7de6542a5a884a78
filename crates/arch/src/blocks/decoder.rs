//! The decoder: embedding, layers, output matrix; and the plain layer.

use super::attention::{AttentionShape, attention};
use super::ffn::gated_ffn;
use crate::graph::{Activation, GraphBuilder, Node, NodeId, Op, WeightId};
use crate::hparams::HParams;

/// The whole graph of a decoder whose layers are all of the plain form.
pub fn dense_decoder(h: &HParams, graph: &mut GraphBuilder<'_>, shape: AttentionShape) {
    let x = embedding(h, graph);
    let x = (0..h.n_layers).fold(x, |x, layer| {
        let normed = norm(h, graph, Some(layer), "attn_norm", x);
        let mixed = attention(h, graph, shape, layer, normed);
        let x = add(graph, layer, "attn_residual", x, mixed);
        let normed = norm(h, graph, Some(layer), "ffn_norm", x);
        let grown = gated_ffn(h, graph, Activation::Silu, layer, normed);
        add(graph, layer, "out", x, grown)
    });
    output(h, graph, x);
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
    // Files without an output matrix use the embedding table for it.
    let weight = graph
        .optional_matrix("output.weight", h.vocabulary, h.width)
        .unwrap_or_else(|| graph.matrix("token_embd.weight", h.vocabulary, h.width));
    graph.node(Node {
        name: "logits".to_owned(),
        op: Op::Logits { weight },
        inputs: vec![x],
        layer: None,
        width: h.vocabulary,
    });
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

/// A normalisation of every head on its own.
pub(super) fn head_norm(
    h: &HParams,
    graph: &mut GraphBuilder<'_>,
    layer: usize,
    stem: &str,
    input: NodeId,
) -> NodeId {
    let name = format!("blk.{layer}.{stem}");
    let weight = graph.vector(&format!("{name}.weight"), h.head_dim);
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
