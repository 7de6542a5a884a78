//! Vectors of texts against llama.cpp's: `tests/golden/embeddings`, written by
//! `tests/oracles/gen_embeddings.py`.
#![expect(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test says what it measured and what it could not run"
)]

mod support;

use std::path::PathBuf;
use std::time::Duration;

use candor_engine::{CancelToken, EmbedRequest, Event, Pooling, Priority};
use serde_json::Value;

/// Activations of 8 bits move a vector by less.
const COSINE_MIN: f64 = 0.999;

#[test]
fn vectors_point_where_those_of_llama_cpp_point() {
    let golden = support::repository().join("tests/golden/embeddings/llama_cpp.json");
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(golden).unwrap()).unwrap();
    let rows = golden["rows"].as_array().unwrap();
    for rows in rows.chunk_by(|a, b| a["model"] == b["model"]) {
        let name = rows[0]["model"].as_str().unwrap();
        if let Some(path) = support::find(name) {
            check(name, path, rows);
        }
    }
}

fn check(name: &str, path: PathBuf, rows: &[Value]) {
    let (engine, model) = support::load(path);
    let mut worst: f64 = 1.0;
    for row in rows {
        let list = |key: &str| row[key].as_array().unwrap();
        let ids = list("ids").iter().map(|id| id.as_u64().unwrap() as u32);
        let pooling = match row["pooling"].as_str().unwrap() {
            "mean" => Pooling::Mean,
            _ => Pooling::Last,
        };
        let how = (pooling, Priority::Background);
        let request = EmbedRequest::pooled(&model, ids.collect(), how, CancelToken::new());
        let log = engine.embed(request.unwrap()).unwrap();
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
        let products = found.iter().zip(&expected).map(|(a, b)| f64::from(*a) * b);
        let cosine: f64 = products.sum();
        assert!(cosine > COSINE_MIN, "{name}, {pooling:?}: {cosine}");
        worst = worst.min(cosine);
    }
    eprintln!("{name}: cosine {worst:.6} at least");
    engine.shutdown();
}
