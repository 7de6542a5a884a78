//! The gated delta net: a layer that keeps a recurrent state instead of keys and values.

use super::decoder::linear;
use crate::features::Recurrence;
use crate::graph::{
    Activation, DeltaNet, GraphBuilder, KeyOrder, Node, NodeId, Op, StateLayout, WeightId,
};
use crate::hparams::HParams;

/// How the projections of alpha and beta lie in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlphaBeta {
    /// A matrix each.
    Apart,
    /// One matrix: for each key head the betas of its value heads, then their alphas.
    ByKeyHead,
}

/// From the normalised input of a layer to the output, before the residual.
pub fn delta_net(
    h: &HParams,
    graph: &mut GraphBuilder<'_>,
    (shape, alpha_beta): (Recurrence, AlphaBeta),
    layer: usize,
    input: NodeId,
) -> NodeId {
    let Recurrence {
        conv_taps,
        state_size,
        n_key_heads,
        n_value_heads,
        ..
    } = shape;
    let values = n_value_heads * state_size;
    let channels = 2 * n_key_heads * state_size + values;
    let name = |stem: &str| format!("blk.{layer}.{stem}");
    let project = |graph: &mut GraphBuilder<'_>, stem: &str, rows: usize| {
        let weight = graph.matrix(&name(&format!("{stem}.weight")), rows, h.width);
        linear(graph, layer, stem, (weight, None), input)
    };
    let mixed = project(graph, "attn_qkv", channels);
    let z = project(graph, "attn_gate", values);
    let (alpha, beta) = match alpha_beta {
        AlphaBeta::Apart => (
            project(graph, "ssm_alpha", n_value_heads),
            project(graph, "ssm_beta", n_value_heads),
        ),
        AlphaBeta::ByKeyHead => {
            let both = project(graph, "ssm_ba", 2 * n_value_heads);
            let group = n_value_heads / n_key_heads;
            (
                of_each_key(graph, layer, both, ("ssm_alpha", group, group)),
                of_each_key(graph, layer, both, ("ssm_beta", 0, group)),
            )
        }
    };
    let weight = graph.table(&name("ssm_conv1d.weight"), &[channels, conv_taps]);
    let conv = graph.node(Node {
        name: name("ssm_conv"),
        op: Op::CausalConv {
            weight,
            taps: conv_taps,
        },
        inputs: vec![mixed],
        layer: Some(layer),
        width: channels,
    });
    let net = DeltaNet {
        a: graph.vector(&name("ssm_a"), n_value_heads),
        dt: graph.vector(&name("ssm_dt.bias"), n_value_heads),
        n_key_heads,
        n_value_heads,
        state_size,
        key_order: match alpha_beta {
            AlphaBeta::Apart => KeyOrder::Cyclic,
            AlphaBeta::ByKeyHead => KeyOrder::Grouped,
        },
        eps: h.norm_eps,
    };
    let told = graph.node(Node {
        name: name("delta_net"),
        op: Op::DeltaNet(net),
        inputs: vec![conv, alpha, beta],
        layer: Some(layer),
        width: values,
    });
    graph.state(StateLayout::Recurrent {
        channels,
        taps: conv_taps,
        n_heads: n_value_heads,
        state_size,
    });
    let weight = graph.vector(&name("ssm_norm.weight"), state_size);
    let gated = gated_norm(h, graph, layer, weight, [told, z]);
    let weight = graph.matrix(&name("ssm_out.weight"), h.width, values);
    linear(graph, layer, "ssm_out", (weight, None), gated)
}

/// The part of each key head of a row.
fn of_each_key(
    graph: &mut GraphBuilder<'_>,
    layer: usize,
    input: NodeId,
    (stem, start, len): (&str, usize, usize),
) -> NodeId {
    let width = graph.width(input) / 2;
    graph.node(Node {
        name: format!("blk.{layer}.{stem}"),
        op: Op::Part {
            period: 2 * len,
            start,
            len,
        },
        inputs: vec![input],
        layer: Some(layer),
        width,
    })
}

/// Every head's output normalised, times silu(z).
fn gated_norm(
    h: &HParams,
    graph: &mut GraphBuilder<'_>,
    layer: usize,
    weight: WeightId,
    [told, z]: [NodeId; 2],
) -> NodeId {
    let width = graph.width(told);
    let node = |stem: &str, op: Op, inputs: Vec<NodeId>| Node {
        name: format!("blk.{layer}.{stem}"),
        op,
        inputs,
        layer: Some(layer),
        width,
    };
    let eps = h.norm_eps;
    let normed = graph.node(node("ssm_norm", Op::RmsNorm { weight, eps }, vec![told]));
    let activation = Activation::Silu;
    graph.node(node("ssm_gated", Op::Gate { activation }, vec![normed, z]))
}
