//! The vocabularies of real APR files, which leave out or move what a GGUF file has.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot read its files has to stop"
)]

use std::path::Path;

use candor_modelfile::ModelFile;
use candor_text::{Ends, Prompt, Tokenizer};

/// Encodes the prompts of a file and compares with the ids of its source.
fn check(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/apr");
    let expected = std::fs::read_to_string(folder.join(format!("{name}.expected.json"))).unwrap();
    let expected: serde_json::Value = serde_json::from_str(&expected).unwrap();
    let file = ModelFile::open(&folder.join(format!("{name}.apr"))).unwrap();
    let spec = file.index().tokenizer.as_ref().unwrap();
    let tokenizer = Tokenizer::from_spec(spec).unwrap();
    for case in expected["cases"].as_array().unwrap() {
        let want: Vec<u32> = serde_json::from_value(case["tokens"].clone()).unwrap();
        let prompt = Prompt::markup(case["text"].as_str().unwrap());
        let found = tokenizer.encode(&prompt, Ends::Model).unwrap();
        assert_eq!(found, want, "{name} {}", case["name"]);
    }
}

#[test]
fn vocabularies_inside_and_beside_the_file_give_the_ids_of_the_source() {
    for name in [
        "a01-llama-f32-import-none",
        "a02-llama-f16-spm-import-none",
        "a03-llama-bf16-ropefreqs-import-none",
        "a04-qwen2-q4_k_m-import-none",
        "a05-llama-q8_0-import-q4k",
        "a06-qwen2-q5_0-import-int8",
        "a07-llama-q4_1-import-int4",
        "a08-qwen2-q5_0-import-fp16",
        "a09-qwen3-q5_k_m-import-q4k",
        "a10-qwen2-q4_k_m-convert-q4k",
        "a14-qwen2-q5_0-preserve",
        "a17-llama-f32-safetensors-import-none",
    ] {
        check(name);
    }
}

#[test]
fn a_vocabulary_whose_split_rule_is_not_named_is_refused_in_words() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/apr");
    let file = ModelFile::open(&folder.join("a13-llama-f32-convert-none.apr")).unwrap();
    let error = Tokenizer::from_spec(file.index().tokenizer.as_ref().unwrap()).unwrap_err();
    assert!(
        error.to_string().contains("not named in this file"),
        "{error}"
    );
}
