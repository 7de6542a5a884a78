//! Damaged, false and hostile files: each is refused in plain words, none is half read.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot write its files has to stop"
)]

use std::path::Path;

use candor_modelfile::{ModelFile, Needed, OpenError, ParseError, Refusal, gguf, limits};
use candor_testkit::gguf::{Gguf, Tensor, Value};
use candor_testkit::{Damage, TinyModel};

fn refuse(path: &Path) -> OpenError {
    match ModelFile::open(path) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error,
    }
}

#[test]
fn damaged_files_are_refused_by_name_and_with_both_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let model = TinyModel::llama();
    let whole = model.bytes().len();
    let cases = [
        (Damage::Cut3Bytes, "it has 3 bytes of at least 24 bytes"),
        (Damage::Cut20Bytes, "it has 20 bytes of at least 24 bytes"),
        (Damage::CutInMetadata, "of at least "),
        (Damage::CutInTensorTable, "of at least "),
        (Damage::CutAt60Percent, " kB of "),
        (Damage::OneByteShort, " bytes of "),
        (
            Damage::Empty,
            "the file is empty (0 bytes), probably an incomplete download",
        ),
        (
            Damage::HtmlPage,
            "not a GGUF or APR model file: it is a web page (HTML)",
        ),
        (
            Damage::ZipArchive,
            "not a GGUF or APR model file: it is a ZIP archive",
        ),
        (
            Damage::PngPicture,
            "not a GGUF or APR model file: it is a PNG picture",
        ),
        (Damage::AprTruncated, "it has 12 bytes of at least 64 bytes"),
        (
            Damage::AprForeign,
            "not a GGUF or APR model file: it is a plain text file",
        ),
        (Damage::Directory, "this is a folder, not a model file"),
    ];
    assert_eq!(cases.map(|(damage, _)| damage), Damage::ALL);
    for (damage, words) in cases {
        let path = damage.write(folder.path(), &model).unwrap();
        let error = refuse(&path);
        let message = error.to_string();
        assert!(message.starts_with(damage.file_name()), "{message}");
        assert!(message.contains(words), "{damage:?}: {message}");
        if damage.is_cut() {
            assert!(
                message.contains("probably an incomplete download"),
                "{message}"
            );
            let found = std::fs::metadata(&path).unwrap().len();
            check_sizes(&error, found, whole as u64);
        }
        assert!(error.advice().is_some(), "{message}");
        assert!(
            !message.ends_with('.') && !message.contains('\n'),
            "{message:?}"
        );
    }
    // The last byte was the only thing that was wrong.
    let path = folder.path().join("whole.gguf");
    model.write(&path).unwrap();
    ModelFile::open(&path).unwrap();
}

fn check_sizes(error: &OpenError, file_len: u64, whole: u64) {
    let Refusal::Parse(ParseError::Truncated { found, needed }) = &error.reason else {
        panic!("{error:?}");
    };
    assert_eq!(*found, file_len);
    match needed {
        Needed::Exactly(needed) => assert_eq!(*needed, whole),
        Needed::AtLeast(needed) => assert!(*needed > file_len && *needed <= whole, "{error}"),
    }
}

#[test]
fn every_cut_of_a_small_file_is_refused() {
    let bytes = TinyModel::qwen2().layers(1).bytes();
    for len in (0..4096).chain((4096..bytes.len()).step_by(97)) {
        let error = gguf::parse(&bytes[..len], len as u64).unwrap_err();
        assert!(
            matches!(error, ParseError::Truncated { .. }),
            "{len}: {error}"
        );
    }
}

#[test]
fn a_cut_within_the_last_padding_is_a_cut() {
    let mut file = plain();
    file.tensors[1].dims = vec![2, 3];
    file.tensors[1].bytes.truncate(24);
    let bytes = file.encode().bytes;
    let data_end = bytes.len() - 8;
    for (len, whole) in [
        (bytes.len() - 1, false),
        (data_end + 1, false),
        (data_end, true),
    ] {
        let found = gguf::parse(&bytes[..len], len as u64);
        assert_eq!(found.is_ok(), whole, "{len} of {}", bytes.len());
    }
}

#[test]
fn a_missing_file_and_a_pipe_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let check = |path: &Path, words: &str| {
        let message = refuse(path).to_string();
        assert!(message.contains(words), "{message}");
    };
    check(
        &folder.path().join("gone.gguf"),
        "gone.gguf: there is no such file",
    );
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    check(
        &file.join("below.gguf"),
        "below.gguf: there is no such file",
    );
    if cfg!(unix) {
        check(Path::new("/dev/null"), "null: this is not an ordinary file");
    }
}

