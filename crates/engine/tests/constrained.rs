//! Replies of a real model that are held to a schema, and what that costs.
#![expect(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test says what it measured and what it could not run"
)]

mod support;

use std::time::{Duration, Instant};

use candor_engine::EngineHandle;
use candor_engine::{
    CancelToken, Constraint, Event, FinishReason, GenerateOptions, GenerateRequest, Sampling,
};
use serde_json::{Value, json};

const NAME: &str = "smollm2-135m-instruct-q4_1";

#[test]
fn a_real_model_writes_what_a_schema_says() {
    let Some(path) = support::find(NAME) else {
        return;
    };
    let (engine, model) = support::load(path);
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 24},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
            "languages": {"type": "array", "items": {"type": "string", "maxLength": 12}, "maxItems": 3},
        },
        "required": ["name", "age", "languages"],
        "additionalProperties": false,
    });
    let question = "A person as JSON:\n";
    let prompt = candor_text::Prompt::typed(question);
    let prompt = model
        .tokenizer
        .encode(&prompt, candor_text::Ends::Model)
        .unwrap();
    for (temperature, seed) in [(0.0, 0), (1.0, 1), (1.5, 2), (1.5, 3)] {
        let sampling = Sampling {
            temperature,
            seed,
            ..Sampling::greedy()
        };
        let options = GenerateOptions {
            constraint: Some(Constraint::JsonSchema(schema.clone())),
            ..GenerateOptions::new(prompt.clone(), sampling, 300)
        };
        let started = Instant::now();
        let request = GenerateRequest::new(&model, options, CancelToken::new()).unwrap();
        let compiled = started.elapsed();
        let (text, reason, tokens) = follow(&engine, request);
        let took = started.elapsed() - compiled;
        eprintln!("compiled in {compiled:.1?}, {tokens} tokens in {took:.1?}: {text}");
        assert_eq!(reason, FinishReason::Stop, "{text}");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert!(
            value["name"].is_string() && value["languages"].is_array(),
            "{text}"
        );
        assert!(
            (0..=120).contains(&value["age"].as_i64().unwrap()),
            "{text}"
        );
    }
    engine.shutdown();
}

fn follow(engine: &EngineHandle, request: GenerateRequest) -> (String, FinishReason, usize) {
    let log = engine.generate(request).unwrap();
    assert!(log.wait_for_end(Duration::from_secs(120)), "it did not end");
    let (mut text, mut next) = (String::new(), 0);
    loop {
        for entry in log.read(next) {
            next = entry.seq + 1;
            text.push_str(entry.event.text());
            if let Event::Finished { reason, stats } = entry.event {
                return (text, reason, stats.generated_tokens);
            }
            assert!(!entry.event.is_terminal(), "{:?}", entry.event);
        }
    }
}
