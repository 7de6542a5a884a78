//! The protocols: the same reply by each of them, whole and as a stream, with its figures.

use candor_testkit::scripted::Fault;
use serde_json::{Value, json};

use super::desk::{Desk, Plan, chat, chat_stream, reply};

fn join(events: &[Value], pointer: &str) -> String {
    events
        .iter()
        .filter_map(|event| event.pointer(pointer)?.as_str())
        .collect()
}

/// The same words whole, under the pointer `whole`, and in pieces, under `piece`; `end` says where
/// the end is told, and how.
fn check_protocol(path: &str, mut body: Value, whole: &str, piece: &str, end: (&str, &str)) {
    let desk = Desk::new();
    let greedy = if path.starts_with("/api") {
        "options"
    } else {
        "temperature"
    };
    body[greedy] = match greedy {
        "options" => json!({ "temperature": 0 }),
        _ => json!(0),
    };
    body["stream"] = json!(false);
    reply(&desk, b"hello");
    let answer = desk.post(path, &body).answer();
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    let json = answer.json();
    assert_eq!(json.pointer(whole), Some(&json!("hello")), "{path}: {json}");
    assert_eq!(json.pointer(end.0), Some(&json!(end.1)), "{path}: {json}");
    assert_eq!(json["candor"]["backend"]["served"], json!("cpu"), "{path}");
    let verdict = &json["candor"]["backend"]["f2"]["verdict"];
    assert_eq!(verdict, &json!("not_needed"), "{path}");
    assert_eq!(answer.header("x-candor-backend"), Some("cpu"), "{path}");
    assert_eq!(
        answer.header("x-candor-verdict"),
        Some("not_needed"),
        "{path}"
    );
    body["stream"] = json!(true);
    reply(&desk, b"hello");
    let answer = desk.post(path, &body).answer();
    assert_eq!(answer.header("x-candor-backend"), Some("cpu"), "{path}");
    let lines = answer.text().lines().filter(|line| line.starts_with('{'));
    let mut events: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    events.extend(answer.events());
    assert_eq!(join(&events, piece), "hello", "{path}: {}", answer.text());
    let told = events.iter().filter(|event| event.get("candor").is_some());
    assert_eq!(told.count(), 1, "{path}: {}", answer.text());
}

#[test]
fn every_protocol_gives_the_same_words_whole_and_in_pieces() {
    let messages = json!([{ "role": "user", "content": "Hello" }]);
    let check = check_protocol;
    check(
        "/v1/chat/completions",
        json!({ "model": "tiny", "messages": messages }),
        "/choices/0/message/content",
        "/choices/0/delta/content",
        ("/choices/0/finish_reason", "stop"),
    );
    check(
        "/v1/completions",
        json!({ "model": "tiny", "prompt": "Hello" }),
        "/choices/0/text",
        "/choices/0/text",
        ("/choices/0/finish_reason", "stop"),
    );
    check(
        "/v1/messages",
        json!({ "model": "tiny", "max_tokens": 50, "messages": messages }),
        "/content/0/text",
        "/delta/text",
        ("/stop_reason", "end_turn"),
    );
    check(
        "/api/chat",
        json!({ "model": "tiny", "messages": messages }),
        "/message/content",
        "/message/content",
        ("/done_reason", "stop"),
    );
    check(
        "/api/generate",
        json!({ "model": "tiny", "prompt": "Hello" }),
        "/response",
        "/response",
        ("/done_reason", "stop"),
    );
    check(
        "/generate",
        json!({ "prompt": "Hello" }),
        "/text",
        "/text",
        ("/finish", "stop"),
    );
}

#[test]
fn figures_are_true_and_told_when_they_are_asked_for() {
    // Long enough that copying it is worth more than reading it again.
    const QUESTION: &str = "Why do the birds of this wood sing before the sun comes up?";
    let desk = Desk::new();
    let whole = desk
        .post("/v1/chat/completions", &chat(QUESTION, 9))
        .answer()
        .json();
    let usage = &whole["usage"];
    assert_eq!(usage["completion_tokens"], json!(9));
    let mut body = chat_stream(QUESTION, 9);
    let plain = desk.post("/v1/chat/completions", &body).answer();
    assert!(
        plain
            .events()
            .iter()
            .all(|event| event.get("usage").is_none())
    );
    assert!(plain.text().ends_with("data: [DONE]\n\n"));
    body["stream_options"] = json!({ "include_usage": true });
    let told = desk.post("/v1/chat/completions", &body).answer().events();
    let last = told.last().unwrap();
    assert_eq!(last["choices"], json!([]));
    let total = &last["usage"]["total_tokens"];
    assert_eq!(total, &usage["total_tokens"]);
    // The same prompt again is not read again, but for its last token.
    let prompt = last["usage"]["prompt_tokens"].as_u64().unwrap();
    let cached = &last["usage"]["prompt_tokens_details"]["cached_tokens"];
    assert_eq!(cached, &json!(prompt - 1));
    assert!(
        told[..told.len() - 1]
            .iter()
            .all(|event| event["usage"].is_null())
    );
}