/// A file of one F32 tensor, for spoiling.
fn plain() -> Gguf {
    let tensor = |name: &str| Tensor {
        name: name.into(),
        dims: vec![2, 32],
        type_id: 0,
        bytes: vec![0; 256],
    };
    Gguf {
        metadata: vec![("general.architecture".into(), "llama".into())],
        tensors: vec![tensor("a.weight"), tensor("b.weight")],
        ..Gguf::default()
    }
}

fn with_entry(key: &str, value: Value) -> Gguf {
    let mut file = plain();
    file.metadata.push((key.into(), value));
    file
}

fn message(bytes: &[u8]) -> String {
    match gguf::parse(bytes, bytes.len() as u64) {
        Ok(_) => panic!("parsed"),
        Err(error) => error.to_string(),
    }
}

/// The file is refused with these words.
fn check(file: &Gguf, words: &str) {
    let message = message(&file.encode().bytes);
    assert!(message.contains(words), "{words}: {message}");
}

#[test]
fn headers_that_are_not_read_are_refused_by_what_they_are() {
    check(
        &Gguf {
            version: 1,
            ..plain()
        },
        "GGUF version 1; versions 2 and 3 are read",
    );
    check(
        &Gguf {
            version: 4,
            ..plain()
        },
        "GGUF version 4; versions 2 and 3 are read",
    );
    check(
        &Gguf {
            version: 3 << 24,
            ..plain()
        },
        "big-endian",
    );
    check(
        &with_entry("split.count", Value::U16(3)),
        "only part 1 of 3 of a split model",
    );
    assert!(message(b"GGU\x01").contains("begins with the bytes 47 47 55 01"));
}

#[test]
fn wrong_metadata_is_refused_by_its_key() {
    check(
        &Gguf {
            metadata: vec![],
            ..plain()
        },
        "`general.architecture` is missing",
    );
    let cases = [
        ("general.alignment", Value::U32(33), "alignment of 33"),
        ("general.alignment", Value::U32(0), "alignment of 0"),
        (
            "general.architecture",
            "x".into(),
            "`general.architecture` is there twice",
        ),
    ];
    for (key, value, words) in cases {
        check(&with_entry(key, value), words);
    }
    let tokens = Value::Texts(vec!["a".into(), "b".into()]);
    let mut file = with_entry("tokenizer.ggml.tokens", tokens);
    check(&file, "`tokenizer.ggml.model` is missing");
    file.metadata
        .push(("tokenizer.ggml.model".into(), "gpt2".into()));
    let cases = [
        (
            "scores",
            Value::Floats(vec![0.0]),
            "scores` has 1 elements, not 2",
        ),
        ("token_type", Value::Ints(vec![1, 7]), "token_type` is 7"),
        (
            "merges",
            "a b".into(),
            "merges` is a text, not a list of texts",
        ),
        ("bos_token_id", Value::I32(-1), "bos_token_id` is -1"),
    ];
    for (key, value, words) in cases {
        let mut file = file.clone();
        file.metadata.push((format!("tokenizer.ggml.{key}"), value));
        check(&file, words);
    }
}

#[test]
fn wrong_tensors_are_refused_by_their_name() {
    type Change = fn(&mut Tensor);
    let cases: [(Change, &str); 9] = [
        (
            |t| t.name = "a.weight".into(),
            "tensor `a.weight` is there twice",
        ),
        (|t| t.type_id = 15, "`b.weight` is stored as Q8_K (type 15)"),
        (
            |t| t.type_id = 77,
            "`b.weight` is stored as an unknown type (77)",
        ),
        (|t| t.dims = vec![2, 0], "`b.weight` has the shape [0, 2]"),
        (|t| t.dims = vec![], "`b.weight` has the shape []"),
        (|t| t.dims = vec![1 << 40, 1 << 40], "has the shape"),
        (
            |t| t.dims = vec![1; 5],
            "5 dimensions of a tensor, more than the limit",
        ),
        (
            |t| (t.type_id, t.dims) = (2, vec![2, 33]),
            "no multiple of the 32 of a Q4_0",
        ),
        (|t| t.name = "n".repeat(257), "257 bytes in a tensor name"),
    ];
    for (change, words) in cases {
        let mut file = plain();
        change(&mut file.tensors[1]);
        check(&file, words);
    }
}

/// The place of tensor number `i`'s offset in the table of [`plain`].
fn offset_at(table_end: usize, i: usize) -> usize {
    const ROW: usize = 8 + "a.weight".len() + 4 + 2 * 8 + 4 + 8;
    table_end - (2 - i) * ROW + ROW - 8
}

