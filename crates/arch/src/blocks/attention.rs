//! Grouped-query self-attention with rotary positions.

use super::decoder::DenseDecoder;
use crate::graph::{GraphBuilder, Node, NodeId, Op, Rope, StateLayout};
use crate::hparams::HParams;

/// Whether Q, K and V have biases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Biases {
    /// They have.
    Required,
    /// Some files of the family have.
    IfPresent,
}

/// From the normalised input of a layer to the output of its attention, before the residual.
pub fn attention(
    h: &HParams,
    graph: &mut GraphBuilder<'_>,
    shape: DenseDecoder,
    layer: usize,
    input: NodeId,
) -> NodeId {
    let q_width = h.n_heads * h.head_dim;
    let kv_width = h.n_kv_heads * h.head_dim;
    let q = projection(
        h,
        graph,
        shape,
        Projection {
            layer,
            input,
            stem: "q",
            width: q_width,
        },
    );
    let k = projection(
        h,
        graph,
        shape,
        Projection {
            layer,
            input,
            stem: "k",
            width: kv_width,
        },
    );
    let v = projection(
        h,
        graph,
        shape,
        Projection {
            layer,
            input,
            stem: "v",
            width: kv_width,
        },
    );
    let factors = graph.optional_vector("rope_freqs.weight", h.n_rot / 2);
    let rope = Rope {
        style: shape.rope,
        head_dim: h.head_dim,
        n_rot: h.n_rot,
        base: h.rope_base,
        factors,
    };
    let q = rotate(graph, layer, "q", rope, q);
    let k = rotate(graph, layer, "k", rope, k);
    let mixed = graph.node(Node {
        name: format!("blk.{layer}.attn"),
        op: Op::Attention {
            n_heads: h.n_heads,
            n_kv_heads: h.n_kv_heads,
            head_dim: h.head_dim,
            scale: h.attention_scale,
        },
        inputs: vec![q, k, v],
        layer: Some(layer),
        width: q_width,
    });
    graph.state(StateLayout::Full {
        n_kv_heads: h.n_kv_heads,
        head_dim: h.head_dim,
    });
    let weight = graph.matrix(&format!("blk.{layer}.attn_output.weight"), h.width, q_width);
    let bias = graph.optional_vector(&format!("blk.{layer}.attn_output.bias"), h.width);
    graph.node(Node {
        name: format!("blk.{layer}.attn_out"),
        op: Op::Linear { weight, bias },
        inputs: vec![mixed],
        layer: Some(layer),
        width: h.width,
    })
}

struct Projection {
    layer: usize,
    input: NodeId,
    stem: &'static str,
    width: usize,
}

fn projection(
    h: &HParams,
    graph: &mut GraphBuilder<'_>,
    shape: DenseDecoder,
    p: Projection,
) -> NodeId {
    let name = format!("blk.{}.attn_{}", p.layer, p.stem);
    let weight = graph.matrix(&format!("{name}.weight"), p.width, h.width);
    let bias_name = format!("{name}.bias");
    let bias = match shape.qkv_biases {
        Biases::Required => Some(graph.vector(&bias_name, p.width)),
        Biases::IfPresent => graph.optional_vector(&bias_name, p.width),
    };
    graph.node(Node {
        name,
        op: Op::Linear { weight, bias },
        inputs: vec![p.input],
        layer: Some(p.layer),
        width: p.width,
    })
}

fn rotate(
    graph: &mut GraphBuilder<'_>,
    layer: usize,
    stem: &str,
    rope: Rope,
    input: NodeId,
) -> NodeId {
    let width = graph.width(input);
    graph.node(Node {
        name: format!("blk.{layer}.rope_{stem}"),
        op: Op::Rope(rope),
        inputs: vec![input],
        layer: Some(layer),
        width,
    })
}
