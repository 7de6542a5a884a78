//! The whole product on real models, with what ships.

use std::path::{Path, PathBuf};
use std::time::Duration;

use candor_app::wire::{MessageState, ReplayEvent, ReplayOutcome, TurnEvent};
use candor_app::{App, Attached, compose};

use crate::desk::{Desk, ask, end_of, follow, until};

/// The files that `models/get-models` fetches.
const MODELS: [&str; 2] = [
    "smollm2-135m-instruct-q4_1.gguf",
    "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
];

/// A conversation and how both models begin the reply when they take the best token, as llama.cpp
/// says it in this project's golden data.
const SYSTEM: &str = "You are a helpful assistant.";
const QUESTION: &str = "Explain in one sentence why the sky is blue.";
const ANSWER: &str = "The sky is blue because";

pub(crate) fn model(name: &str) -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "a test is its own root")]
    let folder = std::env::var_os("CANDOR_TEST_MODELS").map(PathBuf::from);
    let from_target = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/models");
    let path = folder.unwrap_or_else(from_target).join(name);
    if !path.exists() {
        eprintln!("NOT RUN: {name} is neither in CANDOR_TEST_MODELS nor in target/models");
        return None;
    }
    Some(path)
}

#[test]
fn real_models_answer_and_stop() {
    for name in MODELS {
        let Some(path) = model(name) else { continue };
        let desk = Desk::new();
        let mut config = desk.config();
        (config.backends, config.threads) = (compose::backends(), 2);
        let app = desk.open_with(config);
        let entry = app.add_model(&path).unwrap();
        app.load_model(&entry.id).unwrap();
        until("the model is loaded", || {
            std::thread::sleep(Duration::from_millis(20));
            app.status().model.is_some()
        });
        let mut settings = app.settings();
        settings.system_prompt = String::from(SYSTEM);
        settings.sampling.max_tokens = 24;
        app.save_settings(settings.clone()).unwrap();
        let (sent, end) = ask(&app, None, QUESTION);
        assert!(
            end.message.text.starts_with(ANSWER),
            "{name}: {}",
            end.message.text
        );
        let status = app.status();
        assert_eq!(status.model.unwrap().template_fallback, None);

        // The second question reuses what is in the context, and its reply is stopped.
        settings.sampling.max_tokens = 2_000;
        app.save_settings(settings).unwrap();
        let next = app
            .send(Some(sent.conversation.id), "Tell me a long story.")
            .unwrap();
        let batches = follow(&app, next.turn, 0);
        let has_text =
            |event: &TurnEvent| matches!(event, TurnEvent::Text { text, .. } if !text.is_empty());
        while !batches.recv().unwrap().events.iter().any(has_text) {}
        app.stop(next.turn);
        let end = end_of(&app, next.turn);
        assert_eq!(end.message.state, MessageState::Stopped, "{name}");
        let record = end.message.record.unwrap();
        assert!(
            record.cached_tokens > 0 && record.generated_tokens < 1_000,
            "{record:?}"
        );
        assert!(!end.message.text.is_empty(), "{name}");
    }
}

/// Replays a reply and waits for what comes out.
fn replayed(app: &App, message: i64) -> ReplayOutcome {
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = move |event| match sender.send(event) {
        Ok(()) => Attached::Stay,
        Err(_) => Attached::Gone,
    };
    app.replay(message, Box::new(reader)).unwrap();
    let mut last = None;
    while let Ok(event) = receiver.recv() {
        last = Some(event);
    }
    match last {
        Some(ReplayEvent::Ended { outcome }) => outcome,
        other => panic!("a replay has an end: {other:?}"),
    }
}

#[test]
fn a_seed_gives_the_same_reply_again_whatever_is_still_in_memory() {
    let Some(path) = model(MODELS[0]) else { return };
    let desk = Desk::new();
    let mut config = desk.config();
    (config.backends, config.threads) = (compose::backends(), 2);
    let app = desk.open_with(config);
    let entry = app.add_model(&path).unwrap();
    app.load_model(&entry.id).unwrap();
    until("the model is loaded", || {
        std::thread::sleep(Duration::from_millis(20));
        app.status().model.is_some()
    });
    let mut settings = app.settings();
    settings.sampling.max_tokens = 20;
    settings.sampling.temperature = 1.0;
    settings.sampling.seed = None;
    app.save_settings(settings).unwrap();
    let (sent, first) = ask(&app, None, QUESTION);
    let conversation = Some(sent.conversation.id);
    let (_, second) = ask(&app, conversation, "And why is it dark at night?");
    let (_, third) = ask(&app, None, "Name three rivers.");
    let cached = second
        .message
        .record
        .as_ref()
        .map(|record| record.cached_tokens);
    assert!(cached > Some(0), "a prefix was reused");
    // Each is read from another place: a reused beginning, or none.
    for message in [
        &third.message,
        &first.message,
        &second.message,
        &second.message,
    ] {
        let want = ReplayOutcome::Same {
            tokens: message
                .record
                .as_ref()
                .map_or(20, |record| record.generated_tokens),
            note: None,
        };
        assert_eq!(replayed(&app, message.id), want, "{}", message.text);
    }
}
