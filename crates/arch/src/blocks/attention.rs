//! Grouped-query self-attention with rotary positions.

use super::decoder::{linear, run_norm};
use crate::features::RopeScaling;
use crate::graph::{
    Activation, GraphBuilder, Node, NodeId, Op, Rope, RopeStyle, RowsOf, StateLayout,
};
use crate::hparams::HParams;

/// Whether Q, K and V have biases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Biases {
    /// They have.
    Required,
    /// Some files of the family have.
    IfPresent,
}

/// Whether Q and K are normalised before they are turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadNorms {
    /// As they are projected.
    Without,
    /// Every head on its own.
    PerHead,
    /// All heads of a row together.
    Whole,
}

/// Whether Q and K are turned by the row's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Positions {
    /// They are.
    Rotary,
    /// The layer knows no positions.
    Without,
}

/// How the matrices that read the same values lie in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matrices {
    /// A tensor each.
    Apart,
    /// One below the other in one tensor.
    Stacked,
}

/// Whether each head has a score that takes part in its softmax and has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sinks {
    /// No.
    Without,
    /// `attn_sinks.weight`.
    Required,
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
    /// Whether they are used at all.
    pub positions: Positions,
    /// Of Q, K and V.
    pub matrices: Matrices,
    /// Of Q, K and V.
    pub biases: Biases,
    /// Of Q and K.
    pub head_norms: HeadNorms,
    /// Of the heads' outputs.
    pub output_gate: OutputGate,
    /// How many tokens a row sees; all of them where nothing is said.
    pub window: Option<usize>,
    /// What the scores come near and never reach.
    pub softcap: Option<f32>,
    /// Of each head.
    pub sinks: Sinks,
}

impl AttentionShape {
    /// The plain form: no biases but those of the file, nothing normalised, all tokens seen.
    pub fn plain(h: &HParams, rope: RopeStyle) -> Self {
        Self {
            rope,
            rope_base: h.rope_base,
            rope_scaling: h.features.rope_scaling,
            positions: Positions::Rotary,
            matrices: Matrices::Apart,
            biases: Biases::IfPresent,
            head_norms: HeadNorms::Without,
            output_gate: OutputGate::Without,
            window: None,
            softcap: None,
            sinks: Sinks::Without,
        }
    }

    /// The form in one layer of a family that has windows: there the base is another one, and
    /// nothing is stretched, since no row looks far.
    pub fn of_layer(mut self, h: &HParams, layer: usize) -> Self {
        if let Some(window) = h.features.window.filter(|w| !w.is_global(layer)) {
            self.window = Some(window.tokens);
            self.rope_base = window.rope_base;
            self.rope_scaling = RopeScaling::None;
        }
        self
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
    let total = q_rows + 2 * kv_width;
    let projections = [
        ("q", q_rows, 0),
        ("k", kv_width, q_rows),
        ("v", kv_width, q_rows + kv_width),
    ];
    let [q, k, v] = projections.map(|(stem, width, first)| {
        let projection = Projection {
            layer,
            input,
            stem,
            width,
            stacked: RowsOf { first, total },
        };
        projection.node(h, graph, shape)
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
        HeadNorms::PerHead => normed(h, graph, layer, [q, k], [h.head_dim; 2]),
        HeadNorms::Whole => normed(h, graph, layer, [q, k], [q_width, kv_width]),
    };
    let mixed = attention_of_heads(h, graph, shape, layer, [q, k, v]);
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

/// Q and K, each run of so many values on its own.
fn normed(
    h: &HParams,
    graph: &mut GraphBuilder<'_>,
    layer: usize,
    [q, k]: [NodeId; 2],
    [q_len, k_len]: [usize; 2],
) -> (NodeId, NodeId) {
    (
        run_norm(h, graph, layer, ("attn_q_norm", q_len), q),
        run_norm(h, graph, layer, ("attn_k_norm", k_len), k),
    )
}

fn attention_of_heads(
    h: &HParams,
    graph: &mut GraphBuilder<'_>,
    shape: AttentionShape,
    layer: usize,
    [q, k, v]: [NodeId; 3],
) -> NodeId {
    let (q, k) = match shape.positions {
        Positions::Without => (q, k),
        Positions::Rotary => {
            let rope = rope(h, graph, shape);
            (
                rotate(graph, layer, "q", rope, q),
                rotate(graph, layer, "k", rope, k),
            )
        }
    };
    let sinks = match shape.sinks {
        Sinks::Without => None,
        Sinks::Required => Some(graph.vector(&format!("blk.{layer}.attn_sinks.weight"), h.n_heads)),
    };
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
            softcap: shape.softcap,
            sinks,
        },
        inputs: vec![q, k, v],
        layer: Some(layer),
        width: h.n_heads * h.head_dim,
    })
}

fn rope(h: &HParams, graph: &mut GraphBuilder<'_>, shape: AttentionShape) -> Rope {
    let pairs = h.n_rot / 2;
    let (factors, long_factors) = match shape.rope_scaling {
        RopeScaling::LongRope { .. } => (
            Some(graph.vector("rope_factors_short.weight", pairs)),
            Some(graph.vector("rope_factors_long.weight", pairs)),
        ),
        _ => (graph.optional_vector("rope_freqs.weight", pairs), None),
    };
    Rope {
        style: shape.rope,
        head_dim: h.head_dim,
        n_rot: h.n_rot,
        base: shape.rope_base,
        scaling: shape.rope_scaling,
        factors,
        long_factors,
    }
}

struct Projection {
    layer: usize,
    input: NodeId,
    stem: &'static str,
    width: usize,
    /// Where its rows are if there is one tensor of all.
    stacked: RowsOf,
}

impl Projection {
    fn node(self, h: &HParams, graph: &mut GraphBuilder<'_>, shape: AttentionShape) -> NodeId {
        let name = format!("blk.{}.attn_{}", self.layer, self.stem);
        let weight = match shape.matrices {
            Matrices::Apart => graph.matrix(&format!("{name}.weight"), self.width, h.width),
            Matrices::Stacked => {
                let tensor = format!("blk.{}.attn_qkv.weight", self.layer);
                graph.matrix_rows(&tensor, self.width, self.stacked, h.width)
            }
        };
        let bias_name = format!("{name}.bias");
        let bias = match shape.biases {
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
