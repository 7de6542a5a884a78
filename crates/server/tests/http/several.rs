//! Several replies to one request, and several texts that may end them.

use serde_json::{Value, json};

use super::desk::{Desk, LETTERS, reply};

#[test]
fn of_several_stop_texts_the_one_that_was_written_is_named() {
    for (named, says) in [
        (json!(["zzz", "cde"]), json!("cde")),
        (json!(["fgh", "bcd", "cde"]), json!("bcd")),
        (json!(["zzz"]), Value::Null),
    ] {
        for streams in [false, true] {
            let desk = Desk::new();
            reply(&desk, b"abcdefg");
            let body = json!({
                "stop_sequences": named, "max_tokens": 7, "temperature": 0, "stream": streams,
                "messages": [{ "role": "user", "content": "Hello" }],
            });
            let answer = desk.post("/v1/messages", &body).answer();
            let end = match streams {
                false => answer.json(),
                true => {
                    let events = answer.events();
                    let begun = &events[0]["message"]["usage"]["input_tokens"];
                    assert!(begun.as_u64().unwrap() > 5, "{begun}");
                    let is_end = |event: &&Value| event["type"] == json!("message_delta");
                    events.iter().find(is_end).unwrap()["delta"].clone()
                }
            };
            assert_eq!(end["stop_sequence"], says, "{named} {streams}: {end}");
        }
    }
}

/// Text is held back while it may become a stop text; its probabilities wait with it.
#[test]
fn each_of_several_replies_is_told_its_own_probabilities() {
    let desk = Desk::new();
    let stops: Vec<String> = ["a", "f", "m", "t"].map(|c| format!("{c}0")).into();
    let letters: Value = LETTERS.map(|id| (id.to_string(), json!(100))).collect();
    let body = json!({
        "n": 2, "stream": true, "logprobs": true, "seed": 5, "temperature": 2, "logit_bias": letters, "max_tokens": 60,
        "stop": stops, "messages": [{ "role": "user", "content": "Hello" }],
    });
    let events = desk.post("/v1/chat/completions", &body).answer().events();
    let (mut texts, mut told) = (
        [String::new(), String::new()],
        [String::new(), String::new()],
    );
    let choices = events
        .iter()
        .filter_map(|event| event.pointer("/choices/0"));
    for choice in choices {
        let i = choice["index"].as_u64().unwrap() as usize;
        texts[i].push_str(choice["delta"]["content"].as_str().unwrap_or_default());
        let tokens = choice
            .pointer("/logprobs/content")
            .and_then(Value::as_array);
        for token in tokens.into_iter().flatten() {
            told[i].push_str(token["token"].as_str().unwrap());
        }
    }
    assert_eq!(texts[0].len(), 60);
    assert_ne!(texts[0], texts[1]);
    assert_eq!(told, texts);
}
