//! What computes is said, with its reason, wherever an answer is given.

use candor_app::headless::{BackendWish, Choice, CudaDevice, Unavailable};
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
        let script = Script::new(LETTERS);
        script.on_a_card();
        script.wrong_from(is_wrong.then_some(200));
        let desk = Desk::with(Plan {
            choice: Choice {
                wish: BackendWish::Auto,
                card: Ok(card()),
            },
            card: Some(script),
            ..Plan::default()
        });
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
    }
}
