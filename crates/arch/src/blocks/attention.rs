//! Grouped-query self-attention with rotary positions.

use super::decoder::{head_norm, linear};
use crate::features::RopeScaling;
use crate::graph::{Activation, GraphBuilder, Node, NodeId, Op, Rope, RopeStyle, StateLayout};
use crate::hparams::HParams;

/// Whether Q, K and V have biases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Biases {
    /// They have.
    Required,
    /// Some files of the family have.
    IfPresent,
}

/// Whether the heads of Q and K are normalised, each on its own, before they are turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadNorms {
    /// As they are projected.
    Without,
    /// Normalised.
    PerHead,
}

/// Whether the heads' outputs are multiplied with a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputGate {
    /// No gate.
    Without,
    /// The rows of Q's matrix that follow each head's query give sigmoid gates.
    BesideQuery,
}

/// In what the attention of families and of layers differs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionShape {
    /// Which values are rotated together.
    pub rope: RopeStyle,
    /// Base of the frequencies.
    pub rope_base: f32,
    /// How they are stretched.
    pub rope_scaling: RopeScaling,
    /// Of Q, K and V.
    pub biases: Biases,
    /// Of Q and K.
    pub head_norms: HeadNorms,
    /// Of the heads' outputs.
    pub output_gate: OutputGate,
    /// How many tokens a row sees; all of them where nothing is said.
    pub window: Option<usize>,
}

impl AttentionShape {
    /// The plain form: no biases but those of the file, nothing normalised, all tokens seen.
    pub fn plain(h: &HParams, rope: RopeStyle) -> Self {
        Self {
            rope,
            rope_base: h.rope_base,
            rope_scaling: h.features.rope_scaling,
            biases: Biases::IfPresent,
            head_norms: HeadNorms::Without,
            output_gate: OutputGate::Without,
            window: None,
        }
    }
}

/// From the normalised input of a layer to the output of its attention, before the residual.
pub fn attention(
    h: &HParams,
    graph: &mut GraphBuilder<'_>,
    shape: AttentionShape,
    layer: usize,
    input: NodeId,
) -> NodeId {
    let q_width = h.n_heads * h.head_dim;
    let kv_width = h.n_kv_heads * h.head_dim;
    let q_rows = match shape.output_gate {
        OutputGate::Without => q_width,
        OutputGate::BesideQuery => 2 * q_width,
    };
    let [q, k, v] = [("q", q_rows), ("k", kv_width), ("v", kv_width)].map(|(stem, width)| {
        let projection = Projection {
            layer,
            input,
            stem,
            width,
        };
        projection.node(h, graph, shape.biases)
    });
    let (q, gate) = match shape.output_gate {
        OutputGate::Without => (q, None),
        OutputGate::BesideQuery => {
            let query = head_part(h, graph, layer, q, ("attn_query", 0));
            let gate = head_part(h, graph, layer, q, ("attn_gate", h.head_dim));
            (query, Some(gate))
        }
    };
    let (q, k) = match shape.head_norms {
        HeadNorms::Without => (q, k),
        HeadNorms::PerHead => (
            head_norm(h, graph, layer, "attn_q_norm", q),
            head_norm(h, graph, layer, "attn_k_norm", k),
        ),
    };
    let mixed = rotated_attention(h, graph, shape, layer, [q, k, v]);
    let mixed = match gate {
        None => mixed,
        Some(gate) => graph.node(Node {
            name: format!("blk.{layer}.attn_gated"),
            op: Op::Gate {
                activation: Activation::Sigmoid,
            },
            inputs: vec![mixed, gate],
            layer: Some(layer),
            width: q_width,
        }),
    };
    let weight = graph.matrix(&format!("blk.{layer}.attn_output.weight"), h.width, q_width);
    let bias = graph.optional_vector(&format!("blk.{layer}.attn_output.bias"), h.width);
    linear(graph, layer, "attn_out", (weight, bias), mixed)
}

fn rotated_attention(
    h: &HParams,
    graph: &mut GraphBuilder<'_>,
    shape: AttentionShape,
    layer: usize,
    [q, k, v]: [NodeId; 3],
) -> NodeId {
    let factors = graph.optional_vector("rope_freqs.weight", h.n_rot / 2);
    let rope = Rope {
        style: shape.rope,
        head_dim: h.head_dim,
        n_rot: h.n_rot,
        base: shape.rope_base,
        scaling: shape.rope_scaling,
        factors,
    };
    let q = rotate(graph, layer, "q", rope, q);
    let k = rotate(graph, layer, "k", rope, k);
    let (n_kv_heads, head_dim) = (h.n_kv_heads, h.head_dim);
    graph.state(match shape.window {
        None => StateLayout::Full {
            n_kv_heads,
            head_dim,
        },
        Some(tokens) => StateLayout::Window {
            tokens,
            n_kv_heads,
            head_dim,
        },
    });
    graph.node(Node {
        name: format!("blk.{layer}.attn"),
        op: Op::Attention {
            n_heads: h.n_heads,
            n_kv_heads,
            head_dim,
            scale: h.attention_scale,
        },
        inputs: vec![q, k, v],
        layer: Some(layer),
        width: h.n_heads * h.head_dim,
    })
}

struct Projection {
    layer: usize,
    input: NodeId,
    stem: &'static str,
    width: usize,
}

impl Projection {
    fn node(self, h: &HParams, graph: &mut GraphBuilder<'_>, biases: Biases) -> NodeId {
        let name = format!("blk.{}.attn_{}", self.layer, self.stem);
        let weight = graph.matrix(&format!("{name}.weight"), self.width, h.width);
        let bias_name = format!("{name}.bias");
        let bias = match biases {
            Biases::Required => Some(graph.vector(&bias_name, self.width)),
            Biases::IfPresent => graph.optional_vector(&bias_name, self.width),
        };
        graph.node(Node {
            name,
            op: Op::Linear { weight, bias },
            inputs: vec![self.input],
            layer: Some(self.layer),
            width: self.width,
        })
    }
}

/// One of the two runs of `head_dim` values that belong to each head.
fn head_part(
    h: &HParams,
    graph: &mut GraphBuilder<'_>,
    layer: usize,
    input: NodeId,
    (stem, start): (&str, usize),
) -> NodeId {
    graph.node(Node {
        name: format!("blk.{layer}.{stem}"),
        op: Op::Part {
            period: 2 * h.head_dim,
            start,
            len: h.head_dim,
        },
        inputs: vec![input],
        layer: Some(layer),
        width: h.n_heads * h.head_dim,
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
