//! The feed-forward of experts, with or without one that every row goes through.

use super::attention::Matrices;
use super::decoder::{add, linear};
use super::ffn::Names;
use crate::features::Experts;
use crate::graph::{Activation, ExpertBiases, GraphBuilder, Node, NodeId, Op, Routing, Shares};

/// Whether something is added to the products of the router and of every expert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoutedBiases {
    /// Nothing.
    Without,
    /// To all of them.
    Required,
}

/// In what the experts of families differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpertsShape {
    /// What the chosen ones count.
    pub shares: Shares,
    /// Of the router and of every expert.
    pub biases: RoutedBiases,
    /// The function on the gate.
    pub activation: Activation,
    /// The function on what the expert of every row is multiplied with, if with something.
    pub shared_gate: Option<Activation>,
}

impl ExpertsShape {
    /// The plain form: shares that add up to one, no biases, what is shared taken as it is.
    pub const PLAIN: Self = Self {
        shares: Shares::OfChosen,
        biases: RoutedBiases::Without,
        activation: Activation::Silu,
        shared_gate: None,
    };
}

/// From the normalised input to the output, before the residual.
pub fn experts(
    numbers: Experts,
    shape: ExpertsShape,
    graph: &mut GraphBuilder<'_>,
    layer: usize,
    input: NodeId,
) -> NodeId {
    let width = graph.width(input);
    let Experts { count, inner, .. } = numbers;
    let name = |stem: &str| format!("blk.{layer}.ffn_{stem}.weight");
    let router = graph.matrix(&name("gate_inp"), count, width);
    let gate = graph.expert_matrices(&name("gate_exps"), count, inner, width);
    let up = graph.expert_matrices(&name("up_exps"), count, inner, width);
    let down = graph.expert_matrices(&name("down_exps"), count, width, inner);
    let bias = |stem: &str| format!("blk.{layer}.ffn_{stem}.bias");
    let biases = match shape.biases {
        RoutedBiases::Without => None,
        RoutedBiases::Required => Some(ExpertBiases {
            router: graph.vector(&bias("gate_inp"), count),
            gate: graph.table(&bias("gate_exps"), &[count, inner]),
            up: graph.table(&bias("up_exps"), &[count, inner]),
            down: graph.table(&bias("down_exps"), &[count, width]),
        }),
    };
    let mixed = graph.node(Node {
        name: format!("blk.{layer}.ffn_experts"),
        op: Op::Experts {
            router,
            gate,
            up,
            down,
            biases,
            routing: Routing {
                n_used: numbers.used,
                shares: shape.shares,
                scale: numbers.scale,
            },
            inner,
            activation: shape.activation,
        },
        inputs: vec![input],
        layer: Some(layer),
        width,
    });
    match numbers.shared_inner {
        0 => mixed,
        inner => {
            let names = Names {
                layer,
                node: "ffn_shared",
                suffix: "_shexp",
                matrices: Matrices::Apart,
            };
            let shared = names.node(inner, Activation::Silu, graph, input);
            let shared = match shape.shared_gate {
                None => shared,
                Some(activation) => gated(activation, graph, layer, [shared, input]),
            };
            add(graph, layer, "ffn", mixed, shared)
        }
    }
}

/// The expert of every row, times the function of one number for each row.
fn gated(
    activation: Activation,
    graph: &mut GraphBuilder<'_>,
    layer: usize,
    [shared, input]: [NodeId; 2],
) -> NodeId {
    let width = graph.width(input);
    // The file has it as a vector: a matrix of one row.
    let weight = graph.row(&format!("blk.{layer}.ffn_gate_inp_shexp.weight"), width);
    let gate = linear(graph, layer, "ffn_shared_gate", (weight, None), input);
    graph.node(Node {
        name: format!("blk.{layer}.ffn_shared_gated"),
        op: Op::Gate { activation },
        inputs: vec![shared, gate],
        layer: Some(layer),
        width,
    })
}
