//! Valid files: what is in them comes out, whatever they are called.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot write its files has to stop"
)]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use candor_modelfile::{Format, ModelFile, TokenType, Value, ValueKind, gguf};
use candor_testkit::gguf::{Gguf, Tensor, Value as Written};
use candor_testkit::{CHAT_TEMPLATE, TURN_END, TinyModel};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/golden/models")
        .join(name)
}

#[test]
fn golden_models_are_read_with_their_types_and_vocabularies() {
    let cases = [
        ("s01-llama-f32", 21, 400, "F32"),
        ("s02-llama-f16-spm", 20, 512, "F16 F32"),
        ("s03-llama-bf16-ropefreqs", 22, 400, "BF16 F32"),
        ("s04-llama-q8_0", 30, 400, "F32 Q8_0"),
        ("s05-llama-q4_0", 21, 400, "F32 Q4_0 Q6_K"),
        ("s06-llama-q4_1", 20, 400, "F32 Q4_1 Q8_0"),
        ("s09-qwen2-q5_0-q5_1", 39, 400, "F32 Q5_0 Q5_1 Q8_0"),
        ("s10-qwen2-q4_k_m", 27, 400, "F32 Q4_K Q6_K"),
    ];
    for (name, n_tensors, n_tokens, types) in cases {
        let file = ModelFile::open(&golden(&format!("{name}.gguf"))).unwrap();
        let index = file.index();
        assert_eq!(index.format, Format::Gguf);
        assert_eq!(index.version, 3);
        assert!(name.contains(&index.architecture), "{name}");
        assert_eq!(index.metadata.str("general.name"), Ok(name));
        assert_eq!(index.tensors.len(), n_tensors, "{name}");
        let found: BTreeSet<&str> = index.tensors.iter().map(|t| t.quant.name).collect();
        assert_eq!(
            found.into_iter().collect::<Vec<_>>().join(" "),
            types,
            "{name}"
        );
        let tokenizer = index.tokenizer.as_ref().unwrap();
        assert_eq!(
            (tokenizer.tokens.len(), tokenizer.types.len()),
            (n_tokens, n_tokens)
        );
        assert!(
            index
                .chat_template
                .as_ref()
                .unwrap()
                .contains("add_generation_prompt")
        );
        for tensor in &index.tensors {
            let bytes = file.bytes(tensor);
            let want = tensor.quant.bytes_for(tensor.elems());
            assert_eq!(Some(bytes.len()), want, "{name} {}", tensor.name);
        }
    }
}

#[test]
fn sentence_piece_vocabularies_keep_scores_and_switches() {
    let file = ModelFile::open(&golden("s02-llama-f16-spm.gguf")).unwrap();
    let spec = file.index().tokenizer.clone().unwrap();
    assert_eq!(spec.model, "llama");
    assert_eq!(
        (spec.bos, spec.eos, spec.unk, spec.pad),
        (Some(2), Some(1), Some(3), Some(0))
    );
    assert_eq!(spec.add_bos, Some(true));
    assert_eq!(spec.add_space_prefix, Some(true));
    assert_eq!(spec.scores.len(), 512);
    assert_eq!(spec.types[2..4], [TokenType::Control, TokenType::Unknown]);
    assert_eq!(spec.tokens[6], "<0x00>");
    assert_eq!(spec.types[6], TokenType::Byte);
    assert!(spec.merges.is_empty());
}

#[test]
fn a_written_model_comes_back_as_it_was() {
    let model = TinyModel::qwen2().quant_of("attn_v", "Q5_0");
    let bytes = model.bytes();
    let index = gguf::parse(&bytes, bytes.len() as u64).unwrap();
    let written = model.gguf();
    assert_eq!(index.tensors.len(), written.tensors.len());
    for (found, want) in index.tensors.iter().zip(&written.tensors) {
        assert_eq!(found.name, want.name);
        let dims: Vec<u64> = found.dims.iter().map(|d| *d as u64).collect();
        assert_eq!(dims, want.dims);
        assert_eq!(found.quant.id, want.type_id);
        let range = found.range.start as usize..found.range.end as usize;
        assert_eq!(bytes[range], want.bytes, "{}", want.name);
        assert_eq!(index.tensor(&found.name), Some(found));
    }
    let keys: Vec<&str> = index.metadata.iter().map(|(key, _)| key).collect();
    let want: Vec<&str> = written
        .metadata
        .iter()
        .map(|(key, _)| key.as_str())
        .collect();
    assert_eq!(keys, want);
    let attn_v = index.tensor("blk.1.attn_v.weight").unwrap();
    assert_eq!(
        (attn_v.rows(), attn_v.cols(), attn_v.quant.name),
        (32, 64, "Q5_0")
    );
    assert_eq!(index.tensor("blk.2.attn_v.weight"), None);
    assert_eq!(index.metadata.u32("qwen2.block_count"), Ok(2));
    assert_eq!(index.chat_template.as_deref(), Some(CHAT_TEMPLATE));
    let tokenizer = index.tokenizer.unwrap();
    assert_eq!(tokenizer.eos, model.token_id(TURN_END));
    // In memory once.
    let len = tokenizer.tokens.len();
    let note = Value::Moved {
        kind: ValueKind::Texts,
        len,
    };
    assert_eq!(index.metadata.value("tokenizer.ggml.tokens"), Some(&note));
}

