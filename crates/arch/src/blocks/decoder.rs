//! The dense decoder: embedding, layers of attention and feed-forward, output matrix.

use super::attention::{Biases, attention};
use super::ffn::gated_ffn;
use crate::graph::{GraphBuilder, Node, NodeId, Op, RopeStyle};
use crate::hparams::HParams;

/// In what the dense families differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DenseDecoder {
    /// Which values are rotated together.
    pub rope: RopeStyle,
    /// Of Q, K and V.
    pub qkv_biases: Biases,
}

/// The whole graph of a dense decoder.
pub fn dense_decoder(h: &HParams, graph: &mut GraphBuilder<'_>, shape: DenseDecoder) {
    let table = graph.matrix("token_embd.weight", h.vocabulary, h.width);
    let mut x = graph.node(Node {
        name: "embed".to_owned(),
        op: Op::Embed { table },
        inputs: Vec::new(),
        layer: None,
        width: h.width,
    });
    for layer in 0..h.n_layers {
        let normed = norm(h, graph, Some(layer), "attn_norm", x);
        let mixed = attention(h, graph, shape, layer, normed);
        x = add(graph, layer, "attn_residual", x, mixed);
        let normed = norm(h, graph, Some(layer), "ffn_norm", x);
        let grown = gated_ffn(h, graph, layer, normed);
        x = add(graph, layer, "out", x, grown);
    }
    let x = norm(h, graph, None, "output_norm", x);
    // Files without an output matrix use the embedding table for it.
    let weight = graph
        .optional_matrix("output.weight", h.vocabulary, h.width)
        .unwrap_or(table);
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

fn add(graph: &mut GraphBuilder<'_>, layer: usize, stem: &str, a: NodeId, b: NodeId) -> NodeId {
    let width = graph.width(a);
    graph.node(Node {
        name: format!("blk.{layer}.{stem}"),
        op: Op::Add,
        inputs: vec![a, b],
        layer: Some(layer),
        width,
    })
}
