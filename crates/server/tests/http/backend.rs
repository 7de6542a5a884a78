//! What computes is said, with its reason, wherever an answer is given.

use std::fs;

use candor_app::headless::{
    BackendWish, Choice, ChosenCards, CudaDevice, DriverFault, Mode, Unavailable,
};
use candor_backend::SessionError;
use candor_testkit::scripted::{Fault, LoadFault, Script};
use serde_json::json;

use super::desk::{Desk, LETTERS, Plan, chat};

fn desk(wish: BackendWish, card: Result<CudaDevice, Unavailable>) -> Desk {
    Desk::with(Plan {
        choice: Choice { wish, card },
        ..Plan::default()
    })
}

#[test]
fn without_a_card_each_reason_is_said_in_its_own_words() {
    let text = String::from;
    let cases = [
        (BackendWish::Auto, Unavailable::NoDriver),
        (
            BackendWish::Auto,
            Unavailable::DriverTooOld {
                found: text("470.1"),
                needed: text("525"),
            },
        ),
        (
            BackendWish::Auto,
            Unavailable::DriverBroken {
                reason: DriverFault::Failed {
                    words: None,
                    call: text("cuInit"),
                    code: 999,
                },
            },
        ),
        (
            BackendWish::Auto,
            Unavailable::DriverBroken {
                reason: DriverFault::Failed {
                    words: Some("its library and its module are of different versions: "),
                    call: text("cuInit"),
                    code: 803,
                },
            },
        ),
        (
            BackendWish::Auto,
            Unavailable::DriverBroken {
                reason: DriverFault::Late { seconds: 8 },
            },
        ),
        (
            BackendWish::Auto,
            Unavailable::DriverBroken {
                reason: DriverFault::Crashed {
                    end: text("signal 11"),
                },
            },
        ),
        (BackendWish::Auto, Unavailable::NoDevice),
        (BackendWish::Cpu, Unavailable::ChosenByUser),
    ];
    let mut said = Vec::new();
    for (wish, why) in cases {
        let desk = desk(wish, Err(why.clone()));
        let health = desk.get("/health").json();
        let backend = health["candor"]["backend"].clone();
        assert_eq!(backend["served"], json!("cpu"), "{why:?}");
        assert_eq!(backend["f2"]["verdict"], json!("not_needed"), "{why:?}");
        let answer = desk
            .post("/v1/chat/completions", &chat("Hello", 1))
            .answer();
        assert_eq!(answer.json()["candor"]["backend"], backend, "{why:?}");
        let reason = backend["reason"].as_str().unwrap().to_owned();
        assert!(
            !reason.is_empty() && !said.contains(&reason),
            "{why:?}: {reason}"
        );
        said.push(reason);
    }
}

/// A server with a card that is right, or wrong from a position on.
fn with_card(wish: BackendWish, wrong_from: Option<usize>, plan: Plan) -> Desk {
    let script = Script::new(LETTERS);
    script.wrong_from(wrong_from);
    on_card(wish, &script, plan)
}

/// A server with a card that does what a script says.
fn on_card(wish: BackendWish, script: &Script, plan: Plan) -> Desk {
    script.on_a_card();
    Desk::with(Plan {
        choice: Choice {
            wish,
            card: Ok(card()),
        },
        card: Some(script.clone()),
        ..plan
    })
}

fn card() -> CudaDevice {
    CudaDevice {
        ordinal: 0,
        name: String::from("Scripted card"),
        capability: (8, 9),
        total_bytes: 8 << 30,
        free_bytes: 8 << 30,
        driver_version: 12_040,
    }
}

