//! The gated feed-forward.

use crate::graph::{Activation, GraphBuilder, Node, NodeId, Op};
use crate::hparams::HParams;

/// From the normalised input to the output, before the residual.
pub fn gated_ffn(h: &HParams, graph: &mut GraphBuilder<'_>, layer: usize, input: NodeId) -> NodeId {
    let gate = graph.matrix(
        &format!("blk.{layer}.ffn_gate.weight"),
        h.ffn_width,
        h.width,
    );
    let up = graph.matrix(&format!("blk.{layer}.ffn_up.weight"), h.ffn_width, h.width);
    let down = graph.matrix(
        &format!("blk.{layer}.ffn_down.weight"),
        h.width,
        h.ffn_width,
    );
    graph.node(Node {
        name: format!("blk.{layer}.ffn"),
        op: Op::GatedFfn {
            gate,
            up,
            down,
            inner: h.ffn_width,
            activation: Activation::Silu,
        },
        inputs: vec![input],
        layer: Some(layer),
        width: h.width,
    })
}
