//! Which nodes may keep their values in the same place.

use crate::fuse::Plan;
use crate::graph::{Graph, Op};

/// Gives every node the number of a place, and one place to several nodes whose values are not
/// needed at the same time. A node's place is not that of an input of its step.
pub fn places(graph: &Graph, plan: &Plan) -> Vec<usize> {
    let last_use = last_uses(graph, plan);
    let mut place = vec![0; graph.nodes.len()];
    let mut free = Vec::new();
    let mut n_places = 0;
    for (step_idx, step) in plan.steps.iter().enumerate() {
        for node in &step.nodes {
            place[node.0] = free.pop().unwrap_or_else(|| {
                n_places += 1;
                n_places - 1
            });
        }
        // What this step used last is free for the next one, not for this one's outputs.
        let done = (0..graph.nodes.len()).filter(|node| last_use[*node] == step_idx);
        free.extend(done.map(|node| place[node]));
    }
    place
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
    // Logits go to the caller, after the last step.
    for (node, last) in graph.nodes.iter().zip(&mut last) {
        if matches!(node.op, Op::Logits { .. }) {
            *last = usize::MAX;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Architecture, Features, GraphBuilder, HParams, Pattern, fuse, models};

    /// No value lies where another one is still needed.
    fn check(architecture: &Architecture, patterns: &[Pattern]) {
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
        let place = places(&graph, &plan);
        let last = last_uses(&graph, &plan);
        let mut first = vec![0; graph.nodes.len()];
        for (step_idx, step) in plan.steps.iter().enumerate() {
            step.nodes.iter().for_each(|node| first[node.0] = step_idx);
        }
        for a in 0..graph.nodes.len() {
            for b in 0..a {
                let apart = last[b] < first[a] || last[a] < first[b];
                assert!(apart || place[a] != place[b], "{a} and {b}");
            }
        }
        let n_places = place.iter().max().map_or(0, |most| most + 1);
        assert!(n_places < graph.nodes.len() / 2, "places are used again");
    }

    #[test]
    fn values_that_are_needed_together_lie_apart() {
        for architecture in models::ALL {
            check(architecture, &[]);
            check(
                architecture,
                &[
                    Pattern::SharedInput,
                    Pattern::AddNorm,
                    Pattern::RopeAttention,
                ],
            );
        }
    }
}
