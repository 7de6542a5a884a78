//! A client that leaves stops its own work and nobody else's. What is asserted is how many forwards
//! were committed, never that a flag was set; the run that nobody leaves comes first.

use std::process::{Command, Stdio};

use candor_testkit::scripted::{Fault, LoadFault};
use serde_json::{Value, json};

use super::client::{GLANCE, Sent};
use super::desk::{Desk, Plan, chat, chat_stream, wait_until};

/// Every path that writes, in the waiting and in the streaming way.
pub(crate) fn writers(question: &str, max_tokens: usize) -> Vec<(&'static str, Value)> {
    let messages = json!([{ "role": "user", "content": question }]);
    let body = |rest: Value| {
        let mut body = json!({ "model": "tiny", "temperature": 0, "max_tokens": max_tokens });
        for (name, value) in rest.as_object().unwrap() {
            body[name] = value.clone();
        }
        body
    };
    let options = json!({ "temperature": 0, "num_predict": max_tokens });
    let mut all = Vec::new();
    for streams in [false, true] {
        all.extend([
            ("/v1/chat/completions", body(json!({ "messages": messages, "stream": streams }))),
            ("/v1/completions", body(json!({ "prompt": question, "stream": streams }))),
            (
                "/v1/responses",
                json!({
                    "model": "tiny", "input": question, "temperature": 0,
                    "max_output_tokens": max_tokens, "stream": streams,
                }),
            ),
            ("/v1/messages", body(json!({ "messages": messages, "stream": streams }))),
            ("/generate", body(json!({ "prompt": question, "stream": streams }))),
            (
                "/api/chat",
                json!({ "model": "tiny", "messages": messages, "stream": streams, "options": options }),
            ),
            (
                "/api/generate",
                json!({ "model": "tiny", "prompt": question, "stream": streams, "options": options }),
            ),
        ]);
    }
    all
}

/// Nothing is computed any more: a question asked now is answered, and only that was added. Where
/// what stands still was not ended, nobody is answered.
#[track_caller]
fn stands_still(desk: &Desk, committed: usize) {
    desk.wait_inside(0);
    assert_eq!(desk.script.counts().committed, committed);
    desk.chat("Then", 1);
    assert_eq!(desk.script.counts().committed, committed + 1);
}

#[test]
fn a_client_that_leaves_stops_every_path_at_that_very_token() {
    const TOKENS: usize = 64;
    const LEAVES_AFTER: usize = 8;
    for (path, body) in writers("Hello", TOKENS) {
        let control = Desk::new();
        let answer = control.post(path, &body).answer();
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(control.script.counts().committed, TOKENS, "{path}");
        assert_eq!(control.metric("candor_abandoned_total"), 0, "{path}");

        let desk = Desk::new();
        desk.script.at_forward(LEAVES_AFTER, Fault::Stall);
        let sent = desk.post(path, &body);
        desk.script.wait_until_stalled();
        sent.leave();
        stands_still(&desk, LEAVES_AFTER);
        assert_eq!(desk.metric("candor_abandoned_total"), 1, "{path}");
        // The context is as good as before.
        assert_eq!(
            desk.chat("Again", 12),
            Desk::new().chat("Again", 12),
            "{path}"
        );
    }
}

#[test]
fn a_stream_that_is_left_has_sent_a_beginning_of_the_whole() {
    let whole = Desk::new()
        .post("/v1/chat/completions", &chat_stream("Hello", 40))
        .answer();
    let text = |events: &[Value]| -> String {
        let deltas = events
            .iter()
            .map(|event| &event["choices"][0]["delta"]["content"]);
        deltas.filter_map(Value::as_str).collect()
    };
    let whole = text(&whole.events());
    let desk = Desk::new();
    desk.script.at_forward(10, Fault::Stall);
    let mut sent = desk.post("/v1/chat/completions", &chat_stream("Hello", 40));
    desk.script.wait_until_stalled();
    let beginning: String = whole.chars().take(10).collect();
    let last = beginning.chars().last().unwrap();
    // Each token of this model is a letter.
    let mut seen = String::new();
    while !seen.ends_with(&beginning) {
        let more = sent.wait_for(&format!("\"content\":\"{last}"));
        let data = more.lines().filter_map(|line| line.strip_prefix("data: "));
        let events: Vec<Value> = data
            .filter_map(|data| serde_json::from_str(data).ok())
            .collect();
        seen.push_str(&text(&events));
    }
    sent.leave();
    stands_still(&desk, 10);
    assert!(whole.starts_with(&seen), "{whole:?} {seen:?}");
}