#[test]
fn a_stop_text_ends_a_reply_and_is_not_shown() {
    for (path, body, text, end) in [
        (
            "/v1/chat/completions",
            json!({ "stop": ["cde"], "temperature": 0, "messages": [{ "role": "user", "content": "Hello" }] }),
            "/choices/0/message/content",
            ("/choices/0/finish_reason", "stop"),
        ),
        (
            "/v1/messages",
            json!({
                "stop_sequences": ["cde"], "max_tokens": 50, "temperature": 0,
                "messages": [{ "role": "user", "content": "Hello" }],
            }),
            "/content/0/text",
            ("/stop_reason", "stop_sequence"),
        ),
        (
            "/api/generate",
            json!({ "model": "tiny", "prompt": "Hello", "stream": false, "options": { "stop": ["cde"], "temperature": 0 } }),
            "/response",
            ("/done_reason", "stop"),
        ),
    ] {
        let desk = Desk::new();
        reply(&desk, b"abcdefgh");
        let json = desk.post(path, &body).answer().json();
        assert_eq!(json.pointer(text), Some(&json!("ab")), "{path}: {json}");
        assert_eq!(json.pointer(end.0), Some(&json!(end.1)), "{path}: {json}");
    }
}

#[test]
fn pictures_are_refused_in_whatever_form_they_come() {
    let desk = Desk::new();
    for (images, status) in [
        (json!(["AAAA"]), 400),
        (json!("AAAA"), 400),
        (json!({}), 400),
        (json!([]), 200),
        (Value::Null, 200),
    ] {
        let message = json!({ "role": "user", "content": "Hello", "images": images });
        let options = json!({ "num_predict": 2 });
        let body =
            json!({ "model": "tiny", "messages": [message], "stream": false, "options": options });
        let answer = desk.post("/api/chat", &body).answer();
        assert_eq!(answer.status, status, "{images}: {}", answer.text());
    }
}

#[test]
fn characters_are_never_cut_and_every_event_is_utf8() {
    let texts: [&[u8]; 5] = [
        "a🙂b".as_bytes(),
        "👨\u{200d}👩\u{200d}👧".as_bytes(),
        "नमस्ते 田中".as_bytes(),
        b"a\x80b",
        b"ab\xf0\x9f",
    ];
    for bytes in texts {
        let desk = Desk::new();
        let want = String::from_utf8_lossy(bytes);
        // A byte is a token of this model: every character comes in as many pieces as it has bytes.
        reply(&desk, bytes);
        let whole = desk
            .post("/v1/chat/completions", &chat("Hello", 99))
            .answer()
            .json();
        assert_eq!(whole["choices"][0]["message"]["content"], json!(want));
        reply(&desk, bytes);
        let events = desk
            .post("/v1/chat/completions", &chat_stream("Hello", 99))
            .answer()
            .events();
        let pieces = events
            .iter()
            .filter_map(|event| event.pointer("/choices/0/delta/content"));
        let mut text = String::new();
        for piece in pieces.filter_map(Value::as_str) {
            text.push_str(piece);
            // Nothing that was shown is taken back.
            assert!(want.starts_with(&text), "{text:?} of {want:?}");
        }
        assert_eq!(text, want);
    }
}

#[test]
fn probabilities_are_told_where_they_are_asked_for() {
    let desk = Desk::new();
    let mut body = chat("Hello", 4);
    body["logprobs"] = json!(true);
    body["top_logprobs"] = json!(3);
    let whole = desk.post("/v1/chat/completions", &body).answer().json();
    let told = whole
        .pointer("/choices/0/logprobs/content")
        .unwrap()
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(told.len(), 4);
    for token in &told {
        let top = token["top_logprobs"].as_array().unwrap();
        assert_eq!(top.len(), 3);
        // Greedy: the token that was written is the likeliest.
        assert_eq!(
            (&top[0]["token"], &top[0]["logprob"]),
            (&token["token"], &token["logprob"])
        );
        assert!(token["logprob"].as_f64().unwrap() <= 0.0);
    }
    body["stream"] = json!(true);
    let events = desk.post("/v1/chat/completions", &body).answer().events();
    let pieces = events.iter().filter_map(|event| {
        event
            .pointer("/choices/0/logprobs/content")?
            .as_array()
            .cloned()
    });
    assert_eq!(pieces.flatten().collect::<Vec<_>>(), told);
    // A banned token is not written.
    let first = told[0]["bytes"][0].as_u64().unwrap();
    body["stream"] = json!(false);
    body["logit_bias"] = json!({ first.to_string(): -100 });
    let other = desk.post("/v1/chat/completions", &body).answer().json();
    let now = other
        .pointer("/choices/0/logprobs/content/0/token")
        .unwrap();
    assert_ne!(now, &told[0]["token"]);
}

