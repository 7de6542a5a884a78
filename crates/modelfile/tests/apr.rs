//! APR files: real ones with the mistakes of the programs that wrote them, and written ones.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot read its files has to stop"
)]

use candor_modelfile::{Format, Index, ModelFile, Note, ParseError, TokenType, apr};
use candor_testkit::apr::{Apr, Storage, Writer, rewritten, values_of};
use candor_testkit::gguf::Gguf;
use candor_testkit::golden::{apr_expected as expected, apr_names, write_apr};
use candor_testkit::{CHAT_TEMPLATE, TinyModel};

/// Opens a golden file; it stays open after its folder is gone.
fn open(name: &str) -> Result<ModelFile, String> {
    let folder = tempfile::tempdir().unwrap();
    ModelFile::open(&write_apr(name, folder.path())).map_err(|error| error.to_string())
}

/// Files that load, and the notes that they have to have.
const LOADED: [(&str, &[&str]); 14] = [
    ("a01-llama-f32-import-none", &[]),
    (
        "a02-llama-f16-spm-import-none",
        &["scores of the vocabulary"],
    ),
    ("a03-llama-bf16-ropefreqs-import-none", &[]),
    ("a04-qwen2-q4_k_m-import-none", &[]),
    (
        "a05-llama-q8_0-import-q4k",
        &["23 tensors are laid out anew"],
    ),
    (
        "a06-qwen2-q5_0-import-int8",
        &["23 tensors are laid out anew"],
    ),
    (
        "a07-llama-q4_1-import-int4",
        &["16 tensors are laid out anew"],
    ),
    ("a08-qwen2-q5_0-import-fp16", &[]),
    ("a09-qwen3-q5_k_m-import-q4k", &["rope_type 0 is wrong"]),
    ("a10-qwen2-q4_k_m-convert-q4k", &[]),
    ("a13-llama-f32-convert-none", &["does not name the rule"]),
    ("a14-qwen2-q5_0-preserve", &[]),
    (
        "a17-llama-f32-safetensors-import-none",
        &["rope_type 0 is wrong", "4 tensors"],
    ),
    (
        "a18-llama-f16-safetensors-import-none",
        &["rope_type 0", "4 tensors", "no vocabulary"],
    ),
];

#[test]
fn real_files_are_read_as_what_they_are() {
    for (name, notes) in LOADED {
        let file = open(name).unwrap();
        let (index, expected) = (file.index(), expected(name));
        assert_eq!((index.format, index.version), (Format::Apr, 2));
        let truth = &expected["truth"];
        assert_eq!(truth["architecture"], index.architecture.as_str(), "{name}");
        let pairs = [
            ("hidden_size", "embedding_length"),
            ("num_layers", "block_count"),
            ("num_heads", "attention.head_count"),
            ("num_kv_heads", "attention.head_count_kv"),
            ("head_dim", "attention.key_length"),
            ("intermediate_size", "feed_forward_length"),
            ("max_position_embeddings", "context_length"),
        ];
        for (theirs, ours) in pairs {
            let found = index
                .metadata
                .u64(&format!("{}.{ours}", index.architecture));
            assert_eq!(found.ok(), truth[theirs].as_u64(), "{name} {theirs}");
        }
        let found: Vec<String> = index.notes.iter().map(Note::to_string).collect();
        assert_eq!(found.len(), notes.len(), "{name} {found:?}");
        for (found, words) in found.iter().zip(notes) {
            assert!(found.contains(words), "{name} {found}");
        }
        check_tensors(&file, &expected);
    }
}

/// Shapes and places of all tensors, and that none is lost.
fn check_tensors(file: &ModelFile, expected: &serde_json::Value) {
    let index = file.index();
    let mut n_expected = 0;
    for tensor in expected["tensors"].as_array().unwrap() {
        let name = tensor["gguf_name"]
            .as_str()
            .or(tensor["name"].as_str())
            .unwrap();
        let output = expected["read_as"]["output_matrix"].as_str().unwrap();
        let name = match name {
            "lm_head.weight" if output != "lm_head.weight" => continue,
            "lm_head.weight" => "output.weight",
            other => other,
        };
        n_expected += 1;
        let found = index.tensor(name).unwrap_or_else(|| panic!("no {name}"));
        let shape = tensor["true_shape"]
            .as_array()
            .or(tensor["shape"].as_array())
            .unwrap();
        let shape: Vec<usize> = shape
            .iter()
            .map(|dim| dim.as_u64().unwrap() as usize)
            .collect();
        assert_eq!(found.dims, shape, "{name}");
        let storage = tensor["storage"].as_str().unwrap();
        let quant = match storage.trim_start_matches("GGML ") {
            "APR Q4" => "Q4_0",
            "APR Q8" | "Q4_K, rows padded to a multiple of 256" => "F32",
            as_stored => as_stored,
        };
        assert_eq!(found.quant.name, quant, "{name} {storage}");
        let size = found.quant.bytes_for(found.elems()).unwrap();
        assert_eq!(file.bytes(found).len(), size, "{name}");
    }
    assert_eq!(index.tensors.len(), n_expected);
}

