//! Vocabularies beside APR files, as the Hugging Face library writes them: the ids are that
//! library's own.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot write its files has to stop"
)]

use std::path::Path;

use candor_modelfile::{ModelFile, Note};
use candor_testkit::TinyModel;
use candor_testkit::apr::{Apr, Writer};
use candor_text::{Ends, Prompt, Tokenizer};
use serde_json::{Value, json};

/// Pieces that merge in several ways, in the order of their ranks.
const MERGES: &[&str] = &[
    "▁ t",
    "h e",
    "▁t he",
    "l l",
    "he ll",
    "hell o",
    "▁ ▁",
    "▁▁ ▁▁",
    "o ▁",
    "▁ a",
    "▁t h",
    "i n",
    "in g",
    "e r",
    "▁ hello",
    "c a",
    "ca f",
    "\n \n",
];

/// Characters with a token of their own; all others are bytes.
const CHARACTERS: &str = "abcdefghijklmnopqrstuvwxyzTHE▁.,!?é日\n";

const TEXTS: &[&str] = &[
    "",
    " ",
    "hello",
    " hello  the\n\n\n  ring",
    "the theater, in the café: 日本語! 😁",
    "▁the▁ \t\r\n",
    "<s>the</s> <unk> <0x41>",
    "Thing    thing\u{0}\u{feff}",
    "\n \n\n hell o",
];

/// A tokenizer.json of Llama 2's shape, without the space in front as Gemma's is.
fn gemma() -> Value {
    let mut vocab = serde_json::Map::new();
    let mut add = |token: String| {
        let id = vocab.len();
        vocab.entry(token).or_insert(json!(id));
    };
    for special in ["<unk>", "<s>", "</s>"] {
        add(special.to_owned());
    }
    for byte in 0..=u8::MAX {
        add(format!("<0x{byte:02X}>"));
    }
    CHARACTERS.chars().for_each(|c| add(c.to_string()));
    MERGES
        .iter()
        .for_each(|merge| add(merge.replacen(' ', "", 1)));
    let added = |id: usize, content: &str| {
        json!({
            "id": id, "content": content, "special": true, "normalized": false,
            "single_word": false, "lstrip": false, "rstrip": false,
        })
    };
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [added(0, "<unk>"), added(1, "<s>"), added(2, "</s>")],
        "normalizer": { "type": "Replace", "pattern": { "String": " " }, "content": "▁" },
        "pre_tokenizer": {
            "type": "Split", "pattern": { "String": " " },
            "behavior": "MergedWithPrevious", "invert": false,
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                { "SpecialToken": { "id": "<s>", "type_id": 0 } },
                { "Sequence": { "id": "A", "type_id": 0 } },
            ],
            "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }],
            "special_tokens": { "<s>": { "id": "<s>", "ids": [1], "tokens": ["<s>"] } },
        },
        "decoder": null,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": "<unk>",
            "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
            "vocab": vocab, "merges": MERGES,
        },
    })
}

fn llama() -> Value {
    let mut file = gemma();
    file["normalizer"] = json!({
        "type": "Sequence",
        "normalizers": [
            { "type": "Prepend", "prepend": "▁" },
            { "type": "Replace", "pattern": { "String": " " }, "content": "▁" },
        ],
    });
    file["pre_tokenizer"] = Value::Null;
    file
}

/// An APR file without a vocabulary, with this one beside it.
fn open(folder: &Path, tokenizer: &Value) -> ModelFile {
    let path = folder.join("model.apr");
    let mut file = Apr::of(&TinyModel::llama().layers(1).gguf(), Writer::RawImport);
    file.metadata
        .retain(|(key, _)| !key.starts_with("tokenizer"));
    std::fs::write(&path, file.encode()).unwrap();
    std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let config = json!({ "bos_token": "<s>", "eos_token": { "content": "</s>" } });
    std::fs::write(folder.join("tokenizer_config.json"), config.to_string()).unwrap();
    ModelFile::open(&path).unwrap()
}

fn check(name: &str, tokenizer: &Value) {
    let folder = tempfile::tempdir().unwrap();
    let file = open(folder.path(), tokenizer);
    let ours = Tokenizer::from_spec(file.index().tokenizer.as_ref().unwrap()).unwrap();
    let bytes = tokenizer.to_string();
    let library = tokenizers::Tokenizer::from_bytes(bytes.as_bytes()).unwrap();
    for text in TEXTS {
        for (ends, adds) in [(Ends::None, false), (Ends::Model, true)] {
            let found = ours.encode(&Prompt::markup(*text), ends).unwrap();
            let encoding = library.encode(*text, adds).unwrap();
            assert_eq!(found, encoding.get_ids(), "{name}: {text:?}");
        }
    }
    assert_eq!(ours.end_ids(), [2]);
}

#[test]
fn vocabularies_of_characters_beside_a_file_give_the_ids_of_their_library() {
    check("gemma", &gemma());
    check("llama", &llama());
    let mut pairs = llama();
    let pair = |merge: &&str| Value::from_iter(merge.splitn(2, ' '));
    pairs["model"]["merges"] = MERGES.iter().map(pair).collect();
    check("pairs", &pairs);
}

#[test]
fn vocabularies_of_other_kinds_are_refused_by_name() {
    let change = |change: fn(&mut Value)| {
        let mut file = llama();
        change(&mut file);
        let folder = tempfile::tempdir().unwrap();
        let file = open(folder.path(), &file);
        assert!(file.index().tokenizer.is_none());
        file.index().notes.clone()
    };
    let kind = |found: &str| Note::SidecarKind {
        found: found.to_owned(),
    };
    let cases = [
        (
            change(|f| f["model"] = json!({ "type": "WordPiece", "vocab": { "a": 0 } })),
            kind("WordPiece"),
        ),
        (
            change(|f| f["model"] = json!({ "type": "Unigram", "vocab": [["a", -1.5]] })),
            kind("Unigram"),
        ),
        (
            change(|f| f["normalizer"] = json!({ "type": "NFKC" })),
            Note::SidecarUnusable,
        ),
        (
            change(|f| f["pre_tokenizer"] = json!({ "type": "Metaspace", "split": true })),
            Note::SidecarUnusable,
        ),
        (
            change(|f| f["added_tokens"][2]["rstrip"] = json!(true)),
            Note::SidecarUnusable,
        ),
        (
            change(|f| f["model"]["byte_fallback"] = json!(false)),
            Note::SidecarUnusable,
        ),
        (change(|f| *f = json!([1])), Note::SidecarUnusable),
    ];
    for (notes, expected) in cases {
        assert!(notes.contains(&expected), "{notes:?} lacks {expected:?}");
    }
    let said = kind("WordPiece").to_string();
    assert!(said.contains("WordPiece"), "{said}");
}
