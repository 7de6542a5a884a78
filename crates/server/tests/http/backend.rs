//! What computes is said, with its reason, wherever an answer is given.

use std::fs;

use candor_app::headless::{BackendWish, Choice, ChosenCards, CudaDevice, Mode, Unavailable};
use candor_testkit::scripted::Script;
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
                reason: text("it failed with code 999"),
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
    script.on_a_card();
    script.wrong_from(wrong_from);
    Desk::with(Plan {
        choice: Choice {
            wish,
            card: Ok(card()),
        },
        card: Some(script),
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
