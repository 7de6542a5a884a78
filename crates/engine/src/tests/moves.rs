//! A card that stops working in the middle of a reply.

use std::sync::atomic::{AtomicU64, Ordering};

use candor_backend::{DeviceKind, SessionError};

use super::*;
use crate::testing::{end_of, events, ids, options, prompt, text};

/// Replies that run together: length of the prompt and of the reply.
type Replies = &'static [(usize, usize)];

fn asked(replies: Replies, temperature: f32) -> Vec<GenerateOptions> {
    let asked = replies.iter().enumerate().map(|(i, (tokens, len))| {
        let mut options = options(prompt(i as u32, *tokens), *len);
        options.sampling.temperature = temperature;
        options.sampling.seed = 5 + i as u64;
        options
    });
    asked.collect()
}

/// Writes all replies at once and waits for their ends.
fn written(
    engine: &TwoDevices,
    model: &LoadedModel,
    asked: Vec<GenerateOptions>,
) -> Vec<Arc<TurnLog>> {
    let logs: Vec<_> = asked
        .into_iter()
        .map(|options| engine.generate(model, options))
        .collect();
    logs.iter().for_each(|log| drop(end_of(log)));
    logs
}

/// The replies with a card that breaks at its `at`th forward are those of one that does not.
fn check(what: &str, replies: Replies, at: usize, fault: fn() -> Fault) {
    for temperature in [0.0, 0.8] {
        let whole = TwoDevices::new();
        let model = whole.load(whole.spec(Mode::Probe, 2));
        let expected = written(&whole, &model, asked(replies, temperature));

        let engine = TwoDevices::new();
        let model = engine.load(engine.spec(Mode::Probe, 2));
        engine
            .card
            .at_forward(engine.card.counts().submitted + at, fault());
        let logs = written(&engine, &model, asked(replies, temperature));
        let mut moved = 0;
        for (log, expected) in logs.iter().zip(&expected) {
            assert_eq!(text(log), text(expected), "{what}, at {at}");
            assert_eq!(ids(log), ids(expected), "{what}, at {at}");
            let stats = stats_of(log);
            assert_eq!(stats.served.device, DeviceKind::Cpu, "{what}");
            let moves = |event: &&Event| matches!(event, Event::Moved { .. });
            let events = events(log);
            let all: Vec<&Event> = events.iter().filter(moves).collect();
            assert!(all.len() <= 1, "{what}: {all:?}");
            if let [Event::Moved { reason, served }] = all[..] {
                moved += 1;
                assert!(reason.contains("stopped working"), "{reason}");
                assert_eq!(*served, stats.served);
                let place = events
                    .iter()
                    .position(|event| matches!(event, Event::Moved { .. }));
                let before = &events[..place.unwrap()];
                let tokens = before
                    .iter()
                    .filter(|event| matches!(event, Event::Token { .. }));
                assert_eq!(served.moved_at, Some(tokens.count()), "{what}");
            }
        }
        assert!(moved > 0, "{what}, at {at}: nothing moved");
        // The state says it, the card is not asked again, and later turns stay where they are.
        let now = engine.ready();
        assert_eq!((now.id, now.device.kind), (model.id, DeviceKind::Cpu));
        assert!(matches!(
            now.passed_over[..],
            [PassedOver {
                why: WhyNot::FailedLater { .. },
                ..
            }]
        ));
        let submitted = engine.card.counts().submitted;
        assert_eq!(engine.card.counts().weights_alive, 0);
        let later = engine.generate(&now, options(prompt(9, 4), 3));
        assert_eq!(stats_of(&later).served, Served::default());
        assert_eq!(engine.card.counts().submitted, submitted);
        // Until the model is loaded again.
        let again = engine.load(engine.spec(Mode::Probe, 2));
        assert_eq!(again.device.kind, DeviceKind::Gpu);
    }
}

fn lost() -> Fault {
    Fault::Error(SessionError::DeviceLost {
        reason: String::from("the watchdog ended it"),
    })
}

