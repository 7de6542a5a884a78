//! Plans: every node in exactly one step.

use candor_arch::{Graph, NodeId, Pattern, build, fuse};

use crate::tiny::tiny;

const ALL: &[Pattern] = &[
    Pattern::SharedInput,
    Pattern::AddNorm,
    Pattern::RopeAttention,
    Pattern::NormRopeAttention,
];

/// The steps of a plan as `name+name+…`.
fn steps(graph: &Graph, patterns: &[Pattern]) -> Vec<String> {
    let plan = fuse(graph, patterns);
    let covered: Vec<NodeId> = plan.steps.iter().flat_map(|s| s.nodes.clone()).collect();
    let every: Vec<NodeId> = (0..graph.nodes.len()).map(NodeId).collect();
    assert_eq!(covered, every, "every node once, in order");
    let names = plan.steps.iter().map(|step| {
        let names: Vec<&str> = step
            .nodes
            .iter()
            .map(|id| &graph.node(*id).name[..])
            .collect();
        assert_eq!(step.pattern.is_some(), names.len() > 1);
        names.join("+")
    });
    names.collect()
}

#[test]
fn without_patterns_every_node_is_a_step() {
    let graph = build(&tiny("qwen2").index()).expect("the index is whole");
    assert_eq!(steps(&graph, &[]).len(), graph.nodes.len());
}

#[test]
fn neighbours_are_fused() {
    for name in ["llama", "qwen2"] {
        let graph = build(&tiny(name).index()).expect("the index is whole");
        assert_eq!(
            steps(&graph, ALL),
            [
                "embed",
                "blk.0.attn_norm",
                "blk.0.attn_q+blk.0.attn_k+blk.0.attn_v",
                "blk.0.rope_q+blk.0.rope_k+blk.0.attn",
                "blk.0.attn_out",
                "blk.0.attn_residual+blk.0.ffn_norm",
                "blk.0.ffn",
                "blk.0.out+output_norm",
                "logits",
            ]
        );
    }
}

#[test]
fn normalised_heads_are_fused_with_what_turns_them() {
    let graph = build(&tiny("qwen3").index()).expect("the index is whole");
    let attention = |patterns: &[Pattern]| -> Vec<String> {
        let steps = steps(&graph, patterns).into_iter();
        let of_heads = |step: &String| step.contains("rope") || step.contains("k_norm");
        steps.filter(of_heads).collect()
    };
    assert_eq!(
        attention(ALL),
        ["blk.0.attn_q_norm+blk.0.attn_k_norm+blk.0.rope_q+blk.0.rope_k+blk.0.attn"]
    );
    // A backend without the pattern still has the smaller one.
    assert_eq!(
        attention(&[Pattern::RopeAttention]),
        ["blk.0.attn_k_norm", "blk.0.rope_q+blk.0.rope_k+blk.0.attn",]
    );
}

#[test]
fn a_norm_of_all_heads_together_stays_a_step() {
    let graph = build(&tiny("olmo2").index()).expect("the index is whole");
    let fused = steps(&graph, ALL);
    assert!(fused.contains(&"blk.0.attn_q_norm".to_owned()), "{fused:?}");
    assert!(fused.contains(&"blk.0.rope_q+blk.0.rope_k+blk.0.attn".to_owned()));
}
