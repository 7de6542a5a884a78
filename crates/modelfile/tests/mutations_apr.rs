//! Seeded mutations of valid APR files: the reader answers, whatever it is given, and takes no
//! more memory than the file's size explains.
//!
//! One test only: it looks at the memory of its whole process.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot write its files has to stop"
)]

use std::path::Path;

use candor_modelfile::{Index, ModelFile, apr};
use candor_testkit::apr::{Apr, Storage, Writer, seal};
use candor_testkit::gguf::{Gguf, Tensor};
use candor_testkit::mutate::mutate;
use candor_testkit::{Random, TinyModel, Unfit};

mod support;
use support::{Budget, peak_kb};

const ROUNDS: usize = 10_000;

/// As for GGUF; what is laid out anew comes on top.
const GROWTH_KB_MAX: u64 = 8_192;

/// One in so many files that were parsed is opened too, and all its tensors are laid out.
const OPENED_EVERY: usize = 8;

/// A model with two experts in each layer, which the writers of Hugging Face's form write apart.
fn experts() -> Gguf {
    let mut file = Unfit::Experts.gguf();
    let routers = (0..2).map(|layer| Tensor {
        name: format!("blk.{layer}.ffn_gate_inp.weight"),
        dims: vec![2, 64],
        type_id: 0,
        bytes: vec![0; 512],
    });
    file.tensors.extend(routers);
    file
}

fn files() -> Vec<(Vec<u8>, usize)> {
    let llama = TinyModel::llama()
        .layers(1)
        .quant("F32")
        .rope_freqs()
        .gguf();
    let qwen2 = TinyModel::qwen2()
        .layers(1)
        .width(96, 64)
        .heads(3, 1)
        .gguf();
    let files = [
        Apr::of(&experts(), Writer::Streaming).entry("num_experts_per_tok", "1"),
        Apr::of(&llama, Writer::RawImport),
        Apr::of(&llama, Writer::Streaming),
        Apr::of(&llama, Writer::RewriteHf(Storage::PaddedQ4K)),
        Apr::of(&qwen2, Writer::Preserve),
        Apr::of(&qwen2, Writer::Rewrite(Storage::Q8)),
        Apr::of(&qwen2, Writer::Rewrite(Storage::LegacyQ4)),
        Apr::of(&qwen2, Writer::Rewrite(Storage::FlatQ4K)),
    ];
    let with_end = |file: &Apr| {
        let bytes = file.encode();
        let data_at = u64::from_le_bytes(bytes[32..40].try_into().unwrap()) as usize;
        (bytes, data_at)
    };
    files.iter().map(with_end).collect()
}

#[test]
fn mutated_files_never_panic_nor_take_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mutated.apr");
    let files = files();
    let mut random = Random::new(20_27);
    for (bytes, _) in &files {
        assert!(parse(bytes));
        open(&path, bytes);
    }
    let before = peak_kb();
    let (mut parsed, mut rounds) = (0, 0);
    let budget = Budget::rounds(ROUNDS);
    while budget.allows(rounds) {
        let (whole, data_at) = &files[rounds % files.len()];
        let mut bytes = mutate(whole, *data_at, &mut random);
        if random.below(8) > 0 {
            // Else nearly nothing would get past the header.
            seal(&mut bytes);
        }
        if parse(&bytes) {
            parsed += 1;
            if parsed % OPENED_EVERY == 0 {
                open(&path, &bytes);
            }
        }
        rounds += 1;
    }
    println!("{rounds} mutations, {parsed} of them parsed");
    // Both outcomes have to occur, or the mutations test nothing.
    assert!(
        parsed > rounds / 100 && parsed < rounds,
        "{parsed} of {rounds} parsed"
    );
    match (before, peak_kb()) {
        (Some(before), Some(after)) => {
            assert!(
                after - before <= GROWTH_KB_MAX,
                "{before} kB grew to {after} kB"
            );
        }
        _ => eprintln!("NOT RUN: memory of the mutated files: no /proc on this system"),
    }
}

fn parse(bytes: &[u8]) -> bool {
    match apr::parse(bytes, bytes.len() as u64) {
        Ok(index) => {
            check_promises(&index, bytes.len() as u64);
            true
        }
        Err(error) => {
            assert!(error.to_string().len() < 1000, "{error}");
            false
        }
    }
}

/// What the reader promises of each index that it gives out.
fn check_promises(index: &Index, file_len: u64) {
    for tensor in &index.tensors {
        let bytes = tensor
            .quant
            .bytes_for(tensor.elems())
            .map(|bytes| bytes as u64);
        assert_eq!(
            bytes,
            Some(tensor.range.end - tensor.range.start),
            "{tensor:?}"
        );
        let is_in_file = tensor.range.end <= file_len;
        let is_unpacked =
            tensor.range.start >= file_len && tensor.range.end <= file_len + index.unpacked_bytes;
        assert!(is_in_file || is_unpacked, "{tensor:?}");
    }
    if let Some(spec) = &index.tokenizer {
        let n_tokens = spec.tokens.len();
        assert!(spec.types.is_empty() || spec.types.len() == n_tokens);
        assert!(spec.scores.is_empty() || spec.scores.len() == n_tokens);
    }
}

/// Lays out every tensor of a file that was parsed.
fn open(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
    let file = ModelFile::open(path).unwrap();
    for tensor in &file.index().tensors {
        let size = tensor.quant.bytes_for(tensor.elems());
        assert_eq!(Some(file.bytes(tensor).len()), size, "{tensor:?}");
    }
}