/// Files that nothing can be computed with, and the reason.
const REFUSED: [(&str, &str); 4] = [
    (
        "a11-llama-q4_1-convert-q4k",
        "says that it is a qwen2, but a qwen2 has biases",
    ),
    (
        "a12-qwen2-q5_0-convert-q4k",
        "converter that made this file wrote head counts",
    ),
    (
        "a15-qwen3moe-q4_k_m-preserve",
        "does not state its num_experts_per_tok",
    ),
    (
        "a16-qwen3-q2_k-preserve",
        "fits no storage type with the code 0",
    ),
];

#[test]
fn real_files_that_cannot_be_trusted_are_refused_with_the_reason() {
    for (name, words) in REFUSED {
        let message = open(name).unwrap_err();
        assert!(message.contains(words), "{message}");
        assert!(!message.contains("incomplete"), "{message}");
    }
}

#[test]
fn every_real_file_is_loaded_or_refused_as_it_says() {
    let names = apr_names();
    let loaded = LOADED.iter().map(|(name, _)| (*name, "load"));
    let refused = REFUSED.iter().map(|(name, _)| (*name, "refuse"));
    let mut all: Vec<_> = loaded.chain(refused).collect();
    all.sort_unstable();
    assert!(all.iter().map(|(name, _)| name).eq(&names), "{names:?}");
    for (name, what) in all {
        let allowed = expected(name)["expect"].as_array().unwrap().clone();
        assert!(
            allowed.iter().any(|allowed| allowed == what),
            "{name} {what}"
        );
    }
}

#[test]
fn vocabularies_are_completed_or_said_to_be_missing() {
    let spec = |name: &str| open(name).unwrap().index().tokenizer.clone();
    let whole = spec("a01-llama-f32-import-none").unwrap();
    assert_eq!(
        (whole.model.as_str(), whole.pre.as_deref()),
        ("gpt2", Some("llama-bpe"))
    );
    assert_eq!(
        (whole.bos, whole.eos, whole.add_bos),
        (Some(395), Some(397), Some(false))
    );
    // Without types they are told by spelling, with the same result.
    let guessed = spec("a05-llama-q8_0-import-q4k").unwrap();
    assert_eq!(guessed.types, whole.types);
    assert_eq!(guessed.tokens, whole.tokens);
    // The file beside has them all.
    let beside = spec("a17-llama-f32-safetensors-import-none").unwrap();
    assert_eq!(
        (&beside.tokens, &beside.merges),
        (&whole.tokens, &whole.merges)
    );
    assert_eq!((&beside.types, beside.pre), (&whole.types, whole.pre));
    assert_eq!(
        (beside.bos, beside.eos, beside.add_bos),
        (Some(395), Some(397), Some(false))
    );
    assert!(
        open("a17-llama-f32-safetensors-import-none")
            .unwrap()
            .index()
            .chat_template
            .is_some()
    );
    let pieces = spec("a02-llama-f16-spm-import-none").unwrap();
    assert_eq!((pieces.model.as_str(), pieces.unk), ("llama", Some(3)));
    assert!(pieces.scores.windows(2).all(|pair| pair[0] > pair[1]));
    assert_eq!(pieces.types[3], TokenType::Unknown);
    assert_eq!(spec("a18-llama-f16-safetensors-import-none"), None);
    let unnamed = spec("a13-llama-f32-convert-none").unwrap();
    assert_eq!(unnamed.pre.as_deref(), Some("(not named in this file)"));
    assert_eq!(
        spec("a14-qwen2-q5_0-preserve").unwrap().pre.as_deref(),
        Some("qwen2")
    );
}

fn parse(file: &Apr) -> Result<Index, ParseError> {
    let bytes = file.encode();
    apr::parse(&bytes, bytes.len() as u64)
}

/// Opens a written file.
fn written(file: &Apr) -> (tempfile::TempDir, ModelFile) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("written.apr");
    std::fs::write(&path, file.encode()).unwrap();
    (folder, ModelFile::open(&path).unwrap())
}

