//! The gated feed-forward.

use crate::graph::{Activation, GraphBuilder, Node, NodeId, Op};
use crate::hparams::HParams;

/// From the normalised input to the output, before the residual.
pub fn gated_ffn(
    h: &HParams,
    graph: &mut GraphBuilder<'_>,
    activation: Activation,
    layer: usize,
    input: NodeId,
) -> NodeId {
    let names = Names {
        layer,
        node: "ffn",
        suffix: "",
    };
    names.node(h.ffn_width, activation, graph, input)
}

/// How the node and its weights are called.
pub(super) struct Names {
    pub(super) layer: usize,
    pub(super) node: &'static str,
    /// Of the weights' stems.
    pub(super) suffix: &'static str,
}

impl Names {
    pub(super) fn node(
        &self,
        inner: usize,
        activation: Activation,
        graph: &mut GraphBuilder<'_>,
        input: NodeId,
    ) -> NodeId {
        let Self {
            layer,
            node,
            suffix,
        } = self;
        let width = graph.width(input);
        let name = |stem: &str| format!("blk.{layer}.ffn_{stem}{suffix}.weight");
        let gate = graph.matrix(&name("gate"), inner, width);
        let up = graph.matrix(&name("up"), inner, width);
        let down = graph.matrix(&name("down"), width, inner);
        graph.node(Node {
            name: format!("blk.{layer}.{node}"),
            op: Op::GatedFfn {
                gate,
                up,
                down,
                inner,
                activation,
            },
            inputs: vec![input],
            layer: Some(*layer),
            width,
        })
    }
}
