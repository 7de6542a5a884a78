//! Files beside an APR file that cannot be read are named, with the reason.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot write its files has to stop"
)]

use std::fs::{self, File};
use std::path::Path;

use candor_modelfile::ModelFile;
use candor_testkit::TinyModel;
use candor_testkit::apr::{Apr, Writer};

/// A vocabulary of two tokens, as small as one that is read can be.
const VOCABULARY: &str = r#"{
    "pre_tokenizer": { "type": "ByteLevel" },
    "model": { "type": "BPE", "vocab": { "a": 0, "b": 1 }, "merges": [] }
}"#;

const CONFIG: &str = r#"{ "bos_token": "a", "eos_token": "b", "chat_template": "{{ 1 }}" }"#;

/// What lies beside a file.
enum Beside {
    Bytes(&'static [u8]),
    /// One byte more than is read.
    TooLarge,
}

/// What is said about a file without a vocabulary that has these beside it, whether a vocabulary
/// was found, and whether its ends and a template were.
fn check(files: &[(&str, Beside)], notes: &[&str], (vocabulary, config): (bool, bool)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.apr");
    let mut model = Apr::of(&TinyModel::llama().layers(1).gguf(), Writer::RawImport);
    model
        .metadata
        .retain(|(key, _)| !key.starts_with("tokenizer") && !key.contains("chat_template"));
    fs::write(&path, model.encode()).unwrap();
    for (name, beside) in files {
        write(&folder.path().join(name), beside);
    }
    let file = ModelFile::open(&path).unwrap();
    let index = file.index();
    let said: Vec<String> = index.notes.iter().map(ToString::to_string).collect();
    assert_eq!(said, notes);
    assert_eq!(index.tokenizer.is_some(), vocabulary, "{notes:?}");
    let ends = index.tokenizer.as_ref().map(|spec| (spec.bos, spec.eos));
    let is_told = ends == Some((Some(0), Some(1))) && index.chat_template.is_some();
    assert_eq!(is_told, config, "{notes:?}");
}

fn write(path: &Path, beside: &Beside) {
    match beside {
        Beside::Bytes(bytes) => fs::write(path, bytes).unwrap(),
        Beside::TooLarge => File::create(path).unwrap().set_len((1 << 26) + 1).unwrap(),
    }
}

#[test]
fn what_cannot_be_read_is_named_with_the_reason() {
    let text = |text: &'static str| Beside::Bytes(text.as_bytes());
    let vocabulary = || ("tokenizer.json", text(VOCABULARY));
    check(
        &[vocabulary(), ("tokenizer_config.json", text(CONFIG))],
        &[],
        (true, true),
    );
    check(&[vocabulary()], &[], (true, false));
    check(
        &[("tokenizer_config.json", text(CONFIG))],
        &["there is no vocabulary, so text cannot be read"],
        (false, false),
    );
    check(
        &[vocabulary(), ("tokenizer_config.json", text("{ \"bos"))],
        &[
            "tokenizer_config.json beside the file was left aside: EOF while parsing a string at \
             line 1 column 6",
        ],
        (true, false),
    );
    check(
        &[
            vocabulary(),
            ("tokenizer_config.json", Beside::Bytes(b"\"\xff\"")),
        ],
        &["tokenizer_config.json beside the file was left aside: its text is not UTF-8"],
        (true, false),
    );
    check(
        &[("tokenizer.json", Beside::TooLarge)],
        &[
            "tokenizer.json beside the file was left aside: it has 67,108,865 bytes, at most \
             67,108,864 bytes are read",
        ],
        (false, false),
    );
    // The file's own one is not passed over for the folder's, which may be another model's.
    check(
        &[
            vocabulary(),
            ("model.tokenizer.json", Beside::Bytes(b"\xff")),
        ],
        &["model.tokenizer.json beside the file was left aside: its text is not UTF-8"],
        (false, false),
    );
}