/// What is sent leaves while each chunk is read of a prompt that has at least four.
fn check_leaving_a_prompt(path: &str, body: &Value, written: usize) {
    let control = Desk::new();
    let answer = control.post(path, body).answer();
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    let chunks = control.script.counts().committed - written;
    assert!(chunks >= 4, "{path}: {chunks}");
    for leaves_at in 0..chunks {
        let desk = Desk::new();
        desk.script.at_forward(leaves_at, Fault::Stall);
        let sent = desk.post(path, body);
        desk.script.wait_until_stalled();
        sent.leave();
        stands_still(&desk, leaves_at);
        assert_eq!(desk.metric("candor_abandoned_total"), 1, "{path}");
    }
}

#[test]
fn a_client_that_leaves_while_its_prompt_is_read_has_no_further_chunk_read() {
    // Some five chunks of 512 tokens.
    let question = "a word ".repeat(900);
    for (path, body) in writers(&question, 8) {
        check_leaving_a_prompt(path, &body, 7);
    }
}

#[test]
fn a_client_that_leaves_while_its_text_is_embedded_has_no_further_chunk_read() {
    let text = "a word ".repeat(900);
    for path in ["/v1/embeddings", "/api/embed"] {
        let body = json!({ "model": "tiny", "input": text });
        check_leaving_a_prompt(path, &body, 0);
    }
}

#[test]
fn a_queued_request_that_left_is_never_started() {
    let desk = Desk::with(Plan {
        slots: 1,
        ..Plan::default()
    });
    desk.script.at_forward(3, Fault::Stall);
    let first = desk.post("/v1/chat/completions", &chat("Hello", 6));
    desk.script.wait_until_stalled();
    let queued: Vec<Sent> = writers("Hello", 6)
        .iter()
        .map(|(path, body)| desk.post(path, body))
        .collect();
    desk.wait_inside(1 + queued.len() as u64);
    queued.into_iter().for_each(Sent::leave);
    desk.wait_inside(1);
    desk.script.release();
    assert_eq!(first.answer().status, 200);
    stands_still(&desk, 6);
    assert_eq!(desk.script.counts().submitted, 6 + 1);
}

#[test]
fn one_that_leaves_touches_no_other() {
    // So many that the other one comes to the engine before the end, however slow the machine is.
    const TOKENS: usize = 1_500;
    let alone = Desk::new().chat("Stay", TOKENS);
    for streams in [false, true] {
        let desk = Desk::new();
        desk.script.at_forward(0, Fault::Stall);
        let stays = desk.post("/v1/chat/completions", &chat("Stay", TOKENS));
        desk.script.wait_until_stalled();
        let mut body = chat("Leave", 30);
        body["stream"] = json!(streams);
        let leaves = desk.post("/v1/chat/completions", &body);
        // Both are in the forward that stands still when one of them leaves.
        while !computes_two(&desk) {
            let next = desk.script.counts().submitted;
            desk.script.at_forward(next, Fault::Stall);
            desk.script.release();
            desk.script.wait_until_stalled();
            std::thread::sleep(GLANCE);
        }
        leaves.leave();
        desk.wait_inside(1);
        // The other one needs this forward; the next is for it alone.
        let forwards = desk.script.counts().submitted;
        desk.script.release();
        let answer = stays.answer().json();
        assert_eq!(answer["choices"][0]["message"]["content"], json!(alone));
        let later = &desk.script.batches()[forwards..];
        assert!(later.iter().all(|batch| batch.rows.len() == 1));
        desk.wait_inside(0);
        assert_eq!(desk.metric("candor_abandoned_total"), 1);
    }
}

