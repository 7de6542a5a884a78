//! The text of every architecture's graph at a tiny size.

use candor_arch::{FootprintOptions, build, check, footprint, models};

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