#[test]
fn writers_that_keep_bytes_give_the_tensors_of_the_gguf_file() {
    for model in [
        TinyModel::llama().rope_freqs(),
        TinyModel::qwen2().quant("Q5_1"),
    ] {
        let model = model.width(96, 160).heads(3, 1);
        let gguf = model.gguf();
        let writers = [
            Writer::RawImport,
            Writer::Preserve,
            Writer::PassThrough,
            Writer::Streaming,
        ];
        for writer in writers {
            let (_folder, file) = written(&Apr::of(&gguf, writer));
            assert_eq!(file.index().tensors.len(), gguf.tensors.len());
            for tensor in &gguf.tensors {
                let found = file.index().tensor(&tensor.name).unwrap();
                let dims: Vec<u64> = found.dims.iter().map(|dim| *dim as u64).collect();
                assert_eq!(
                    (dims, found.quant.id),
                    (tensor.dims.clone(), tensor.type_id)
                );
                assert_eq!(
                    file.bytes(found),
                    tensor.bytes,
                    "{writer:?} {}",
                    tensor.name
                );
            }
        }
    }
}

#[test]
fn writers_that_store_anew_give_the_values_that_they_wrote() {
    // Rows that are no whole blocks of 256, nor of 32 in one case.
    for width in [96, 100] {
        let model = TinyModel::llama()
            .quant("F32")
            .width(width, 80)
            .heads(2, 1)
            .gguf();
        for storage in [
            Storage::F32,
            Storage::F16,
            Storage::Q8,
            Storage::LegacyQ8,
            Storage::Q4,
            Storage::LegacyQ4,
            Storage::PaddedQ4K,
            Storage::FlatQ4K,
        ] {
            for writer in [Writer::Rewrite(storage), Writer::RewriteHf(storage)] {
                check_rewritten(&model, writer, storage);
            }
        }
    }
}

fn check_rewritten(model: &Gguf, writer: Writer, storage: Storage) {
    let (_folder, file) = written(&Apr::of(model, writer));
    let is_hf = matches!(writer, Writer::RewriteHf(_));
    for tensor in model.tensors.iter().filter(|tensor| tensor.dims.len() == 2) {
        let found = file.index().tensor(&tensor.name).unwrap();
        let mut values = vec![0.0; found.elems()];
        (found.quant.dequantize)(file.bytes(found), &mut values);
        let is_reordered =
            is_hf && (tensor.name.contains("attn_q") || tensor.name.contains("attn_k"));
        let crosses_rows = storage == Storage::FlatQ4K || found.cols() % 32 != 0;
        if is_reordered && crosses_rows {
            // Blocks across rows hold other neighbours, so their values are others.
            let originals = values_of(tensor);
            let pairs = values.iter().zip(&originals);
            let lost: f32 = pairs.map(|(a, b)| (a - b) * (a - b)).sum();
            let all: f32 = originals.iter().map(|value| value * value).sum();
            assert!(
                lost < 0.05 * all,
                "{writer:?} {}: {lost} of {all}",
                tensor.name
            );
            continue;
        }
        let want = rewritten(&values_of(tensor), found.cols(), storage);
        assert_eq!(values, want, "{writer:?} {}", tensor.name);
    }
}

#[test]
fn metadata_is_taken_by_its_last_value_that_is_not_null() {
    let apr = Apr::of(&TinyModel::llama().gguf(), Writer::RawImport);
    let file = apr
        .clone()
        .entry("num_heads", "7")
        .entry("num_heads", "4")
        .entry("num_heads", "null");
    assert_eq!(
        parse(&file)
            .unwrap()
            .metadata
            .u32("llama.attention.head_count"),
        Ok(4)
    );
    let mut file = apr.clone();
    file.metadata.retain(|(key, _)| !key.ends_with("num_heads"));
    let message = parse(&file).unwrap_err().to_string();
    assert!(
        message.contains("does not state its num_heads"),
        "{message}"
    );
    for alias in [
        "n_heads",
        "num_attention_heads",
        "n_head",
        "model.num_heads",
    ] {
        let file = file.clone().entry("num_heads", "null").entry(alias, "4");
        assert!(parse(&file).is_ok(), "{alias}");
    }
    // A template of the model comes before that of its tokenizer.
    assert_eq!(
        parse(&apr).unwrap().chat_template.as_deref(),
        Some(CHAT_TEMPLATE)
    );
    let file = apr.entry("tokenizer.chat_template", "\"other\"");
    assert_eq!(
        parse(&file).unwrap().chat_template.as_deref(),
        Some(CHAT_TEMPLATE)
    );
}

#[test]
fn lists_that_would_take_much_more_memory_than_their_text_are_refused() {
    // Each takes three bytes in the file and some 56 in memory.
    let list = format!("[{}\"\"]", "\"\",".repeat(1_000_000));
    let file = Apr::of(&TinyModel::llama().layers(1).gguf(), Writer::RawImport);
    let message = parse(&file.entry("tokenizer.vocabulary", &list))
        .unwrap_err()
        .to_string();
    assert!(message.contains("lists are too long"), "{message}");
}