#[test]
fn tensors_have_to_lie_apart_in_the_file_and_aligned() {
    let check = |offset: u64, words: &str| {
        let file = plain().encode();
        let mut bytes = file.bytes;
        let at = offset_at(file.table_end, 1);
        assert_eq!(bytes[at..at + 8], 256u64.to_le_bytes());
        bytes[at..at + 8].copy_from_slice(&offset.to_le_bytes());
        let message = message(&bytes);
        assert!(message.contains(words), "{offset}: {message}");
    };
    check(128, "the tensors `a.weight` and `b.weight` overlap");
    check(0, "overlap");
    check(257, "starts at 257, off the alignment of 32");
    check(288, "`b.weight` would end at byte");
    check(1 << 40, "`b.weight` would end at byte");
    check(u64::MAX - 31, "`b.weight` would end at byte");
}

#[test]
fn counts_beyond_the_file_are_refused_before_anything_is_allocated() {
    let header = |tensors: u64, entries: u64| {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend(tensors.to_le_bytes());
        bytes.extend(entries.to_le_bytes());
        bytes
    };
    let entry = |value: &[u8]| {
        let mut bytes = header(0, 1);
        bytes.extend(1u64.to_le_bytes());
        bytes.extend(b"k");
        bytes.extend(value);
        bytes
    };
    let list = |element: u32, len: u64| {
        let mut value = 9u32.to_le_bytes().to_vec();
        value.extend(element.to_le_bytes());
        value.extend(len.to_le_bytes());
        entry(&value)
    };
    let mut key_too_long = header(0, 1);
    key_too_long.extend(u64::MAX.to_le_bytes());
    let mut text_too_long = 8u32.to_le_bytes().to_vec();
    text_too_long.extend((limits::STRING_BYTES_MAX + 1).to_le_bytes());
    let cases = [
        (header(u64::MAX, 0), "tensors, more than the limit"),
        (header(0, u64::MAX), "metadata entries, more than the limit"),
        (header(limits::TENSORS_MAX, 0), "incomplete"),
        (header(0, limits::METADATA_ENTRIES_MAX), "incomplete"),
        (key_too_long, "bytes in a metadata key, more than the limit"),
        (
            entry(&text_too_long),
            "bytes in a text, more than the limit",
        ),
        (entry(&99u32.to_le_bytes()), "unknown value type 99"),
        (list(8, u64::MAX), "elements in a list, more than the limit"),
        (list(8, limits::ARRAY_ELEMS_MAX), "of at least 33.6 MB"),
        (list(10, limits::ARRAY_ELEMS_MAX), "of at least 33.6 MB"),
        (list(9, 1), "an array of arrays"),
    ];
    for (bytes, words) in cases {
        let message = message(&bytes);
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[test]
fn a_description_beyond_its_limit_is_refused_though_the_file_is_large() {
    // The file claims to be large enough; nothing is read behind the limit.
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend(limits::TENSORS_MAX.to_le_bytes());
    bytes.extend(3u64.to_le_bytes());
    for key in [b"a", b"b", b"c"] {
        bytes.extend(1u64.to_le_bytes());
        bytes.extend(key);
        bytes.extend(8u32.to_le_bytes());
        bytes.extend(limits::STRING_BYTES_MAX.to_le_bytes());
        if *key == *b"a" {
            bytes.resize(bytes.len() + limits::STRING_BYTES_MAX as usize, b'x');
        }
    }
    let error = gguf::parse(&bytes, u64::MAX / 2).unwrap_err().to_string();
    assert!(
        error.contains("bytes of description, more than the limit"),
        "{error}"
    );
}

#[test]
fn a_file_that_was_cut_while_open_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    TinyModel::llama().write(&path).unwrap();
    let model = ModelFile::open(&path).unwrap();
    model.check_length().unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(100).unwrap();
    let message = model.check_length().unwrap_err().to_string();
    assert!(
        message.contains("made shorter while it was open: it has 100 bytes"),
        "{message}"
    );
}

#[test]
fn lists_that_would_take_much_more_memory_than_their_bytes_are_refused() {
    // Each text takes eight bytes in the file and some 56 in memory.
    let texts = vec![String::new(); 1_200_000];
    check(
        &with_entry("tokenizer.ggml.tokens", Value::Texts(texts)),
        "bytes of memory for lists of short values, more than the limit",
    );
    // A large real vocabulary is far from it: 260,000 tokens and 500,000 merges.
    let mut file = with_entry(
        "tokenizer.ggml.tokens",
        Value::Texts(vec!["token".into(); 260_000]),
    );
    let merges = Value::Texts(vec!["to ken".into(); 500_000]);
    file.metadata.push(("tokenizer.ggml.merges".into(), merges));
    file.metadata.push((
        "tokenizer.ggml.token_type".into(),
        Value::Ints(vec![1; 260_000]),
    ));
    file.metadata
        .push(("tokenizer.ggml.model".into(), "gpt2".into()));
    let bytes = file.encode().bytes;
    gguf::parse(&bytes, bytes.len() as u64).unwrap();
}
