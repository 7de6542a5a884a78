//! The gated feed-forward.

use super::attention::Matrices;
use crate::graph::{Activation, GraphBuilder, Node, NodeId, Op, RowsOf};
use crate::hparams::HParams;

/// From the normalised input to the output, before the residual.
pub fn gated_ffn(
    h: &HParams,
    graph: &mut GraphBuilder<'_>,
    activation: Activation,
    layer: usize,
    input: NodeId,
) -> NodeId {
    Names::plain(layer).node(h.ffn_width, activation, graph, input)
}

/// Likewise, where the file keeps the gate's matrix and the other one as one tensor.
pub fn stacked_ffn(
    h: &HParams,
    graph: &mut GraphBuilder<'_>,
    activation: Activation,
    layer: usize,
    input: NodeId,
) -> NodeId {
    let mut names = Names::plain(layer);
    names.matrices = Matrices::Stacked;
    names.node(h.ffn_width, activation, graph, input)
}

/// How the node and its weights are called.
pub(super) struct Names {
    pub(super) layer: usize,
    pub(super) node: &'static str,
    /// Of the weights' stems.
    pub(super) suffix: &'static str,
    /// Of gate and up.
    pub(super) matrices: Matrices,
}

impl Names {
    fn plain(layer: usize) -> Self {
        Self {
            layer,
            node: "ffn",
            suffix: "",
            matrices: Matrices::Apart,
        }
    }

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
            matrices,
        } = self;
        let width = graph.width(input);
        let name = |stem: &str| format!("blk.{layer}.ffn_{stem}{suffix}.weight");
        let (gate, up) = match matrices {
            Matrices::Apart => (
                graph.matrix(&name("gate"), inner, width),
                graph.matrix(&name("up"), inner, width),
            ),
            Matrices::Stacked => {
                let mut part = |first| {
                    let total = 2 * inner;
                    graph.matrix_rows(&name("up"), inner, RowsOf { first, total }, width)
                };
                (part(0), part(inner))
            }
        };
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
