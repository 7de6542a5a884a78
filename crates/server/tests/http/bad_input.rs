//! What no client should send: always the right status, never a panic, and the next request is
//! answered.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use candor_server::Patience;
use candor_testkit::scripted::HANG_LIMIT;
use serde_json::{Value, json};

use super::cancel::writers;
use super::client::{request, send_raw};
use super::desk::{Desk, Plan, chat};

const CHAT: &str = "/v1/chat/completions";

/// A chat completion with one field changed.
fn with(field: &str, value: Value) -> Value {
    let mut body = chat("Hello", 1);
    body[field] = value;
    body
}

/// Fields with values of the wrong type, or out of bounds.
fn wrong_fields() -> Vec<(&'static str, Value)> {
    let user = |content: Value| json!([{ "role": "user", "content": content }]);
    vec![
        ("model", json!(7)),
        ("messages", json!("Hello")),
        ("messages", json!([])),
        ("messages", json!(["Hello"])),
        ("messages", json!([{ "role": "boss", "content": "Hello" }])),
        ("messages", json!([{ "role": "user" }])),
        ("messages", json!([{ "content": "Hello" }])),
        ("messages", user(json!(7))),
        (
            "messages",
            user(json!([{ "type": "image_url", "image_url": { "url": "x" } }])),
        ),
        ("messages", user(json!([{ "type": "text", "text": 7 }]))),
        (
            "messages",
            json!([{ "role": "assistant", "tool_calls": [{}] }]),
        ),
        ("temperature", json!("hot")),
        ("temperature", json!(-1)),
        ("temperature", json!(1e300)),
        ("top_p", json!(1.5)),
        ("max_tokens", json!(0)),
        ("max_tokens", json!(-5)),
        ("max_tokens", json!(1.5)),
        ("max_tokens", json!(1e300)),
        ("max_tokens", json!("many")),
        ("max_completion_tokens", json!([1])),
        ("top_logprobs", json!("x")),
        ("top_logprobs", json!(5)),
        ("n", json!(0)),
        ("n", json!(1_000_000_000)),
        ("seed", json!("lucky")),
        ("seed", json!(1e300)),
        ("stop", json!({})),
        ("stop", json!([1])),
        ("stop", json!([""])),
        ("stop", json!("")),
        ("stop", json!("a".repeat(300))),
        ("stop", json!(vec!["a"; 100])),
        ("stream", json!("yes")),
        ("stream_options", json!(true)),
        ("logit_bias", json!([])),
        ("logit_bias", json!({ "hello": 1 })),
        ("logit_bias", json!({ "1": 1e6 })),
        ("logit_bias", json!({ "4000000000": 1 })),
        ("tools", json!({})),
        ("tools", json!([{ "type": "function" }])),
        ("tools", json!([{ "type": "web_search" }])),
        (
            "tools",
            json!([{ "type": "function", "function": { "name": 7 } }]),
        ),
        ("tool_choice", json!("sometimes")),
        ("tool_choice", json!(1)),
        ("response_format", json!("json")),
        ("response_format", json!({ "type": "yaml" })),
        ("logprobs", json!("all")),
        ("chat_template_kwargs", json!([])),
        ("reasoning_effort", json!(3)),
    ]
}

#[test]
fn wrong_types_are_named_and_unknown_fields_ignored() {
    let desk = Desk::new();
    for (field, value) in wrong_fields() {
        let body = with(field, value);
        let answer = desk.post(CHAT, &body).answer();
        assert_eq!(answer.status, 400, "{field}: {body} {}", answer.text());
        let error = &answer.json()["error"];
        assert_eq!(error["type"], json!("invalid_request_error"), "{field}");
        let message = error["message"].as_str().unwrap();
        assert!(!message.is_empty(), "{field}: {message}");
        if field == "stop" {
            assert_eq!(error["param"], json!("stop"), "{message}");
        }
    }
    let ignored = [
        ("user", json!("somebody")),
        ("metadata", json!({ "a": [1, 2] })),
        ("not_a_field", json!([[[]]])),
        ("service_tier", json!("auto")),
        ("temperature", Value::Null),
        ("seed", json!(-1)),
        ("max_tokens", json!(1.0)),
    ];
    for (field, value) in ignored {
        let answer = desk.post(CHAT, &with(field, value)).answer();
        assert_eq!(answer.status, 200, "{field}: {}", answer.text());
    }
    let mut both = with("max_tokens", json!("x"));
    both["max_completion_tokens"] = json!(3);
    assert_eq!(desk.post(CHAT, &both).answer().status, 400);
    let mut body = with("max_tokens", json!(u64::from(u32::MAX)));
    body["stop"] = json!("a");
    assert_eq!(desk.post(CHAT, &body).answer().status, 200);
}