#[test]
fn output_matrices_are_the_models_own() {
    let tied = TinyModel::llama().tied().gguf();
    let mut file = Apr::of(&tied, Writer::Preserve);
    let mut placeholder = file.tensors[0].clone();
    placeholder.name = "lm_head.weight".to_owned();
    placeholder.bytes.clear();
    file.tensors.push(placeholder.clone());
    let index = parse(&file).unwrap();
    assert!(index.tensor("output.weight").is_none() && index.tensor("lm_head.weight").is_none());
    // One that was made up stands beside the real one.
    let mut file = Apr::of(&TinyModel::llama().gguf(), Writer::RawImport);
    placeholder.bytes = vec![1; 34];
    (placeholder.code, placeholder.dims) = (8, vec![1, 32]);
    file.tensors.push(placeholder);
    let index = parse(&file.entry("tied_embeddings", "true")).unwrap();
    assert!(index.tensor("output.weight").is_some() && index.tensor("lm_head.weight").is_none());
}

#[test]
fn files_of_kinds_that_are_not_read_are_refused_by_name() {
    type Change = fn(&mut Apr);
    let set = |file: &mut Apr, key: &str, json: &str| {
        file.metadata.push((key.to_owned(), json.to_owned()));
    };
    let cases: [(Change, &str); 8] = [
        (
            |file| file.start = *b"APRN\x01\0",
            "version 1; version 2 is read",
        ),
        (
            |file| file.start = *b"APR1\x01\0",
            "version 1; version 2 is read",
        ),
        (|file| file.start[4] = 3, "version 3; version 2 is read"),
        (|file| file.start[3] = b'x', "not a GGUF or APR model file"),
        (|file| file.flags |= 0x0004, "encrypted"),
        (|file| file.flags |= 0x0800, "stored by columns"),
        (|file| file.flags |= 0x0002, "compressed"),
        (
            |file| file.tensors[0].code = 77,
            "fits no storage type with the code 77",
        ),
    ];
    let good = Apr::of(&TinyModel::llama().gguf(), Writer::RawImport);
    for (change, words) in cases {
        let mut file = good.clone();
        change(&mut file);
        let message = parse(&file).unwrap_err().to_string();
        assert!(message.contains(words), "{words}: {message}");
        assert!(!message.contains("incomplete"), "{message}");
    }
    for (key, json, words) in [
        ("architecture", "\"gemma3\"", "family gemma3"),
        ("architecture", "\"qwen99\"", "family qwen99"),
        ("hidden_size", "65", "hidden_size is 65, which does not fit"),
        ("num_layers", "3", "num_layers is 3, which does not fit"),
        ("num_heads", "3", "num_heads is 3, which does not fit"),
        ("num_kv_heads", "4", "num_kv_heads is 4, which does not fit"),
        ("rope_theta", "\"x\"", "`rope_theta` is a text"),
    ] {
        let mut file = good.clone();
        set(&mut file, key, json);
        let message = parse(&file).unwrap_err().to_string();
        assert!(message.contains(words), "{words}: {message}");
    }
    let message = parse(&Apr::of(&TinyModel::llama().gguf(), Writer::Stamped));
    assert!(
        message
            .unwrap_err()
            .to_string()
            .contains("says that it is a qwen2")
    );
    // The flag alone does not make a file a packed one.
    let mut flagged = good.clone();
    flagged.flags |= 0x0001;
    assert!(parse(&flagged).is_ok());
    let mut bytes = flagged.encode();
    bytes[64] = 4;
    let message = apr::parse(&bytes, bytes.len() as u64)
        .unwrap_err()
        .to_string();
    assert!(message.contains("compressed"), "{message}");
}

#[test]
fn damaged_files_are_told_from_cut_ones() {
    let file = Apr::of(&TinyModel::llama().layers(1).gguf(), Writer::RawImport);
    let bytes = file.encode();
    // Every cut is refused but one: the file without its checksum is whole.
    let without_footer = bytes.len() - 4;
    let cuts = (0..300)
        .chain((300..bytes.len() - 200).step_by(997))
        .chain(bytes.len() - 200..bytes.len());
    for cut in cuts.filter(|cut| *cut != without_footer) {
        let Err(error) = apr::parse(&bytes[..cut], cut as u64) else {
            panic!("{cut} of {} was opened", bytes.len());
        };
        let is_truncated = matches!(error, ParseError::Truncated { .. });
        assert!(is_truncated, "{cut} of {}: {error}", bytes.len());
    }
    assert!(apr::parse(&bytes[..without_footer], without_footer as u64).is_ok());
    // Any changed byte of the header is found, but for those that are looked at first.
    for at in 5..64 {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        let error = apr::parse(&changed, changed.len() as u64)
            .unwrap_err()
            .to_string();
        assert!(error.contains("checksum"), "{at}: {error}");
    }
}
