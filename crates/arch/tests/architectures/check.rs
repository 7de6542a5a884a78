//! What is wrong with a file is said all at once.

use candor_arch::{build, check};

use crate::tiny::{Tiny, tiny};

/// The problems of a file, as people read them.
fn problems(tiny: &Tiny, expected: &[&str]) {
    let index = tiny.index();
    let graph = build(&index).expect("the numbers are fine");
    let found: Vec<String> = check(&graph, &index)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn every_problem_is_named() {
    problems(&tiny("llama"), &[]);
    problems(
        &tiny("llama")
            .without_tensor("blk.0.ffn_norm.weight")
            .with_tensor("blk.0.attn_k.weight", &[32, 32], "F16")
            .with_tensor("blk.0.attn_norm.weight", &[32], "Q8_0")
            .without_tensor("blk.0.ffn_down.weight"),
        &[
            "the tensor blk.0.attn_norm.weight is stored as Q8_0, expected F32, F16 or BF16",
            "the tensor blk.0.attn_k.weight has the shape 32 × 32, expected 16 × 32",
            "the tensor blk.0.ffn_norm.weight is missing",
            "the tensor blk.0.ffn_down.weight is missing",
        ],
    );
    problems(
        &tiny("qwen2").without_tensor("blk.0.attn_v.bias"),
        &["the tensor blk.0.attn_v.bias is missing"],
    );
}

#[test]
fn what_nobody_asks_for_is_no_problem() {
    let more = tiny("llama")
        .with_tensor("blk.0.more.weight", &[7, 32], "F32")
        .with_tensor("blk.1.ffn_up.bias", &[64], "F32")
        .with_tensor("v.blk.0.attn_q.bias", &[64], "F32");
    problems(&more, &[]);
}

#[test]
fn what_changes_a_product_and_is_not_computed_is_named() {
    let biased = tiny("llama")
        .with_tensor("blk.0.ffn_up.bias", &[64], "F32")
        .with_tensor("blk.0.attn_q.bias", &[32], "F32")
        .with_tensor("blk.0.attn_q.scale", &[1], "F32")
        .with_tensor("output.bias", &[50], "F32")
        .with_tensor("blk.0.attn_q_norm.weight", &[8], "F32")
        .with_tensor("token_embd_norm.weight", &[32], "F32")
        .with_tensor("rope_factors_long.weight", &[4], "F32");
    problems(
        &biased,
        &[
            "the file has the tensor blk.0.ffn_up.bias, which changes the results and is not \
             supported by this version",
            "the file has the tensor blk.0.attn_q.scale, which changes the results and is not \
             supported by this version",
            "the file has the tensor output.bias, which changes the results and is not supported by \
             this version",
            "the file has the tensor blk.0.attn_q_norm.weight, which changes the results and is not \
             supported by this version",
            "the file has the tensor token_embd_norm.weight, which changes the results and is not \
             supported by this version",
            "the file has the tensor rope_factors_long.weight, which changes the results and is not \
             supported by this version",
        ],
    );
}

#[test]
fn a_renamed_tensor_is_found() {
    let renamed = tiny("llama")
        .without_tensor("blk.0.ffn_up.weight")
        .without_tensor("blk.0.ffn_gate.weight")
        .with_tensor("blk.0.ffn_gated.weight", &[64, 32], "Q8_0")
        .with_tensor("blk.0.ffn_upper.weight", &[64, 32], "Q8_0");
    problems(
        &renamed,
        &[
            "the tensor blk.0.ffn_gate.weight is missing \
             (the file has blk.0.ffn_gated.weight, of the same shape), \
             which is not supported by this version",
            "the tensor blk.0.ffn_up.weight is missing \
             (the file has blk.0.ffn_upper.weight, of the same shape), \
             which is not supported by this version",
        ],
    );
}

#[test]
fn experts_where_dense_tensors_are_looked_for_are_named() {
    let experts = tiny("llama")
        .without_tensor("blk.0.ffn_up.weight")
        .with_tensor("blk.0.ffn_up_exps.weight", &[2, 64, 32], "Q8_0");
    problems(
        &experts,
        &[
            "the tensor blk.0.ffn_up.weight is missing, since the file has experts there \
             (blk.0.ffn_up_exps.weight): with them this architecture is not supported by this \
             version",
        ],
    );
}

#[test]
fn a_tensor_of_several_matrices_is_named_once() {
    problems(
        &tiny("phi3")
            .with_tensor("blk.0.attn_qkv.weight", &[48, 32], "Q8_0")
            .without_tensor("blk.0.ffn_up.weight"),
        &[
            "the tensor blk.0.attn_qkv.weight has the shape 48 × 32, expected 64 × 32",
            "the tensor blk.0.ffn_up.weight is missing",
        ],
    );
}