#[test]
fn a_body_that_is_no_request_is_refused_on_every_path() {
    let desk = Desk::new();
    let deep = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
    let wide = [
        b"{\"messages\":\"".to_vec(),
        vec![b'a'; 1 << 20],
        b"\"}".to_vec(),
    ]
    .concat();
    let bodies: [&[u8]; 14] = [
        b"",
        b"{",
        b"null",
        b"[]",
        b"7",
        b"\"text\"",
        b"{\"messages\":",
        b"{}",
        b"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\xfe\"}]}",
        b"{\"model\":\"\\ud800\"}",
        b"\x00\x01\x02",
        b"{\"temperature\":1e999}",
        &deep(100_000),
        &wide,
    ];
    let paths = [
        CHAT,
        "/v1/completions",
        "/v1/responses",
        "/v1/embeddings",
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/api/chat",
        "/api/generate",
        "/api/embed",
        "/api/embeddings",
        "/api/show",
        "/generate",
        "/tokenize",
        "/detokenize",
    ];
    // To these, an object without words is the wish to have the model loaded.
    let loads = |path: &str, body: &[u8]| match path {
        "/api/chat" => body == b"{}",
        "/api/generate" => body == b"{}" || body == wide,
        _ => false,
    };
    for path in paths {
        for body in bodies.iter().filter(|body| !loads(path, body)) {
            let answer = send_raw(desk.address, &request("POST", path, "", body)).answer();
            let shown = String::from_utf8_lossy(&body[..body.len().min(40)]);
            assert_eq!(answer.status, 400, "{path} {shown:?}: {}", answer.text());
            assert!(answer.json().get("error").is_some(), "{path}");
        }
    }
    assert_eq!(desk.script.counts().submitted, 0);
    desk.chat("Hello", 1);
}

#[test]
fn mutated_bodies_never_break_anything() {
    let desk = Desk::new();
    let tools = with(
        "tools",
        json!([{ "type": "function", "function": { "name": "f" } }]),
    );
    let texts = json!({ "model": "tiny", "input": ["a", "b"], "encoding_format": "float" });
    let mut all = writers("Hello", 1);
    all.extend([
        (CHAT, tools),
        ("/v1/embeddings", texts.clone()),
        ("/api/embed", texts),
    ]);
    for i in 0..1_200_usize {
        let (path, whole) = &all[i % all.len()];
        let whole = whole.to_string().into_bytes();
        let mut body = whole.clone();
        // A fixed walk over places and values.
        let place = (i * 7_919) % body.len();
        match i % 3 {
            0 => body[place] = (i * 31 % 256) as u8,
            1 => body.truncate(place),
            _ => drop(body.drain(place..(place + 5).min(whole.len()))),
        }
        let answer = send_raw(desk.address, &request("POST", path, "", &body)).answer();
        let known = [200, 400, 404];
        let says = answer.text();
        assert!(known.contains(&answer.status), "{i} {path}: {says}");
    }
    desk.wait_inside(0);
    desk.chat("Hello", 1);
}

#[test]
fn too_much_is_refused_before_it_is_read() {
    let desk = Desk::new();
    let head = |headers: &str| {
        format!("POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n")
    };
    let check = |bytes: &[u8], want: u16| {
        let answer = send_raw(desk.address, bytes).answer();
        assert_eq!(answer.status, want, "{}", answer.text());
    };
    // Said to be too large, and turned out to be.
    check(head("Content-Length: 100000000000\r\n").as_bytes(), 413);
    let chunk = [
        b"1000000\r\n".to_vec(),
        vec![b' '; 0x100_0000],
        b"\r\n0\r\n\r\n".to_vec(),
    ]
    .concat();
    let head_chunked = head("Transfer-Encoding: chunked\r\n");
    check(&[head_chunked.as_bytes(), &chunk].concat(), 413);
    // Too many headers, and too long ones.
    let many: String = (0..200).map(|i| format!("X-{i}: a\r\n")).collect();
    check(head(&many).as_bytes(), 431);
    let long = format!("X-Long: {}\r\n", "a".repeat(100_000));
    check(head(&long).as_bytes(), 431);
    // No HTTP at all.
    check(b"GARBAGE\r\n\r\n", 400);
    check(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400);
    desk.chat("Hello", 1);
}