#[test]
fn values_of_all_widths_are_read() {
    let entries = [
        (
            "general.architecture",
            Written::from("llama"),
            Value::Text("llama".into()),
        ),
        ("u16", Written::U16(65535), Value::Integer(65535)),
        ("u32", Written::U32(u32::MAX), Value::Integer(4_294_967_295)),
        ("i32", Written::I32(-1), Value::Integer(-1)),
        (
            "u64",
            Written::U64(u64::MAX),
            Value::Integer(18_446_744_073_709_551_615),
        ),
        ("f32", Written::F32(0.1), Value::Float(f64::from(0.1f32))),
        ("bool", Written::Bool(true), Value::Bool(true)),
        (
            "texts",
            Written::Texts(vec!["ä".into(), "".into()]),
            Value::Texts(vec!["ä".into(), "".into()]),
        ),
        (
            "floats",
            Written::Floats(vec![1.5]),
            Value::Floats(vec![1.5]),
        ),
        (
            "ints",
            Written::Ints(vec![-3, 4]),
            Value::Integers(vec![-3, 4]),
        ),
    ];
    let metadata = entries
        .iter()
        .map(|(key, value, _)| ((*key).into(), value.clone()));
    let bytes = Gguf {
        metadata: metadata.collect(),
        ..Gguf::default()
    }
    .encode()
    .bytes;
    let index = gguf::parse(&bytes, bytes.len() as u64).unwrap();
    for (key, _, want) in &entries {
        assert_eq!(index.metadata.value(key), Some(want), "{key}");
    }
    assert!(index.tensors.is_empty() && index.tokenizer.is_none());
}

#[test]
fn a_file_with_only_a_vocabulary_opens() {
    let mut file = TinyModel::llama().gguf();
    file.tensors.clear();
    let encoded = file.encode();
    for bytes in [&encoded.bytes[..], &encoded.bytes[..encoded.metadata_end]] {
        let index = gguf::parse(bytes, bytes.len() as u64).unwrap();
        assert!(index.tensors.is_empty());
        assert!(index.tokenizer.unwrap().tokens.len() > 256);
    }
}

#[test]
fn version_2_gaps_other_alignments_and_a_missing_last_padding_are_fine() {
    let tensor = |name: &str, len: usize| Tensor {
        name: name.into(),
        dims: vec![len as u64],
        type_id: 0,
        bytes: vec![1; len * 4],
    };
    let file = |alignment: usize| Gguf {
        version: 2,
        alignment,
        metadata: vec![
            ("general.architecture".into(), "llama".into()),
            ("general.alignment".into(), Written::U32(alignment as u32)),
        ],
        tensors: vec![tensor("a", 3), tensor("b", 5)],
    };
    for alignment in [8, 32, 4096] {
        let bytes = file(alignment).encode().bytes;
        let index = gguf::parse(&bytes, bytes.len() as u64).unwrap();
        assert_eq!(index.version, 2);
        let b = index.tensor("b").unwrap().range.clone();
        assert!(b.start.is_multiple_of(alignment as u64));
        assert_eq!(b.end - b.start, 20);
        // Some writers do not pad the last tensor.
        let unpadded = &bytes[..b.end as usize];
        gguf::parse(unpadded, unpadded.len() as u64).unwrap();
        // What stands behind the data is not ours.
        let longer = [&bytes[..], &[7; 100]].concat();
        gguf::parse(&longer, longer.len() as u64).unwrap();
    }
}

/// Names that people give their files. The fourth is the third decomposed.
fn names() -> Vec<PathBuf> {
    let mut names: Vec<PathBuf> = [
        "plain.gguf",
        "Модели  é ü 田中\u{3000}/qwen tiny 🙂 (final) #1 100%.gguf",
        "caf\u{e9}.gguf",
        "cafe\u{301}.gguf",
        "no ending at all",
    ]
    .map(PathBuf::from)
    .to_vec();
    names.push(format!("{}.gguf", "n".repeat(245)).into());
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        names.push(OsStr::from_bytes(b"not text \xff\xfe.gguf").into());
    }
    names
}

#[test]
fn files_open_whatever_they_are_called_and_messages_name_them() {
    let folder = tempfile::tempdir().unwrap();
    for (i, name) in names().into_iter().enumerate() {
        let path = folder.path().join(&name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Another seed in each, so that two names for one file would show.
        let model = TinyModel::llama().layers(1).seed(i as u64);
        model.write(&path).unwrap();
        let file = ModelFile::open(&path).unwrap();
        assert_eq!(file.path(), path);
        let embedding = file.index().tensor("token_embd.weight").unwrap();
        assert_eq!(
            file.bytes(embedding),
            model.gguf().tensors[0].bytes,
            "{name:?}"
        );

        std::fs::write(&path, b"GGUF").unwrap();
        let message = ModelFile::open(&path).unwrap_err().to_string();
        let shown = Path::new(path.file_name().unwrap()).display().to_string();
        assert!(message.starts_with(&format!("{shown}: ")), "{message}");
    }
}

#[test]
fn released_pages_come_back_unchanged_also_after_the_file_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    TinyModel::llama().width(256, 512).write(&path).unwrap();
    let file = ModelFile::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    for tensor in &file.index().tensors {
        let before = file.bytes(tensor).to_vec();
        file.release(tensor);
        assert_eq!(file.bytes(tensor), before, "{}", tensor.name);
        file.release_part(tensor, before.len() / 3..before.len());
        assert_eq!(file.bytes(tensor), before, "{}", tensor.name);
    }
}

#[test]
fn a_model_file_can_be_shared_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<ModelFile>();
}
