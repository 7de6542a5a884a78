//! Replies that fail in the middle: what was written stands, and the end says why as each protocol does.

use candor_testkit::scripted::Fault;
use serde_json::{Value, json};

use super::cancel::writers;
use super::desk::Desk;

/// Tokens before it.
const FAILS_AFTER: usize = 6;

/// Where the words of the reason stand in the last event of a stream.
fn reason(path: &str, last: &Value) -> Value {
    let place = match path {
        "/v1/responses" => "/response/error/message",
        "/api/chat" | "/api/generate" => "/error",
        _ => "/error/message",
    };
    last.pointer(place).cloned().unwrap_or_default()
}

#[test]
fn a_stream_that_fails_in_the_middle_ends_with_the_reason() {
    let streams = writers("Hello", 40);
    let streams = streams
        .iter()
        .filter(|(_, body)| body["stream"] == json!(true));
    for (path, body) in streams {
        let desk = Desk::new();
        desk.script.at_forward(FAILS_AFTER, Fault::NotANumber);
        let answer = desk.post(path, body).answer();
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let events: Vec<Value> = match path.starts_with("/api/") {
            true => {
                let lines = answer.text().lines();
                lines
                    .map(|line| serde_json::from_str(line).unwrap())
                    .collect()
            }
            false => answer.events(),
        };
        let last = events.last().unwrap();
        assert!(reason(path, last).is_string(), "{path}: {last}");
        if *path == "/v1/responses" {
            // With what was written before it.
            let response = &last["response"];
            assert_eq!(last["type"], json!("response.failed"), "{last}");
            assert_eq!(response["status"], json!("failed"), "{last}");
            let text = response["output"][0]["content"][0]["text"].as_str();
            let text = text.unwrap_or_else(|| panic!("{last}"));
            assert_eq!(text.chars().count(), FAILS_AFTER, "{last}");
            // Some clients look for this alone.
            let is_error = |event: &Value| event["type"] == json!("error");
            assert!(events.iter().any(is_error), "{events:?}");
        }
        desk.wait_inside(0);
    }
}
