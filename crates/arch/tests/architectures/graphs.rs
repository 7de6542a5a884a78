//! The text of every architecture's graph at a tiny size.

use candor_arch::{FootprintOptions, KvType, StateSizes, build, check, footprint, models};
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

/// Families that came later, each with a snapshot of its own name.
#[test]
fn further_graphs_are_as_they_were() {
    let mixtral = tiny("llama")
        .with("expert_count", Value::Integer(4))
        .with("expert_used_count", Value::Integer(2))
        .without_tensor("blk.0.ffn_gate.weight")
        .without_tensor("blk.0.ffn_up.weight")
        .without_tensor("blk.0.ffn_down.weight")
        .with_tensor("blk.0.ffn_gate_inp.weight", &[4, 32], "F32")
        .with_tensor("blk.0.ffn_gate_exps.weight", &[4, 64, 32], "Q8_0")
        .with_tensor("blk.0.ffn_up_exps.weight", &[4, 64, 32], "Q8_0")
        .with_tensor("blk.0.ffn_down_exps.weight", &[4, 32, 64], "Q8_0");
    check_text("mixtral", &mixtral, include_str!("graphs/mixtral.txt"));
    check_text("phi3", &tiny("phi3"), include_str!("graphs/phi3.txt"));
    let long = tiny("phi3")
        .with("rope.scaling.original_context_length", Value::Integer(64))
        .with("rope.scaling.attn_factor", Value::Float(1.25))
        .with("attention.sliding_window", Value::Integer(16))
        .with_tensor("rope_factors_short.weight", &[4], "F32")
        .with_tensor("rope_factors_long.weight", &[4], "F32");
    check_text(
        "phi3-long",
        &long,
        include_str!("graphs/phi3-long-window.txt"),
    );
    let granite = tiny("granite")
        .with("embedding_scale", Value::Float(12.0))
        .with("residual_scale", Value::Float(0.25))
        .with("attention.scale", Value::Float(0.125))
        .with("logit_scale", Value::Float(8.0));
    check_text("granite", &granite, include_str!("graphs/granite.txt"));
    check_text(
        "granitemoe",
        &tiny("granitemoe"),
        include_str!("graphs/granitemoe.txt"),
    );
    check_text(
        "smollm3",
        &tiny("smollm3"),
        include_str!("graphs/smollm3.txt"),
    );
    let scaled = tiny("deepseek").with("expert_weights_scale", Value::Float(2.5));
    check_text("deepseek", &scaled, include_str!("graphs/deepseek.txt"));
    check_text(
        "gpt-oss",
        &tiny("gpt-oss"),
        include_str!("graphs/gpt-oss.txt"),
    );
}

/// Families that normalise behind attention and feed-forward.
#[test]
fn graphs_with_norms_behind_are_as_they_were() {
    check_text("gemma2", &tiny("gemma2"), include_str!("graphs/gemma2.txt"));
    check_text("olmo2", &tiny("olmo2"), include_str!("graphs/olmo2.txt"));
    let text = |text: &str| Value::Text(text.to_owned());
    let windows = tiny("olmo2")
        .with("block_count", Value::Integer(2))
        .with("attention.sliding_window", Value::Integer(16))
        .with(
            "attention.sliding_window_pattern",
            Value::Bools(vec![true, false]),
        )
        .with("rope.scaling.type", text("yarn"))
        .with("rope.scaling.factor", Value::Float(8.0))
        .with("rope.scaling.original_context_length", Value::Integer(64))
        .with_all_tensors();
    check_text(
        "olmo2-window",
        &windows,
        include_str!("graphs/olmo2-window.txt"),
    );
}

#[test]
fn gemma_stretches_the_layers_without_a_window_only() {
    let stretched = tiny("gemma3")
        .with("rope.scaling.type", Value::Text("linear".to_owned()))
        .with("rope.scaling.factor", Value::Float(8.0));
    let text = build(&stretched.index())
        .expect("it is computed")
        .to_string();
    let turned: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once("base "))
        .map(|(_, base)| base)
        .collect();
    let (windowed, global) = ("10000", "10000 linear 8");
    assert_eq!(turned, [windowed, windowed, global, global], "{text}");
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
        state: StateSizes::of_one(8_192, KvType::F16, 1),
        rows_max: 8,
    };
    // A full layer as below, and one of 16 tokens and two pages for the end and each of four
    // checkpoints, and a batch, in whole pages; a full one, and one of 3 rows of 64 channels and four matrices of
    // 8 by 8 in float32, each twice and for each checkpoint.
    for (name, bytes) in [
        ("gemma3", 64 * (8_192 + 15 * 256)),
        ("qwen35", 64 * 8_192 + 6 * 4 * (3 * 64 + 4 * 64)),
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
        state: StateSizes::of_one(100, KvType::F16, 3),
        rows_max: 8,
    };
    let found = footprint(&graph, &index, options);
    assert_eq!(
        found.weights_bytes,
        index.tensors.last().expect("some").range.end
    );
    // Two heads of 8, keys and values, 2 bytes each.
    assert_eq!(found.state_bytes_per_token, 64);
    // A page.
    assert_eq!(found.state_bytes, 256 * 64);
    // The same in 8 bits, each with a scale of 2 bytes.
    let small = FootprintOptions {
        state: StateSizes::of_one(100, KvType::Q8_0, 3),
        ..options
    };
    let small = footprint(&graph, &index, small);
    assert_eq!(small.state_bytes, 256 * 4 * (8 + 2));
    // Each thread unfolds a head.
    assert_eq!(
        small.scratch_bytes - found.scratch_bytes,
        3 * 256 * 2 * 8 * 2
    );
    // 8 rows of 4 times the 64 inner values.
    assert_eq!(found.scratch_bytes, 8 * 4 * 64 * 4);
    let sum = found.weights_bytes + found.state_bytes + found.scratch_bytes;
    assert_eq!(found.total_bytes(), sum);
}

#[test]
fn matrices_in_one_tensor_are_counted_once() {
    let index = tiny("phi3").index();
    let graph = build(&index).expect("the index is whole");
    let options = FootprintOptions {
        state: StateSizes::of_one(1, KvType::F16, 1),
        rows_max: 1,
    };
    let found = footprint(&graph, &index, options);
    let all = index.tensors.last().expect("some").range.end;
    assert_eq!(found.weights_bytes, all);
}