/// Whether the last forward has rows of two requests.
fn computes_two(desk: &Desk) -> bool {
    let batches = desk.script.batches();
    let rows = &batches.last().unwrap().rows;
    rows.iter().any(|row| row.slot != rows[0].slot)
}

#[test]
fn a_client_that_is_killed_stops_its_work_as_one_that_leaves() {
    if Command::new("curl").arg("--version").output().is_err() {
        println!("NOT RUN: the client that is killed: there is no curl");
        return;
    }
    const TOKENS: usize = 64;
    const KILLED_AFTER: usize = 8;
    for body in [chat("Hello", TOKENS), chat_stream("Hello", TOKENS)] {
        let desk = Desk::new();
        desk.script.at_forward(KILLED_AFTER, Fault::Stall);
        let url = format!("http://{}/v1/chat/completions", desk.address);
        let mut curl = Command::new("curl")
            .args(["--silent", "--no-buffer", &url, "--data", &body.to_string()])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        desk.script.wait_until_stalled();
        // SIGKILL: it says nothing any more, the system ends its connection.
        curl.kill().unwrap();
        curl.wait().unwrap();
        stands_still(&desk, KILLED_AFTER);
        assert_eq!(desk.metric("candor_abandoned_total"), 1, "{body}");
    }
}

#[test]
fn fifty_clients_that_all_leave_cost_nothing() {
    let desk = Desk::with(Plan {
        slots: 4,
        ..Plan::default()
    });
    // They leave one after the other, and until then whoever is left would be written on.
    for forward in 0..200 {
        desk.script.at_forward(forward, Fault::Stall);
    }
    let all: Vec<Sent> = (0..50)
        .map(|i| {
            let mut body = chat(&format!("Question {i}"), 100);
            body["stream"] = json!(i % 2 == 0);
            desk.post("/v1/chat/completions", &body)
        })
        .collect();
    desk.wait_inside(50);
    all.into_iter().for_each(Sent::leave);
    desk.wait_inside(0);
    assert_eq!(desk.script.counts().committed, 0);
    assert_eq!(desk.metric("candor_abandoned_total"), 50);
    assert!(
        desk.script.counts().submitted <= 50,
        "{:?}",
        desk.script.counts()
    );
}

#[test]
fn a_server_that_ends_stops_what_it_writes() {
    let mut desk = Desk::new();
    desk.script.at_forward(5, Fault::Stall);
    let _sent = desk.post("/v1/chat/completions", &chat_stream("Hello", 100));
    desk.script.wait_until_stalled();
    desk.stop();
    let script = desk.script.clone();
    // It goes on only because it was cancelled; nobody releases it.
    wait_until("the engine stands still", || script.counts().submitted == 6);
    desk.source.shutdown();
    assert_eq!(script.counts().committed, 5);
}

#[test]
fn a_load_ends_with_the_last_who_waits_for_it() {
    let unloaded = || {
        Desk::with(Plan {
            loads: false,
            ..Plan::default()
        })
    };
    // Both leave.
    let desk = unloaded();
    desk.script.at_load_report(1, LoadFault::Stall);
    let both = ["One", "Two"].map(|text| desk.post("/v1/chat/completions", &chat(text, 4)));
    desk.script.wait_until_stalled();
    desk.wait_inside(2);
    both.into_iter().for_each(Sent::leave);
    wait_until("the load has ended", || {
        desk.script.counts().weights_alive == 0
    });
    assert_eq!(desk.script.counts().submitted, 0);
    desk.wait_inside(0);
    // A new question works at once.
    let reply = desk.chat("Again", 8);
    assert_eq!(reply, Desk::new().chat("Again", 8));

    // One leaves, and the other is answered.
    let desk = unloaded();
    desk.script.at_load_report(1, LoadFault::Stall);
    let leaves = desk.post("/v1/chat/completions", &chat("Leave", 8));
    desk.script.wait_until_stalled();
    let stays = desk.post("/v1/chat/completions", &chat("Again", 8));
    desk.wait_inside(2);
    leaves.leave();
    desk.wait_inside(1);
    desk.script.release();
    let answer = stays.answer().json();
    assert_eq!(answer["choices"][0]["message"]["content"], json!(reply));
    assert_eq!(desk.script.counts().sessions_opened, 1);
}