#[test]
fn a_reply_goes_on_at_the_same_token_when_its_card_is_lost() {
    for at in [0, 1, 2] {
        check("while the prompt is read", &[(1_300, 8)], at, lost);
    }
    for at in [1, 4, 9] {
        check("while the reply is written", &[(20, 12)], at, lost);
    }
    check(
        "a long context is read again in chunks",
        &[(700, 6)],
        4,
        lost,
    );
    for at in [0, 1, 5] {
        check("two replies", &[(30, 9), (600, 12)], at, lost);
    }
    check("not a number", &[(20, 12)], 6, || Fault::NotANumber);
}

#[test]
fn a_reply_that_was_to_be_written_on_the_card_alone_fails_with_it() {
    type Fails = fn(&TwoDevices);
    let cases: [(Mode, Fails, TurnCode, usize); 3] = [
        (
            Mode::Probe,
            |engine| {
                engine
                    .card
                    .at_forward(engine.card.counts().submitted + 2, lost())
            },
            TurnCode::DeviceLost,
            2,
        ),
        (
            Mode::FirstPrompt,
            |engine| engine.card.wrong_from(Some(1)),
            TurnCode::DeviceRejected,
            0,
        ),
        (
            Mode::EveryPrompt,
            |engine| engine.reference.at_forward(0, lost()),
            TurnCode::DeviceNotJudged,
            0,
        ),
    ];
    for (mode, fails, expected, written) in cases {
        let engine = TwoDevices::new();
        let mut spec = engine.spec(mode, 1);
        spec.options.device = DeviceWish::Device;
        let model = engine.load(spec);
        fails(&engine);
        let log = engine.generate(&model, options(prompt(0, 8), 9));
        let Event::Failed { code, message } = end_of(&log) else {
            panic!("{expected:?}: it ended well");
        };
        assert_eq!(code, expected, "{message}");
        assert!(message.starts_with(&model.device.name), "{message}");
        assert_eq!(ids(&log).len(), written, "{expected:?}");
    }
}

#[test]
fn a_reply_fails_if_the_reference_cannot_be_readied_either() {
    let engine = TwoDevices::new();
    let model = engine.load(engine.spec(Mode::Probe, 1));
    engine
        .reference
        .at_load_report(0, candor_testkit::scripted::LoadFault::OutOfMemory);
    engine
        .card
        .at_forward(engine.card.counts().submitted + 2, lost());
    let log = engine.generate(&model, options(prompt(0, 8), 9));
    let Event::Failed { code, message } = end_of(&log) else {
        panic!("it ended well");
    };
    assert_eq!(code, TurnCode::DeviceLost);
    assert!(
        message.contains("watchdog") && message.contains("memory"),
        "{message}"
    );
}

#[test]
fn a_stop_is_heard_while_the_reference_is_readied() {
    let engine = TwoDevices::new();
    let model = engine.load(engine.spec(Mode::Probe, 1));
    engine
        .reference
        .at_load_report(1, candor_testkit::scripted::LoadFault::Stall);
    engine
        .card
        .at_forward(engine.card.counts().submitted + 3, lost());
    let (request, cancel, log) = request(&model, options(prompt(0, 8), 9));
    engine.handle.generate(request).unwrap();
    engine.reference.wait_until_stalled();
    cancel.cancel();
    let end = end_of(&log);
    let stopped = matches!(
        end,
        Event::Finished {
            reason: FinishReason::Cancelled,
            ..
        }
    );
    assert!(stopped, "{end:?}");
    assert_eq!(ids(&log).len(), 3);
}

#[test]
fn a_reply_ends_where_the_processor_has_no_memory_to_go_on() {
    let free = Arc::new(AtomicU64::new(u64::MAX));
    let told = Arc::clone(&free);
    let engine = TwoDevices::with(EngineConfig {
        available_memory: Arc::new(move || Some(told.load(Ordering::Relaxed))),
        ..config()
    });
    let model = engine.load(engine.spec(Mode::Probe, 1));
    free.store(1_000, Ordering::Relaxed);
    engine
        .card
        .at_forward(engine.card.counts().submitted + 3, lost());
    let log = engine.generate(&model, options(prompt(0, 5), 20));
    let Event::Failed { code, message } = end_of(&log) else {
        panic!("it ended well");
    };
    assert_eq!(code, TurnCode::DeviceLost);
    assert!(message.contains("1000 are available"), "{message}");
    assert_eq!(engine.reference.counts().weights_alive, 0);
}
