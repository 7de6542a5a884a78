//! The text of every architecture's graph at a tiny size.

use candor_arch::{FootprintOptions, build, check, footprint, models};
use candor_modelfile::Value;

use crate::tiny::{Tiny, tiny};

/// Holds a graph's text against the file of that name.
fn check_text(name: &str, tiny: &Tiny, expected: &str) {
    let index = tiny.index();
    let graph = build(&index).expect("the index is whole");
    assert_eq!(check(&graph, &index), []);
    let found = graph.to_string();
    assert!(found == expected, "{name}: the graph is now\n{found}");
}

#[test]
fn graphs_are_as_they_were() {
    check_text("llama", &tiny("llama"), include_str!("graphs/llama.txt"));
    let tied =
        tiny("llama")
            .without_tensor("output.weight")
            .with_tensor("rope_freqs.weight", &[4], "F32");
    check_text(
        "tied",
        &tied,
        include_str!("graphs/llama-tied-rope-factors.txt"),
    );
    check_text("qwen2", &tiny("qwen2"), include_str!("graphs/qwen2.txt"));
    check_text("qwen3", &tiny("qwen3"), include_str!("graphs/qwen3.txt"));
    check_text(
        "qwen3moe",
        &tiny("qwen3moe"),
        include_str!("graphs/qwen3moe.txt"),
    );
    check_text("gemma3", &tiny("gemma3"), include_str!("graphs/gemma3.txt"));
    check_text("qwen35", &tiny("qwen35"), include_str!("graphs/qwen35.txt"));
    check_text(
        "qwen35moe",
        &tiny("qwen35moe"),
        include_str!("graphs/qwen35moe.txt"),
    );
    check_text(
        "qwen3next",
        &tiny("qwen3next"),
        include_str!("graphs/qwen3next.txt"),
    );
}

#[test]
fn scaled_rotations_are_as_they_were() {
    for (kind, words) in [("linear", "linear 4"), ("yarn", "yarn 4 of 64")] {
        let scaled = tiny("llama")
            .with("rope.scaling.type", Value::Text(kind.to_owned()))
            .with("rope.scaling.factor", Value::Float(4.0))
            .with("rope.scaling.original_context_length", Value::Integer(64));
        let text = build(&scaled.index()).expect("it is computed").to_string();
        assert_eq!(
            text.matches(&format!("base 10000 {words}\n")).count(),
            2,
            "{text}"
        );
    }
}

#[test]
fn every_architecture_has_a_tiny_graph_here() {
    for architecture in models::ALL {
        for name in architecture.names {
            let index = tiny(name).index();
            let graph = build(&index).expect("the index is whole");
            assert_eq!(graph.architecture, *name);
            assert_eq!(graph.state.len(), graph.hparams.n_layers);
        }
    }
}

#[test]
fn an_architecture_that_is_not_known_is_named() {
    let error = build(&tiny("qwen99").index()).expect_err("nobody knows it");
    assert_eq!(
        error.to_string(),
        "architecture \"qwen99\" is not supported by this version"
    );
}

#[test]
fn windows_and_sums_take_what_they_keep() {
    let options = FootprintOptions {
        state_tokens: 100,
        state_value_bytes: 2,
        rows_max: 8,
    };
    // A full layer as below, and one of 16 tokens; a full one, and one of 3 rows of 64 channels
    // and four matrices of 8 by 8 in float32.
    for (name, bytes) in [
        ("gemma3", 6_400 + 16 * 64),
        ("qwen35", 6_400 + 4 * (3 * 64 + 4 * 64)),
    ] {
        let index = tiny(name).index();
        let graph = build(&index).expect("the index is whole");
        assert_eq!(
            footprint(&graph, &index, options).state_bytes,
            bytes,
            "{name}"
        );
    }
}

#[test]
fn a_footprint_is_arithmetic() {
    let index = tiny("llama").index();
    let graph = build(&index).expect("the index is whole");
    let options = FootprintOptions {
        state_tokens: 100,
        state_value_bytes: 2,
        rows_max: 8,
    };
    let found = footprint(&graph, &index, options);
    assert_eq!(
        found.weights_bytes,
        index.tensors.last().expect("some").range.end
    );
    // Two heads of 8, keys and values, 2 bytes each.
    assert_eq!(found.state_bytes_per_token, 64);
    assert_eq!(found.state_bytes, 6_400);
    // 8 rows of 4 times the 64 inner values.
    assert_eq!(found.scratch_bytes, 8 * 4 * 64 * 4);
    let sum = found.weights_bytes + found.state_bytes + found.scratch_bytes;
    assert_eq!(found.total_bytes(), sum);
}
