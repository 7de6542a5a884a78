//! Numbers that make no sense, or that are not computed, are refused by their name.

use candor_arch::build;
use candor_modelfile::Value;

use crate::tiny::{Tiny, tiny};

/// The refusal holds these words.
fn refused(tiny: Tiny, words: &[&str]) {
    let error = build(&tiny.index()).expect_err(words[0]).to_string();
    for word in words {
        assert!(error.contains(word), "{error:?} lacks {word:?}");
    }
}

fn number(value: i64) -> Value {
    Value::Integer(value.into())
}

#[test]
fn numbers_outside_their_bounds_are_refused() {
    let llama = || tiny("llama");
    for stem in [
        "block_count",
        "embedding_length",
        "attention.head_count",
        "context_length",
    ] {
        refused(llama().with(stem, number(0)), &[stem, "0", "1 to"]);
        refused(
            llama().with(stem, number(1 << 40)),
            &[stem, "1099511627776", "1 to"],
        );
        refused(llama().with(stem, Value::Text("x".to_owned())), &[stem]);
        refused(llama().without(stem), &[stem]);
    }
    refused(
        llama().with("attention.head_count_kv", number(3)),
        &["head_count_kv", "divide"],
    );
    refused(
        llama().with("attention.head_count", number(5)),
        &["head_count", "divide"],
    );
    refused(
        llama().with("attention.value_length", number(9)),
        &["value_length", "9", "8"],
    );
    refused(
        llama().with("rope.dimension_count", number(9)),
        &["dimension_count", "9"],
    );
    refused(
        llama().with("rope.dimension_count", number(7)),
        &["dimension_count", "7"],
    );
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        refused(
            llama().with("rope.freq_base", Value::Float(bad)),
            &["rope.freq_base"],
        );
        let stem = "attention.layer_norm_rms_epsilon";
        refused(llama().with(stem, Value::Float(bad)), &[stem]);
    }
    refused(
        llama().without("attention.layer_norm_rms_epsilon"),
        &["rms_epsilon"],
    );
    refused(
        llama().without_tensor("token_embd.weight"),
        &["token_embd.weight"],
    );
}

#[test]
fn what_is_not_computed_is_refused() {
    let llama = || tiny("llama");
    let kind = |kind: &str| Value::Text(kind.to_owned());
    let scaled = llama().with("rope.scaling.type", kind("longrope"));
    refused(
        scaled,
        &["llama.rope.scaling.type", "longrope", "not supported"],
    );
    for (stem, value) in [
        ("rope.scaling.yarn_beta_fast", 16.0),
        ("rope.scaling.attn_factor", 2.0),
    ] {
        let yarn = llama()
            .with("rope.scaling.type", kind("yarn"))
            .with(stem, Value::Float(value));
        refused(yarn, &[stem, "not supported"]);
    }
    let negative = llama().with("rope.scaling.factor", Value::Float(-4.0));
    refused(negative, &["rope.scaling.factor", "-4", "positive"]);
    let gemma = || tiny("gemma3");
    let stretched = gemma().with("rope.scaling.type", kind("yarn"));
    refused(stretched, &["gemma3.rope.scaling.type", "not supported"]);
    let stretched = tiny("gemma2").with("rope.scaling.factor", Value::Float(8.0));
    refused(stretched, &["gemma2.rope.scaling.factor", "not supported"]);
    let uncapped = tiny("gemma2").with("attn_logit_softcapping", Value::Float(0.0));
    refused(uncapped, &["gemma2.attn_logit_softcapping", "positive"]);
    // Too short, and with two neighbours.
    for windowed in [vec![true, true, false], vec![true, false, false, true]] {
        let irregular = tiny("gemma2")
            .with("block_count", number(4))
            .with("attention.sliding_window_pattern", Value::Bools(windowed));
        let stem = "gemma2.attention.sliding_window_pattern";
        refused(irregular, &[stem, "not supported"]);
    }
    let capped = gemma().with("final_logit_softcapping", Value::Float(30.0));
    refused(capped, &["gemma3.final_logit_softcapping", "not supported"]);
    refused(
        tiny("qwen35").with("nextn_predict_layers", number(1)),
        &["qwen35.nextn_predict_layers", "1", "not supported"],
    );
    refused(
        tiny("qwen2").with("expert_count", number(8)),
        &["qwen2.expert_count", "8", "not supported"],
    );
}

