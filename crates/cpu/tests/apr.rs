//! Logits of real APR files against an independent reader's.
//!
//! `tests/golden/README.md` says where the numbers come from.
#![expect(clippy::print_stderr, reason = "a test says what it measured")]

use std::fs;

use candor_backend::Precision;
use candor_modelfile::Assumed;
use candor_testkit::golden::{apr_expected, apr_folder, write_apr};
use serde::Deserialize;
use serde_json::Value;

#[path = "golden/runner.rs"]
#[allow(dead_code, reason = "the golden models use the rest")]
mod runner;

/// What is known of a file.
#[derive(Deserialize)]
struct Expected {
    n_vocab: usize,
    logits_file: String,
    /// What a person has to state of a file that is refused otherwise.
    #[serde(default)]
    if_told: serde_json::Map<String, Value>,
    cases: Vec<Case>,
}

/// A prompt; all positions have logits.
#[derive(Deserialize)]
struct Case {
    name: String,
    tokens: Vec<u32>,
    n_pos: usize,
    offset: usize,
}

/// Root mean square and largest difference.
fn distance(found: &[f32], expected: &[f32]) -> (f32, f32) {
    assert_eq!(found.len(), expected.len());
    let differences = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    let squares: f32 = differences.clone().map(|d| d * d).sum();
    (
        (squares / found.len() as f32).sqrt(),
        differences.fold(0.0, f32::max),
    )
}

/// The facts under our names. Whose order the rows are in is told by what else is in the file.
fn told(facts: &serde_json::Map<String, Value>) -> Assumed {
    let mut assumed = Assumed::default();
    for (key, value) in facts {
        let ours = match key.as_str() {
            "architecture" => "general.architecture",
            "rope_theta" => "rope.freq_base",
            "num_heads" => "attention.head_count",
            "num_kv_heads" => "attention.head_count_kv",
            "head_dim" => "attention.key_length",
            "num_experts_per_tok" => "expert_used_count",
            "rope_style" => continue,
            other => panic!("{other} is not known here"),
        };
        let value = value.as_str().map_or(value.to_string(), str::to_owned);
        assumed.add(&format!("{ours}={value}")).expect("a fact");
    }
    assumed
}

/// `fast_rms` is what 8-bit activations may do: one and a half times what they do in ggml, on the
/// GGUF file of the same storage types (`diff` in `logits/`); 0.01 where the weights are floats
/// and so are the activations; three times where experts are chosen.
fn check(name: &str, fast_rms: f32) {
    let expected: Expected = serde_json::from_value(apr_expected(name)).expect("its form is known");
    let numbers = fs::read(apr_folder().join(&expected.logits_file)).expect("the logits are there");
    let numbers: Vec<f32> = numbers
        .as_chunks::<4>()
        .0
        .iter()
        .map(|bytes| f32::from_le_bytes(*bytes))
        .collect();
    let folder = tempfile::tempdir().expect("a folder");
    let loaded = runner::load_as(&write_apr(name, folder.path()), &told(&expected.if_told));
    for case in &expected.cases {
        let want = &numbers[case.offset..][..case.n_pos * expected.n_vocab];
        for (precision, rms_max, largest_max) in [
            (Precision::Exact, 1e-3, 1e-2),
            (Precision::Fast, fast_rms, f32::INFINITY),
        ] {
            let mut session = runner::open(&*loaded, precision, case.tokens.len());
            let found = runner::logits(&mut *session, &case.tokens, 0, 512).concat();
            let (rms, largest) = distance(&found, want);
            eprintln!(
                "{name} {} {precision:?}: rms {rms:.2e}, largest {largest:.2e}",
                case.name
            );
            assert!(rms <= rms_max && largest <= largest_max, "{rms} {largest}");
        }
    }
}

macro_rules! files {
    ($($name:ident: $file:literal, $fast_rms:literal;)*) => { $(
        #[test]
        fn $name() {
            check($file, $fast_rms);
        }
    )* };
}

files! {
    a01_f32: "a01-llama-f32-import-none", 0.01;
    a02_f16_with_a_tied_output_under_another_name: "a02-llama-f16-spm-import-none", 0.01;
    a03_bf16_with_rope_factors: "a03-llama-bf16-ropefreqs-import-none", 0.01;
    a04_q4_k_under_hugging_face_names: "a04-qwen2-q4_k_m-import-none", 0.088;
    a05_padded_rows_and_a_made_up_output: "a05-llama-q8_0-import-q4k", 0.01;
    a06_one_scale_for_a_tensor: "a06-qwen2-q5_0-import-int8", 0.01;
    a07_nibbles_in_another_order: "a07-llama-q4_1-import-int4", 0.095;
    a08_f16_norms_and_biases: "a08-qwen2-q5_0-import-fp16", 0.01;
    a09_head_size_from_the_norm: "a09-qwen3-q5_k_m-import-q4k", 0.1;
    a10_shapes_turned_round: "a10-qwen2-q4_k_m-convert-q4k", 0.088;
    a11_constants_of_a_converter_if_told_the_truth: "a11-llama-q4_1-convert-q4k", 0.095;
    a12_head_counts_if_told: "a12-qwen2-q5_0-convert-q4k", 0.01;
    a13_gguf_rows_under_hugging_face_names: "a13-llama-f32-convert-none", 0.01;
    a14_codes_that_collide: "a14-qwen2-q5_0-preserve", 0.085;
    a15_experts_of_a_token_if_told: "a15-qwen3moe-q4_k_m-preserve", 0.159;
    a17_hugging_face_rows: "a17-llama-f32-safetensors-import-none", 0.01;
    a18_hugging_face_rows_in_f16: "a18-llama-f16-safetensors-import-none", 0.01;
}
