//! The vocabularies of real APR files, which leave out or move what a GGUF file has.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot read its files has to stop"
)]

use candor_modelfile::ModelFile;
use candor_testkit::golden::{apr_expected, write_apr};
use candor_text::{Ends, Prompt, Show, Tokenizer};

fn open(name: &str) -> ModelFile {
    let folder = tempfile::tempdir().unwrap();
    ModelFile::open(&write_apr(name, folder.path())).unwrap()
}

/// Encodes the prompts of a file and compares with the ids of its source.
fn check(name: &str) {
    let expected = apr_expected(name);
    let file = open(name);
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
    let file = open("a13-llama-f32-convert-none");
    let error = Tokenizer::from_spec(file.index().tokenizer.as_ref().unwrap()).unwrap_err();
    assert!(
        error.to_string().contains("not named in this file"),
        "{error}"
    );
}

#[test]
fn a_vocabulary_that_encodes_no_text_still_shows_tokens_and_ends_replies() {
    let file = open("a13-llama-f32-convert-none");
    let spec = file.index().tokenizer.as_ref().unwrap();
    let reason = Tokenizer::from_spec(spec).unwrap_err();
    let whole = open("a01-llama-f32-import-none");
    let whole = Tokenizer::from_spec(whole.index().tokenizer.as_ref().unwrap()).unwrap();
    let check = |spec, n_tokens: usize, end_ids: &[u32]| {
        let tokenizer = Tokenizer::ids_only(spec, reason.clone());
        assert_eq!(
            (tokenizer.vocab_len(), tokenizer.end_ids()),
            (n_tokens, end_ids)
        );
        for text in ["", "Hello", "<|im_end|>"] {
            let refused = tokenizer.encode(&Prompt::markup(text), Ends::Model);
            assert_eq!(refused, Err(reason.clone()), "{text:?}");
        }
        assert_eq!(tokenizer.refusal(), Some(&reason));
        for id in (0..n_tokens as u32).filter(|id| !whole.is_control(*id)) {
            let shown = tokenizer.piece(id, Show::Text);
            assert_eq!(shown, whole.piece(id, Show::Text), "{id}");
        }
        assert_eq!(tokenizer.piece(u32::MAX, Show::Text), b"");
    };
    check(Some(spec), whole.vocab_len(), whole.end_ids());
    // Without a vocabulary there is nothing to show.
    check(None, 0, &[]);
}
