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
fn what_cannot_change_the_results_is_no_problem() {
    let more = tiny("llama")
        .with_tensor("blk.0.attn_rot_embd", &[4], "F32")
        .with_tensor("blk.0.attn_rot_embd.weight", &[4], "F32")
        .with_tensor("blk.0.self_attn.rotary_emb.inv_freq", &[4], "F32")
        .with_tensor("blk.1.ffn_up.bias", &[64], "F32")
        .with_tensor("blk.1.nextn.eh_proj.weight", &[32, 64], "F32")
        .with_tensor("v.blk.0.attn_q.bias", &[64], "F32");
    problems(&more, &[]);
}

/// That these tensors of a file, and no others, are named as what is not computed.
fn unused(tiny: &Tiny, names: &[&str]) {
    let said = |name: &&str| {
        format!(
            "the file has the tensor {name}, which changes the results and is not supported by \
             this version"
        )
    };
    let expected: Vec<String> = names.iter().map(said).collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    problems(tiny, &expected);
}

#[test]
fn what_may_change_the_results_and_is_not_computed_is_named() {
    let names = [
        "blk.0.ffn_up.bias",
        "blk.0.attn_q.scale",
        "output.bias",
        "blk.0.attn_q_norm.weight",
        "token_embd_norm.weight",
        "rope_factors_long.weight",
        "blk.0.attn_gate.weight",
        "blk.0.attn_sinks.weight",
        "blk.0.attn_sinks",
        "blk.0.attn_rot_embd.bias",
        "blk.0.more",
    ];
    let more = names.iter().fold(tiny("llama"), |tiny, name| {
        tiny.with_tensor(name, &[8], "F32")
    });
    unused(&more, &names);
    // Experts that every row goes through, in a file that does not say that it has them.
    unused(
        &tiny("granitemoe").without("expert_shared_feed_forward_length"),
        &[
            "blk.0.ffn_gate_shexp.weight",
            "blk.0.ffn_up_shexp.weight",
            "blk.0.ffn_down_shexp.weight",
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
