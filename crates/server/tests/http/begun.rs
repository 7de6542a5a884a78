//! Replies that a client has begun.

use candor_backend::{Feed, Row};
use candor_testkit::TinyModel;
use candor_testkit::gguf::Value as Entry;
use serde_json::{Value, json};

use super::desk::{Desk, Plan};

#[test]
fn a_reply_that_a_client_has_begun_goes_on_from_there() {
    let desk = Desk::new();
    let ask = |messages: &Value, more: &Value| {
        let mut body = json!({
            "model": "tiny", "max_tokens": 3, "temperature": 0, "messages": messages,
        });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        body
    };
    let user = json!({ "role": "user", "content": "Hello" });
    let begun = json!([user, { "role": "assistant", "content": "BEGUN" }]);
    let asked = ask(&begun, &json!({}));
    let answer = desk.post("/v1/messages", &asked).answer().json();
    let seen = desk.script.batches();
    let rows = seen[0].rows.iter();
    let ids: Vec<u8> = rows
        .filter_map(
            |Row {
                 feed: Feed::Token(id),
                 ..
             }| u8::try_from(*id).ok(),
        )
        .collect();
    // Nothing stands between the words and what is written on.
    assert!(ids.ends_with(b"BEGUN"), "{}", String::from_utf8_lossy(&ids));
    let text = answer["content"][0]["text"].as_str().unwrap();
    assert_eq!(text.chars().count(), 3, "{answer}");
    let counted = desk
        .post("/v1/messages/count_tokens", &asked)
        .answer()
        .json();
    let read = answer["usage"]["input_tokens"].as_u64().unwrap()
        + answer["usage"]["cache_read_input_tokens"].as_u64().unwrap();
    assert_eq!(counted["input_tokens"], json!(read));
    // Who writes on has thought already.
    let thinks = json!({ "thinking": { "type": "enabled", "budget_tokens": 1_024 } });
    let answer = desk.post("/v1/messages", &ask(&begun, &thinks)).answer();
    assert_eq!(answer.status, 400, "{}", answer.text());
    let thinks_first = Desk::with(Plan {
        model: TinyModel::llama().metadata(
            "tokenizer.chat_template",
            Entry::from("{{ messages[0].content }}<think>\n"),
        ),
        ..Plan::default()
    });
    let answer = thinks_first.post("/v1/messages", &asked).answer();
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(answer.text().contains("think first"), "{}", answer.text());
}
