//! Texts that become vectors.

use candor_backend::{Feed, Row};
use candor_testkit::TinyModel;
use candor_testkit::gguf::Value as Entry;
use serde_json::json;

use super::desk::{Desk, Plan};

#[test]
fn texts_become_vectors_of_length_one() {
    let desk = Desk::new();
    let body = json!({ "model": "tiny", "input": ["a bird", "a stone"] });
    let answer = desk.post("/v1/embeddings", &body).answer().json();
    let vector = |i: usize| -> Vec<f64> {
        let list = answer["data"][i]["embedding"].as_array();
        let list = list.unwrap_or_else(|| panic!("{answer}"));
        list.iter().map(|number| number.as_f64().unwrap()).collect()
    };
    for i in 0..2 {
        let length: f64 = vector(i).iter().map(|x| x * x).sum();
        assert!((length - 1.0).abs() < 1e-4, "{length}");
    }
    assert_ne!(vector(0), vector(1));
    let same = desk
        .post("/api/embed", &json!({ "model": "tiny", "input": "a bird" }))
        .answer();
    assert_eq!(same.json()["embeddings"][0], answer["data"][0]["embedding"]);
    let mut body = body.clone();
    body["encoding_format"] = json!("base64");
    let packed = desk.post("/v1/embeddings", &body).answer().json();
    let text = packed["data"][0]["embedding"].as_str().unwrap();
    assert_eq!(text.len(), (vector(0).len() * 4).div_ceil(3) * 4);
    body["dimensions"] = json!(7);
    assert_eq!(desk.post("/v1/embeddings", &body).answer().status, 400);
}

#[test]
fn a_text_longer_than_the_context_is_cut_where_ollamas_clients_expect_it() {
    let desk = Desk::with(Plan {
        context: 64,
        ..Plan::default()
    });
    let long = "a bird ".repeat(40);
    for (path, body, status) in [
        ("/v1/embeddings", json!({ "input": long }), 400),
        ("/api/embed", json!({ "input": long }), 200),
        (
            "/api/embed",
            json!({ "input": long, "truncate": true }),
            200,
        ),
        (
            "/api/embed",
            json!({ "input": long, "truncate": false }),
            400,
        ),
        ("/api/embed", json!({ "input": long, "truncate": 7 }), 400),
        ("/api/embeddings", json!({ "prompt": long }), 200),
    ] {
        let answer = desk.post(path, &body).answer();
        assert_eq!(answer.status, status, "{path} {body}: {}", answer.text());
        if let Some(read) = answer.json().get("prompt_eval_count") {
            assert_eq!(*read, json!(64));
        }
    }
}

#[test]
fn a_text_that_is_cut_keeps_the_token_that_ends_it() {
    const ADDS_END: &str = "tokenizer.ggml.add_eos_token";
    let model = TinyModel::llama().metadata(ADDS_END, Entry::Bool(true));
    let end = model.token_id(candor_testkit::TURN_END).unwrap();
    let desk = Desk::with(Plan {
        context: 64,
        model,
        ..Plan::default()
    });
    for text in ["a bird", &"a bird ".repeat(40)] {
        let before = desk.script.batches().len();
        let answer = desk.post("/api/embed", &json!({ "input": text })).answer();
        assert_eq!(answer.status, 200, "{}", answer.text());
        let seen = desk.script.batches();
        let rows = seen[before..].iter().flat_map(|batch| batch.rows.iter());
        let ids: Vec<u32> = rows
            .map(
                |Row {
                     feed: Feed::Token(id),
                     ..
                 }| *id,
            )
            .collect();
        let ends = ids.iter().filter(|id| **id == end).count();
        assert_eq!((ends, ids.last()), (1, Some(&end)), "{text:?}: {ids:?}");
        assert_eq!(answer.json()["prompt_eval_count"], json!(ids.len()));
    }
}
