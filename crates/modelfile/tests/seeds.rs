//! The seeds of the fuzz targets are files that the readers take.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot read its files has to stop"
)]

use std::fs;
use std::path::{Path, PathBuf};

use candor_modelfile::{Index, ParseError, apr, gguf};
use candor_testkit::TinyModel;
use candor_testkit::apr::{Apr, Storage, Writer};
use candor_testkit::gguf::Value;

/// Set to anything, the seeds are written anew.
const WRITE: &str = "CANDOR_WRITE_SEEDS";

/// Small, so that a fuzzer changes what counts and not the weights.
fn small(model: TinyModel) -> TinyModel {
    model.layers(1).width(32, 32).heads(1, 1).tied()
}

fn gguf_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let llama = || small(TinyModel::llama());
    let parts = llama().gguf().split(2);
    vec![
        ("llama", llama().bytes()),
        ("qwen2", small(TinyModel::qwen2()).rope_freqs().bytes()),
        ("version-2", llama().version(2).bytes()),
        (
            "values",
            llama()
                .metadata("a", Value::U16(1))
                .metadata("b", Value::U64(u64::MAX))
                .metadata("c", Value::Bool(true))
                .metadata("d", Value::Floats(vec![0.5, f32::NAN]))
                .metadata("general.alignment", Value::U32(32))
                .without_metadata("tokenizer.ggml.token_type")
                .bytes(),
        ),
        ("part", parts[0].encode().bytes),
    ]
}

fn apr_seeds() -> Vec<(&'static str, Vec<u8>)> {
    // One quantised block is 256 wide; wider rows have several.
    let model = |quant: &str| small(TinyModel::llama()).quant(quant).gguf();
    let of = |quant: &str, writer| Apr::of(&model(quant), writer).encode();
    vec![
        ("raw", of("F16", Writer::RawImport)),
        ("streaming", of("F16", Writer::Streaming)),
        ("padded", of("F32", Writer::RewriteHf(Storage::PaddedQ4K))),
        ("preserve", of("Q8_0", Writer::Preserve)),
        ("legacy", of("F32", Writer::Rewrite(Storage::LegacyQ4))),
    ]
}

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fuzz/corpus/{target}"))
}

type Parse = fn(&[u8], u64) -> Result<Index, ParseError>;

fn check(target: &str, parse: Parse, made: Vec<(&'static str, Vec<u8>)>) {
    let folder = folder(target);
    #[expect(clippy::disallowed_methods, reason = "a test is a root of composition")]
    if std::env::var_os(WRITE).is_some() {
        fs::create_dir_all(&folder).unwrap();
        for (name, bytes) in &made {
            fs::write(folder.join(format!("seed-{name}.{target}")), bytes).unwrap();
        }
    }
    for (name, _) in made {
        let bytes = fs::read(folder.join(format!("seed-{name}.{target}"))).unwrap();
        match parse(&bytes, bytes.len() as u64) {
            Ok(index) => assert!(!index.tensors.is_empty(), "{name}"),
            Err(ParseError::Split { .. }) => assert_eq!(name, "part"),
            Err(error) => panic!("{target} {name}: {error}"),
        }
    }
}

#[test]
fn the_seeds_of_the_fuzz_targets_are_files_that_the_readers_take() {
    check("gguf", gguf::parse, gguf_seeds());
    check("apr", apr::parse, apr_seeds());
}
