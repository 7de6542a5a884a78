//! The feed-forward of experts, with or without one that every row goes through.

use super::decoder::{add, linear};
use super::ffn::Names;
use crate::features::Experts;
use crate::graph::{Activation, GraphBuilder, Node, NodeId, Op};

/// From the normalised input to the output, before the residual.
pub fn experts(
    experts: Experts,
    graph: &mut GraphBuilder<'_>,
    layer: usize,
    input: NodeId,
) -> NodeId {
    let width = graph.width(input);
    let Experts { count, inner, .. } = experts;
    let name = |stem: &str| format!("blk.{layer}.ffn_{stem}.weight");
    let router = graph.matrix(&name("gate_inp"), count, width);
    let gate = graph.expert_matrices(&name("gate_exps"), count, inner, width);
    let up = graph.expert_matrices(&name("up_exps"), count, inner, width);
    let down = graph.expert_matrices(&name("down_exps"), count, width, inner);
    let mixed = graph.node(Node {
        name: format!("blk.{layer}.ffn_experts"),
        op: Op::Experts {
            router,
            gate,
            up,
            down,
            n_used: experts.used,
            inner,
            activation: Activation::Silu,
        },
        inputs: vec![input],
        layer: Some(layer),
        width,
    });
    match experts.shared_inner {
        0 => mixed,
        shared_inner => {
            let shared = shared_expert(shared_inner, graph, layer, input);
            add(graph, layer, "ffn", mixed, shared)
        }
    }
}

/// The expert of every row, times the sigmoid of one number for each row.
fn shared_expert(
    inner: usize,
    graph: &mut GraphBuilder<'_>,
    layer: usize,
    input: NodeId,
) -> NodeId {
    let width = graph.width(input);
    let names = Names {
        layer,
        node: "ffn_shared",
        suffix: "_shexp",
    };
    let shared = names.node(inner, Activation::Silu, graph, input);
    // The file has it as a vector: a matrix of one row.
    let weight = graph.row(&format!("blk.{layer}.ffn_gate_inp_shexp.weight"), width);
    let gate = linear(graph, layer, "ffn_shared_gate", (weight, None), input);
    graph.node(Node {
        name: format!("blk.{layer}.ffn_shared_gated"),
        op: Op::Gate {
            activation: Activation::Sigmoid,
        },
        inputs: vec![shared, gate],
        layer: Some(layer),
        width,
    })
}
