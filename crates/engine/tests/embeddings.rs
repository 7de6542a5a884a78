//! Vectors of texts against llama.cpp's: `tests/golden/embeddings`, written by
//! `tests/oracles/gen_embeddings.py`.
#![expect(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test says what it measured and what it could not run"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use candor_cpu::{CpuBackend, CpuConfig};
use candor_engine::{
    CancelToken, EmbedRequest, Engine, EngineConfig, Event, LoadOptions, LoadSpec, Pooling,
    Priority,
};
use serde_json::Value;

/// Activations of 8 bits move a vector by less.
const COSINE_MIN: f64 = 0.999;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where a model of the golden data is, if it is here.
fn find(name: &str) -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "a test is its own root")]
    let real = std::env::var_os("CANDOR_TEST_MODELS");
    let real = real.map_or_else(|| repository().join("target/models"), PathBuf::from);
    [repository().join("tests/golden/models"), real]
        .iter()
        .map(|folder| folder.join(format!("{name}.gguf")))
        .find(|path| path.exists())
}

#[test]
fn vectors_point_where_those_of_llama_cpp_point() {
    let golden = repository().join("tests/golden/embeddings/llama_cpp.json");
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(golden).unwrap()).unwrap();
    let rows = golden["rows"].as_array().unwrap();
    for rows in rows.chunk_by(|a, b| a["model"] == b["model"]) {
        let name = rows[0]["model"].as_str().unwrap();
        match find(name) {
            Some(path) => check(name, path, rows),
            None => {
                eprintln!("NOT RUN: {name} is neither in CANDOR_TEST_MODELS nor in target/models")
            }
        }
    }
}

fn check(name: &str, path: PathBuf, rows: &[Value]) {
    let config = EngineConfig {
        clock: Arc::new(Instant::now),
        available_memory: Arc::new(|| None),
    };
    let engine = Engine::spawn(config, vec![Box::new(CpuBackend::new(CpuConfig::new(2)))]).unwrap();
    let spec = LoadSpec {
        options: LoadOptions {
            ctx_len: Some(512),
            slots: 2,
            ..LoadOptions::default()
        },
        ..LoadSpec::new(path)
    };
    let model = engine.load(spec).unwrap().wait().unwrap();
    let mut worst: f64 = 1.0;
    for row in rows {
        let list = |key: &str| row[key].as_array().unwrap();
        let ids = list("ids")
            .iter()
            .map(|id| id.as_u64().unwrap() as u32)
            .collect();
        let pooling = match row["pooling"].as_str().unwrap() {
            "mean" => Pooling::Mean,
            _ => Pooling::Last,
        };
        let how = (pooling, Priority::Background);
        let request = EmbedRequest::pooled(&model, ids, how, CancelToken::new()).unwrap();
        let log = engine.embed(request).unwrap();
        assert!(
            log.wait_for_end(Duration::from_secs(60)),
            "{name}: it did not end"
        );
        let vectors = log
            .read(0)
            .into_iter()
            .filter_map(|entry| match entry.event {
                Event::Embedding(vector) => Some(vector),
                _ => None,
            });
        let found = vectors.last().unwrap();
        let expected: Vec<f64> = list("vector").iter().map(|v| v.as_f64().unwrap()).collect();
        assert_eq!(found.len(), expected.len(), "{name}");
        let cosine: f64 = found
            .iter()
            .zip(&expected)
            .map(|(a, b)| f64::from(*a) * b)
            .sum();
        assert!(cosine > COSINE_MIN, "{name}, {pooling:?}: {cosine}");
        worst = worst.min(cosine);
    }
    eprintln!("{name}: cosine {worst:.6} at least");
    engine.shutdown();
}