#[test]
fn paths_lead_nowhere_else() {
    let desk = Desk::new();
    let check = |method: &str, path: &str, want: u16| {
        let answer = send_raw(desk.address, &request(method, path, "", b"")).answer();
        assert_eq!(answer.status, want, "{method} {path}: {}", answer.text());
        assert!(!answer.text().contains("root:"), "{path}");
    };
    for path in [
        "/../../etc/passwd",
        "/v1/models/../../../etc/passwd",
        "/v1/models/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/v1/models/%00",
        "/v1/models/%ff",
        "//v1/models",
        "/v1/models/",
        "/V1/MODELS",
        "/nowhere",
    ] {
        let found = send_raw(desk.address, &request("GET", path, "", b"")).answer();
        assert!(
            [400, 404].contains(&found.status),
            "{path}: {}",
            found.text()
        );
        assert!(!found.text().contains("root:"), "{path}");
        assert!(
            found.json()["error"].is_object(),
            "{path}: {}",
            found.text()
        );
    }
    check("GET", CHAT, 405);
    check("DELETE", "/v1/models", 405);
    check("POST", "/api/pull", 400);
    check("GET", "/api/nowhere", 404);
    for name in ["../Tiny.gguf", "/etc/passwd", "..", "tiny/../tiny", "\u{0}"] {
        let answer = desk.post(CHAT, &with("model", json!(name))).answer();
        assert_eq!(answer.status, 404, "{name:?}: {}", answer.text());
    }
}

#[test]
fn a_client_that_never_finishes_its_request_holds_nobody_up() {
    let desk = Desk::with(Plan {
        slots: 1,
        queue: 0,
        ..Plan::default()
    });
    let head = format!("POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n{{");
    let unfinished = ["", "POST ", "POST / HTTP/1.1\r\nHost: loc", &head];
    let held: Vec<TcpStream> = (0..80)
        .map(|i| {
            let mut stream = TcpStream::connect(desk.address).unwrap();
            stream
                .write_all(unfinished[i % unfinished.len()].as_bytes())
                .unwrap();
            stream
        })
        .collect();
    // None of them has taken the one place.
    desk.chat("Hello", 2);
    drop(held);
    desk.wait_inside(0);
}

/// What a client hears that stops in the middle of this and waits.
#[track_caller]
fn check_slow(desk: &Desk, begun: &str, expected: &str) {
    let mut stream = TcpStream::connect(desk.address).unwrap();
    stream.set_read_timeout(Some(HANG_LIMIT)).unwrap();
    stream.write_all(begun.as_bytes()).unwrap();
    let mut heard = String::new();
    // To the end: the server hangs up.
    stream.read_to_string(&mut heard).unwrap();
    assert!(heard.starts_with(expected), "{begun:?}: {heard:?}");
}

#[test]
fn a_slow_head_and_a_slow_body_are_hung_up_on() {
    let desk = Desk::with(Plan {
        patience: Patience {
            head: Duration::from_millis(300),
            body: Duration::from_millis(300),
        },
        ..Plan::default()
    });
    let body = format!("POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n{{");
    check_slow(&desk, "GET /v1/models HTTP/1.1\r\nHost: local", "");
    check_slow(&desk, "GET /v1/mod", "");
    check_slow(&desk, &body, "HTTP/1.1 408 ");
    // A connection that was used is not kept for one that says nothing.
    check_slow(
        &desk,
        "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "HTTP/1.1 200 ",
    );
    desk.wait_inside(0);
    desk.chat("Hello", 2);
}

#[test]
fn what_does_not_fit_is_said_with_both_numbers() {
    let desk = Desk::with(Plan {
        context: 512,
        ..Plan::default()
    });
    let long = "word ".repeat(1_000);
    for (path, body) in [
        (CHAT, chat(&long, 8)),
        ("/v1/completions", json!({ "prompt": long })),
        (
            "/v1/messages",
            json!({ "max_tokens": 8, "messages": [{ "role": "user", "content": long }] }),
        ),
        ("/api/generate", json!({ "model": "tiny", "prompt": long })),
        ("/generate", json!({ "prompt": long })),
    ] {
        let answer = desk.post(path, &body).answer();
        assert_eq!(answer.status, 400, "{path}");
        assert!(
            answer.text().contains("the context holds 512"),
            "{path}: {}",
            answer.text()
        );
    }
    let refused = desk.post(CHAT, &chat(&long, 8)).answer().json();
    assert_eq!(refused["error"]["code"], json!("context_length_exceeded"));
    assert_eq!(desk.script.counts().submitted, 0);
    // What fits is written to the end of the context, and says so; the counts are true.
    let answer = desk.post(CHAT, &chat("Hello", 10_000)).answer().json();
    assert_eq!(answer["choices"][0]["finish_reason"], json!("length"));
    let usage = &answer["usage"];
    let count = |name: &str| usage[name].as_u64().unwrap();
    assert_eq!(
        count("total_tokens"),
        count("prompt_tokens") + count("completion_tokens")
    );
    assert!((512..=513).contains(&count("total_tokens")), "{usage}");
}