#[test]
fn a_card_is_named_only_where_it_computes() {
    for (is_wrong, served, verdict) in [(false, "gpu", "accepted"), (true, "cpu", "rejected")] {
        let wrong_from = is_wrong.then_some(200);
        let desk = with_card(BackendWish::Auto, wrong_from, Plan::default());
        for path in ["/v1/models", "/health", "/api/version", "/nowhere"] {
            let answer = desk.get(path);
            assert_eq!(answer.header("x-candor-backend"), Some(served), "{path}");
            assert_eq!(answer.header("x-candor-verdict"), Some(verdict), "{path}");
        }
        let answer = desk
            .post("/v1/chat/completions", &chat("Hello", 2))
            .answer()
            .json();
        let backend = &answer["candor"]["backend"];
        assert_eq!(backend["served"], json!(served));
        assert_eq!(backend["f2"]["verdict"], json!(verdict));
        assert!(!backend["reason"].as_str().unwrap().is_empty());
        // What was seen goes with it, also of a card that does not compute.
        let f2 = &backend["f2"];
        assert_eq!(f2["date"], json!("2026-01-01"));
        assert_eq!(f2["positions"], json!(289));
        assert_eq!(f2["min_cosine"].as_f64().unwrap() > 0.999, !is_wrong);
        assert_eq!(f2["first_bad"]["position"].is_u64(), is_wrong, "{f2}");
        assert!(backend["memory"]["needed_bytes"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_card_is_judged_when_the_command_line_says_and_else_when_the_window_does() {
    let settings = tempfile::tempdir().unwrap();
    let file = settings.path().join("settings.json");
    fs::write(&file, r#"{"gpuCheck": "every-prompt"}"#).unwrap();
    for (check, mode) in [
        (None, "every-prompt"),
        (Some(Mode::FirstPrompt), "first-prompt"),
        (Some(Mode::Probe), "probe"),
    ] {
        let plan = Plan {
            check,
            chosen: ChosenCards::read(&file),
            ..Plan::default()
        };
        let desk = with_card(BackendWish::Auto, None, plan);
        let answer = desk.post("/v1/chat/completions", &chat("Hello", 2));
        let answer = answer.answer().json();
        let backend = &answer["candor"]["backend"];
        assert_eq!(backend["f2"]["mode"], json!(mode), "{backend}");
        assert_eq!(backend["f2"]["verdict"], json!("accepted"));
    }
}

#[test]
fn a_card_that_was_demanded_and_refused_is_no_reason_to_ask_again() {
    let plan = Plan {
        check: Some(Mode::FirstPrompt),
        ..Plan::default()
    };
    let desk = with_card(BackendWish::Gpu, Some(1), plan);
    let asked = desk.post("/v1/chat/completions", &chat("Hello", 2));
    let answer = asked.answer();
    assert_eq!(answer.status, 500, "{}", answer.text());
    assert_eq!(answer.header("retry-after"), None);
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert_eq!(answer.json()["error"]["code"], json!("model_refused"));
}

#[test]
fn a_card_without_room_is_passed_over_and_the_answer_says_so() {
    let script = Script::new(LETTERS);
    script.at_load_report(0, LoadFault::OutOfMemory);
    let desk = on_card(BackendWish::Auto, &script, Plan::default());
    let asked = desk.post("/v1/chat/completions", &chat("Hello", 2));
    let answer = asked.answer();
    assert_eq!(answer.header("x-candor-backend"), Some("cpu"));
    let json = answer.json();
    let backend = &json["candor"]["backend"];
    assert_eq!(backend["served"], json!("cpu"));
    let reason = backend["reason"].as_str().unwrap();
    assert!(reason.contains("on the card"), "{reason}");
    assert_eq!(script.counts().submitted, 0);
}

#[test]
fn a_card_that_breaks_in_a_reply_leaves_both_in_the_answer() {
    const BREAKS_AFTER: usize = 5;
    let alone = Desk::new().chat("Hello", 12);
    let paths = [
        ("/v1/chat/completions", "/choices/0/message/content"),
        ("/v1/messages", "/content/0/text"),
        ("/api/chat", "/message/content"),
    ];
    for (path, words) in paths {
        let script = Script::new(LETTERS);
        let desk = on_card(BackendWish::Auto, &script, Plan::default());
        let ready = desk.get("/health");
        assert_eq!(ready.header("x-candor-backend"), Some("gpu"), "{path}");
        let broken = SessionError::DeviceLost {
            reason: String::from("planned"),
        };
        let next = script.counts().submitted;
        script.at_forward(next + BREAKS_AFTER, Fault::Error(broken));
        let mut body = chat("Hello", 12);
        body["options"] = json!({ "temperature": 0, "num_predict": 12 });
        body["stream"] = json!(false);
        let json = desk.post(path, &body).answer().json();
        assert_eq!(json.pointer(words), Some(&json!(alone)), "{path}: {json}");
        let backend = &json["candor"]["backend"];
        // What computed the end, what computed the beginning and by which proof, and why.
        assert_eq!(backend["served"], json!("cpu"), "{path}: {backend}");
        assert_eq!(backend["f2"]["verdict"], json!("not_needed"), "{path}");
        let moved = &backend["moved"];
        let from = &moved["from"];
        assert_eq!(from["served"], json!("gpu"), "{path}: {backend}");
        assert_eq!(from["device"], json!("Scripted card"), "{path}");
        assert_eq!(from["f2"]["verdict"], json!("accepted"), "{path}");
        assert_eq!(from["f2"]["positions"], json!(289), "{path}");
        assert_eq!(moved["after_tokens"], json!(BREAKS_AFTER), "{path}");
        let reason = moved["reason"].as_str().unwrap();
        assert!(reason.contains("planned"), "{path}: {reason}");
        let next = desk.get("/health");
        assert_eq!(next.header("x-candor-backend"), Some("cpu"), "{path}");
    }
}
