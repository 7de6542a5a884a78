//! Where the values between the nodes live during a forward.

use candor_arch::{Graph, NodeId, Op, Plan};

/// Gives every node a buffer, and buffers to several nodes whose values are not needed at the
/// same time.
pub(crate) struct Values {
    /// By node.
    place: Vec<usize>,
    buffers: Vec<Vec<f32>>,
}

impl Values {
    pub(crate) fn new(graph: &Graph, plan: &Plan) -> Self {
        let last_use = last_uses(graph, plan);
        let mut place = vec![0; graph.nodes.len()];
        let mut free = Vec::new();
        let mut n_buffers = 0;
        for (step_idx, step) in plan.steps.iter().enumerate() {
            for node in &step.nodes {
                place[node.0] = free.pop().unwrap_or_else(|| {
                    n_buffers += 1;
                    n_buffers - 1
                });
            }
            // What this step used last is free for the next one, not for this one's outputs.
            let done = (0..graph.nodes.len()).filter(|node| last_use[*node] == step_idx);
            free.extend(done.map(|node| place[node]));
        }
        Self {
            place,
            buffers: vec![Vec::new(); n_buffers],
        }
    }

    /// What a node gave.
    pub(crate) fn of(&self, node: NodeId) -> &[f32] {
        &self.buffers[self.place[node.0]]
    }

    /// A node's buffer, to be filled with `len` values and put back.
    pub(crate) fn take(&mut self, node: NodeId, len: usize) -> Vec<f32> {
        let mut buffer = std::mem::take(&mut self.buffers[self.place[node.0]]);
        buffer.resize(len, 0.0);
        buffer
    }

    /// Puts a buffer back.
    pub(crate) fn put(&mut self, node: NodeId, buffer: Vec<f32>) {
        self.buffers[self.place[node.0]] = buffer;
    }
}

/// For each node, the last step that reads it: its own where nobody does.
fn last_uses(graph: &Graph, plan: &Plan) -> Vec<usize> {
    let mut last = vec![0; graph.nodes.len()];
    for (step_idx, step) in plan.steps.iter().enumerate() {
        for node in &step.nodes {
            last[node.0] = step_idx;
            for input in &graph.node(*node).inputs {
                last[input.0] = step_idx;
            }
        }
    }
    // Logits go to the caller and have no buffer to free.
    for (node, last) in graph.nodes.iter().zip(&mut last) {
        if matches!(node.op, Op::Logits { .. }) {
            *last = usize::MAX;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use candor_arch::{Architecture, Features, GraphBuilder, HParams, fuse, models};

    use super::*;
    use crate::forward::PATTERNS;

    /// No value lies where another one is still needed.
    fn check(architecture: &Architecture, patterns: &[candor_arch::Pattern]) {
        let hparams = HParams {
            n_layers: 4,
            width: 8,
            n_heads: 2,
            n_kv_heads: 1,
            head_dim: 4,
            n_rot: 4,
            ffn_width: 16,
            vocabulary: 10,
            context_length: 16,
            norm_eps: 1e-5,
            rope_base: 10_000.0,
            attention_scale: 0.5,
            features: Features::SMALL,
        };
        let mut builder = GraphBuilder::new(&|_| true);
        (architecture.build)(&hparams, &mut builder);
        let graph = builder.finish(architecture.names[0], hparams);
        let plan = fuse(&graph, patterns);
        let values = Values::new(&graph, &plan);
        let last = last_uses(&graph, &plan);
        let mut first = vec![0; graph.nodes.len()];
        for (step_idx, step) in plan.steps.iter().enumerate() {
            step.nodes.iter().for_each(|node| first[node.0] = step_idx);
        }
        for a in 0..graph.nodes.len() {
            for b in 0..a {
                let apart = last[b] < first[a] || last[a] < first[b];
                assert!(apart || values.place[a] != values.place[b], "{a} and {b}");
            }
        }
        assert!(
            values.buffers.len() < graph.nodes.len() / 2,
            "buffers are used again"
        );
    }

    #[test]
    fn values_that_are_needed_together_lie_apart() {
        for architecture in models::ALL {
            check(architecture, &[]);
            check(architecture, PATTERNS);
        }
    }
}
