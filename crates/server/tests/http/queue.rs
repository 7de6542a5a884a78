//! Many clients: none is lost, none is mixed up, none waits for a slow one, and the queue has an end.

use candor_testkit::scripted::Fault;
use serde_json::json;

use super::cancel::writers;
use super::client::Sent;
use super::desk::{Desk, Plan, chat, chat_stream, wait_until};

#[test]
fn each_of_many_gets_its_own_reply() {
    let questions: Vec<String> = (0..24).map(|i| format!("Question {i}")).collect();
    let control = Desk::new();
    let alone: Vec<String> = questions
        .iter()
        .map(|text| control.chat(text, 20))
        .collect();
    let desk = Desk::with(Plan {
        slots: 4,
        ..Plan::default()
    });
    let sent: Vec<Sent> = questions
        .iter()
        .map(|text| desk.post("/v1/chat/completions", &chat(text, 20)))
        .collect();
    for (sent, want) in sent.into_iter().zip(&alone) {
        let answer = sent.answer();
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(
            answer.json()["choices"][0]["message"]["content"],
            json!(want)
        );
    }
    assert_eq!(desk.metric("candor_abandoned_total"), 0);
}

#[test]
fn a_full_queue_says_when_to_come_back() {
    let desk = Desk::with(Plan {
        slots: 1,
        queue: 2,
        ..Plan::default()
    });
    desk.script.at_forward(0, Fault::Stall);
    let inside: Vec<Sent> = (0..3)
        .map(|_| desk.post("/v1/chat/completions", &chat("Hello", 2)))
        .collect();
    desk.script.wait_until_stalled();
    desk.wait_inside(3);
    let paths = [
        ("/v1/chat/completions", chat("Hello", 2), "/error/code"),
        (
            "/v1/messages",
            json!({ "max_tokens": 2, "messages": [{ "role": "user", "content": "a" }] }),
            "/error/type",
        ),
        (
            "/api/generate",
            json!({ "model": "tiny", "prompt": "a" }),
            "/error",
        ),
        ("/tokenize", json!({ "text": "a" }), "/error/code"),
    ];
    for (path, body, says) in paths {
        let answer = desk.post(path, &body).answer();
        assert_eq!(answer.status, 429, "{path}");
        assert_eq!(answer.header("retry-after"), Some("2"), "{path}");
        assert!(
            answer.json().pointer(says).is_some(),
            "{path}: {}",
            answer.text()
        );
    }
    desk.script.release();
    for sent in inside {
        assert_eq!(sent.answer().status, 200);
    }
    // More replies to one request than there are places never fit, however long one waits.
    let mut body = chat("Hello", 2);
    body["n"] = json!(4);
    let answer = desk.post("/v1/chat/completions", &body).answer();
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert_eq!(answer.json()["error"]["param"], json!("n"));
    assert_eq!(answer.header("retry-after"), None);
    desk.wait_inside(0);
}

#[test]
fn a_slow_reader_holds_nobody_up() {
    /// More than what a connection on this machine holds by itself while nobody reads: 4 MiB on the
    /// side that writes, and what a reader has who never read.
    const HELD_BYTES_MAX: usize = 5 << 20;
    const TOKENS: usize = 3_900;
    let desk = Desk::new();
    // Nobody reads this one, and every token comes with many others.
    let mut body = chat_stream("Slow", TOKENS);
    body["logprobs"] = json!(true);
    body["top_logprobs"] = json!(20);
    let slow = desk.post("/v1/chat/completions", &body);
    for i in 0..4 {
        assert_eq!(desk.chat(&format!("Fast {i}"), 50).chars().count(), 50);
    }
    // The engine has written it to its end, and has waited for nobody.
    wait_until("all is written", || {
        desk.script.counts().submitted >= TOKENS
    });
    assert_eq!(desk.inside(), 1, "it is not all on its way yet");
    assert_eq!(desk.chat("Fast", 50).chars().count(), 50);
    // What was written for it is all there once it reads.
    let answer = slow.answer();
    assert!(
        answer.text().len() > HELD_BYTES_MAX,
        "{}",
        answer.text().len()
    );
    let text: String = answer
        .events()
        .iter()
        .filter_map(|event| {
            event["choices"][0]["delta"]["content"]
                .as_str()
                .map(str::to_owned)
        })
        .collect();
    assert_eq!(text.chars().count(), TOKENS);
}

#[test]
fn clients_that_read_a_byte_at_a_time_hold_nobody_up_in_any_protocol() {
    let is_stream = |body: &serde_json::Value| body["stream"] == json!(true);
    let streams = writers("Slow", 300);
    let streams = streams.iter().filter(|(_, body)| is_stream(body));
    let streams: Vec<_> = streams.collect();
    let alone = Desk::new().chat("Fast", 20);
    let desk = Desk::with(Plan {
        slots: streams.len() + 1,
        ..Plan::default()
    });
    let mut slow: Vec<(Sent, Vec<u8>)> = streams
        .iter()
        .map(|(path, body)| (desk.post(path, body), Vec::new()))
        .collect();
    // A question is answered whole between each byte and the next.
    for _ in 0..8 {
        for (sent, read) in &mut slow {
            read.push(sent.byte());
        }
        assert_eq!(desk.chat("Fast", 20), alone);
    }
    for ((path, body), (sent, read)) in streams.iter().zip(slow) {
        let answer = sent.answer_after(read);
        assert_eq!(answer.status, 200, "{path}");
        let whole = Desk::new().post(path, body).answer();
        assert_eq!(words(answer.text()), words(whole.text()), "{path}");
    }
    desk.wait_inside(0);
    assert_eq!(desk.metric("candor_abandoned_total"), 0);
}

/// All that a stream says in words, whatever its protocol.
fn words(stream: &str) -> String {
    let lines = stream.lines().map(|line| line.trim_start_matches("data: "));
    let events = lines.filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let places = [
        "/choices/0/delta/content",
        "/choices/0/text",
        "/delta/text",
        "/message/content",
        "/response",
        "/text",
        "/delta",
    ];
    let of = |event: serde_json::Value| {
        let mut found = places
            .iter()
            .filter_map(|place| event.pointer(place)?.as_str());
        found.next().unwrap_or_default().to_owned()
    };
    let all: String = events.map(of).collect();
    assert!(all.len() >= 300, "{stream}");
    all
}

#[test]
fn several_replies_to_one_request_differ_by_their_seeds_alone() {
    let desk = Desk::new();
    let ask = |count: usize, seed: u64| {
        let mut body = chat("Hello", 12);
        body["temperature"] = json!(2.0);
        body["top_p"] = json!(1.0);
        body["top_k"] = json!(0);
        body["n"] = json!(count);
        body["seed"] = json!(seed);
        let answer = desk.post("/v1/chat/completions", &body).answer().json();
        let choices = answer["choices"].as_array().unwrap().clone();
        let text = |choice: &serde_json::Value| choice["message"]["content"].to_string();
        choices.iter().map(text).collect::<Vec<_>>()
    };
    let three = ask(3, 5);
    assert_eq!(three, [ask(1, 5), ask(1, 6), ask(1, 7)].concat());
    assert_ne!(three[0], three[1]);
}