/// What the families have beside the others' keys, where it says something that is not computed.
#[test]
fn unusual_keys_are_refused_by_name() {
    let text = |text: &str| Value::Text(text.to_owned());
    for (name, stem, value) in [
        ("granite", "rope.scaling.finetuned", Value::Bool(false)),
        ("granite", "logit_scale", Value::Float(0.0)),
        ("granite", "expert_count", number(8)),
        ("deepseek", "expert_weights_norm", Value::Bool(true)),
        ("deepseek", "expert_gating_func", number(2)),
        ("deepseek", "expert_gating_func", number(3)),
        ("qwen2", "rope.scaling.attn_factor", Value::Float(1.25)),
        ("deepseek", "expert_group_count", number(4)),
        ("qwen3moe", "expert_gating_func", number(2)),
        ("qwen3moe", "expert_shared_count", number(1)),
        ("llama", "expert_shared_count", number(1)),
        ("gpt-oss", "rope.scaling.type", text("longrope")),
        ("phi3", "rope.scaling.type", text("longrope")),
        ("phi3", "rope.scaling.attn_factor", Value::Float(1.25)),
        ("phi3", "expert_count", number(16)),
    ] {
        refused(tiny(name).with(stem, value), &[stem]);
    }
    let stretched = tiny("phi3")
        .with_tensor("rope_factors_long.weight", &[4], "F32")
        .with("rope.scaling.type", text("yarn"));
    refused(stretched, &["rope.scaling.type", "yarn", "not supported"]);
}

#[test]
fn what_a_family_needs_has_to_be_there() {
    for (name, stem) in [
        ("deepseek", "expert_used_count"),
        ("gpt-oss", "attention.sliding_window"),
        ("qwen3moe", "expert_used_count"),
        ("qwen3moe", "expert_feed_forward_length"),
        ("gemma3", "attention.sliding_window"),
        ("qwen35", "ssm.conv_kernel"),
        ("qwen3next", "ssm.state_size"),
    ] {
        refused(tiny(name).without(stem), &[stem]);
        refused(tiny(name).with(stem, number(0)), &[stem, "1 to"]);
    }
    let too_many = tiny("qwen3moe").with("expert_used_count", number(5));
    refused(too_many, &["expert_used_count", "5", "1 to 4"]);
    let odd = tiny("qwen35").with("ssm.group_count", number(3));
    refused(odd, &["ssm.time_step_rank", "divide"]);
}

#[test]
fn what_changes_nothing_is_taken() {
    let same = tiny("llama")
        .with("rope.scaling.type", Value::Text("none".to_owned()))
        .with("rope.scaling.factor", Value::Float(1.0))
        .with("expert_count", number(0))
        .with("rope.dimension_count", number(8));
    let graph = build(&same.index()).expect("all of it is fine");
    let plain = build(&tiny("llama").index()).expect("the index is whole");
    assert_eq!(graph, plain);
}

/// The largest Gemma of each generation divides scores by another width, which no key says.
#[test]
fn the_largest_gemmas_have_a_scale_of_their_own() {
    for (name, layers, width) in [
        ("gemma2", 46, 32 / 4),
        ("gemma2", 45, 16),
        ("gemma3", 62, 32 / 4),
        ("gemma3", 61, 16),
    ] {
        let wide = tiny(name)
            .with("attention.key_length", number(16))
            .with("block_count", number(layers));
        let graph = build(&wide.index()).expect("the numbers are fine");
        assert_eq!(
            graph.hparams.attention_scale,
            1.0 / (width as f32).sqrt(),
            "{name} of {layers} layers"
        );
    }
}

#[test]
fn heads_may_be_wider_than_the_model() {
    let wide = tiny("llama").with("attention.key_length", number(16));
    let graph = build(&wide.index()).expect("the numbers are fine");
    assert_eq!((graph.hparams.head_dim, graph.hparams.n_rot), (16, 16));
}