#[test]
fn text_becomes_tokens_and_tokens_text() {
    let desk = Desk::new();
    let text = "Grüße 田中 🙂 <|im_end|>";
    let ids = desk
        .post("/tokenize", &json!({ "text": text }))
        .answer()
        .json()["ids"]
        .clone();
    assert!(ids.as_array().unwrap().len() > 5);
    let back = desk
        .post("/detokenize", &json!({ "ids": ids }))
        .answer()
        .json();
    assert_eq!(back["text"], json!(text));
    let counted = desk.post(
        "/v1/messages/count_tokens",
        &json!({ "messages": [{ "role": "user", "content": "Hello" }] }),
    );
    let counted = counted.answer().json()["input_tokens"].clone();
    let usage = desk
        .post("/v1/chat/completions", &chat("Hello", 1))
        .answer()
        .json();
    assert_eq!(counted, usage["usage"]["prompt_tokens"]);
    let wrong = desk
        .post("/detokenize", &json!({ "ids": [4_000_000_000_u32] }))
        .answer();
    assert_eq!(wrong.status, 400);
}

#[test]
fn a_reply_keeps_to_the_form_that_was_asked_for() {
    let schema = json!({
        "type": "object",
        "properties": { "city": { "type": "string", "maxLength": 5 } },
        "required": ["city"],
        "additionalProperties": false,
    });
    let desk = Desk::new();
    let mut body = chat("Hello", 200);
    body["response_format"] =
        json!({ "type": "json_schema", "json_schema": { "name": "c", "schema": schema } });
    let answer = desk.post("/v1/chat/completions", &body).answer().json();
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    let read: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert!(
        read["city"].is_string() && !text.contains([' ', '\n']),
        "{text}"
    );
    // A call that is required is one, whole and in a stream.
    let function = json!({ "name": "weather", "parameters": schema });
    let mut body = chat("Hello", 200);
    body["tools"] = json!([{ "type": "function", "function": function }]);
    for choice in [
        json!("required"),
        json!({ "type": "function", "function": { "name": "weather" } }),
    ] {
        body["tool_choice"] = choice;
        body["stream"] = json!(false);
        let answer = desk.post("/v1/chat/completions", &body).answer().json();
        let choice = &answer["choices"][0];
        assert_eq!(choice["finish_reason"], json!("tool_calls"), "{answer}");
        let call = &choice["message"]["tool_calls"][0];
        assert_eq!(call["function"]["name"], json!("weather"));
        let arguments = call["function"]["arguments"].as_str().unwrap();
        assert!(serde_json::from_str::<Value>(arguments).unwrap()["city"].is_string());
        body["stream"] = json!(true);
        let events = desk.post("/v1/chat/completions", &body).answer().events();
        let calls = events
            .iter()
            .filter_map(|event| event.pointer("/choices/0/delta/tool_calls/0/function/arguments"));
        assert_eq!(calls.collect::<Vec<_>>(), [&json!(arguments)]);
    }
    body["tool_choice"] = json!({ "type": "function", "function": { "name": "other" } });
    assert_eq!(
        desk.post("/v1/chat/completions", &body).answer().status,
        400
    );
    // A schema that cannot be kept to is refused, not ignored.
    let mut body = chat("Hello", 9);
    let strange = json!({ "type": "object", "unevaluatedProperties": { "type": 7 } });
    body["response_format"] =
        json!({ "type": "json_schema", "json_schema": { "name": "c", "schema": strange } });
    assert_eq!(
        desk.post("/v1/chat/completions", &body).answer().status,
        400
    );
}

#[test]
fn a_long_silence_has_signs_of_life() {
    for (path, body, sign) in [
        (
            "/v1/chat/completions",
            chat_stream("Hello", 3),
            ": still here",
        ),
        (
            "/v1/messages",
            json!({
                "stream": true, "max_tokens": 3,
                "messages": [{ "role": "user", "content": "Hello" }],
            }),
            "event: ping",
        ),
        (
            "/api/chat",
            json!({
                "model": "tiny", "options": { "num_predict": 3 },
                "messages": [{ "role": "user", "content": "Hello" }],
            }),
            "\"done\":false",
        ),
    ] {
        let desk = Desk::new();
        desk.script.at_forward(0, Fault::Stall);
        let mut sent = desk.post(path, &body);
        sent.wait_for(sign);
        desk.script.release();
        sent.wait_for(if path.starts_with("/api") {
            "\"done\":true"
        } else {
            "candor"
        });
    }
}

#[test]
fn a_device_that_is_lost_ends_the_answer_in_words() {
    for streams in [false, true] {
        let desk = Desk::with(Plan::default());
        desk.script.at_forward(3, Fault::Panic);
        let mut body = chat("Hello", 20);
        body["stream"] = json!(streams);
        let answer = desk.post("/v1/chat/completions", &body).answer();
        let want = if streams { 200 } else { 500 };
        assert_eq!(answer.status, want, "{}", answer.text());
        assert!(answer.text().contains("\"error\""), "{}", answer.text());
        assert!(!answer.text().contains("[DONE]"));
        // The model is loaded again for the next one.
        desk.chat("Again", 3);
    }
}
