//! A machine that sleeps while a card serves: no token is written before it was proven again.

use candor_backend::DeviceKind;

use super::*;
use crate::testing::{end_of, events, ids, options, prompt};
use crate::thread::INBOX_MAX;

/// The tokens of the prompt and of the reply of these tests.
const PROMPT_TOKENS: usize = 700;
const REPLY_TOKENS: usize = 12;

fn ask() -> GenerateOptions {
    options(prompt(0, PROMPT_TOKENS), REPLY_TOKENS)
}

/// What the card says where nobody sleeps.
fn undisturbed() -> Vec<u32> {
    let engine = TwoDevices::new();
    let model = engine.load(engine.spec(Mode::Probe, 1));
    let log = engine.generate(&model, ask());
    assert_eq!(stats_of(&log).served.device, DeviceKind::Gpu);
    ids(&log)
}

/// How the card comes back, and what computes then.
const COMES_BACK: [(Option<usize>, DeviceKind); 2] =
    [(None, DeviceKind::Gpu), (Some(1), DeviceKind::Cpu)];

fn verdict(model: &LoadedModel) -> Option<VerdictId> {
    match &model.proof {
        Proof::Proven(report) => Some(report.id),
        _ => None,
    }
}

#[test]
fn the_first_reply_after_a_sleep_waits_for_the_proof() {
    let expected = undisturbed();
    for (wrong_from, device) in COMES_BACK {
        let engine = TwoDevices::new();
        let model = engine.load(engine.spec(Mode::Probe, 1));
        let before = engine.card.counts().submitted;
        engine.sleep();
        engine.card.wrong_from(wrong_from);
        let log = engine.generate(&model, ask());
        assert_eq!(stats_of(&log).served.device, device);
        assert_eq!(ids(&log), expected);
        assert!(engine.card.counts().submitted > before, "it was not proven");
        assert_ne!(verdict(&engine.ready()), verdict(&model));
        // Once, and not before every reply.
        let proven = verdict(&engine.ready());
        stats_of(&engine.generate(&model, ask()));
        assert_eq!(verdict(&engine.ready()), proven);
    }
}

/// The machine sleeps while the card is at the forward of this number, counted from 1.
#[track_caller]
fn check_asleep_at(forward: usize, expected: &[u32]) {
    for (wrong_from, device) in COMES_BACK {
        let engine = TwoDevices::new();
        let model = engine.load(engine.spec(Mode::Probe, 1));
        let (request, _, log) = request(&model, ask());
        let forwards = engine.card.counts().submitted;
        engine.card.at_forward(forwards + forward, Fault::Stall);
        engine.handle.generate(request).unwrap();
        engine.card.wait_until_stalled();
        let before = ids(&log).len();
        engine.sleep();
        engine.card.wrong_from(wrong_from);
        engine.card.release();
        assert_eq!(stats_of(&log).served.device, device, "{forward}");
        // As if nothing had been, also the token that was under way.
        assert_eq!(ids(&log), expected, "{forward}: {before} before");
        assert_ne!(verdict(&engine.ready()), verdict(&model));
        let is_proving = |event: &Event| matches!(event, Event::State(TurnState::Proving { .. }));
        assert!(events(&log).iter().any(is_proving), "nobody is told");
        let proofs: Vec<_> = events(&log)
            .iter()
            .filter_map(|event| match event {
                Event::Proven(report) => Some(report.id),
                _ => None,
            })
            .collect();
        // What is written by a proof names it.
        assert_eq!(proofs, Vec::from_iter(verdict(&engine.ready())));
    }
}

#[test]
fn a_sleep_in_the_middle_of_a_reply_leaves_no_unproven_token() {
    let expected = undisturbed();
    // While the prompt is read, at its end, at the first token and later.
    for forward in [1, 2, 3, 7] {
        check_asleep_at(forward, &expected);
    }
}

/// The window had the card proven again before the engine heard of the question.
#[test]
fn a_reply_names_the_proof_by_which_it_is_written_and_not_the_one_its_asker_knew() {
    let engine = TwoDevices::new();
    let known = engine.load(engine.spec(Mode::Probe, 1));
    engine.sleep();
    let asked = engine
        .handle
        .recheck(Recheck::AfterSleep, &CancelToken::new());
    let Rechecked::Kept(report) = asked.unwrap().blocking_recv().unwrap() else {
        panic!("it is right");
    };
    for (model, expected) in [(known, Some(report.id)), (engine.ready(), None)] {
        let log = engine.generate(&model, ask());
        assert_eq!(stats_of(&log).served.verdict, Some(report.id));
        let named = events(&log).iter().find_map(|event| match event {
            Event::Proven(report) => Some(report.id),
            _ => None,
        });
        assert_eq!(named, expected);
    }
}

#[test]
fn nobody_overtakes_the_proof() {
    let expected = undisturbed();
    let engine = TwoDevices::new();
    let model = engine.load(engine.spec(Mode::Probe, 2));
    engine.sleep();
    engine.card.wrong_from(Some(1));
    let logs: Vec<_> = [Priority::Interactive, Priority::Background]
        .into_iter()
        .map(|priority| {
            let options = GenerateOptions { priority, ..ask() };
            engine.generate(&model, options)
        })
        .collect();
    let asked = engine
        .handle
        .recheck(Recheck::AfterSleep, &CancelToken::new());
    for log in logs {
        assert_eq!(stats_of(&log).served, Served::default());
        assert_eq!(ids(&log), expected);
    }
    // It came after the proof, or was it.
    let answer = asked.unwrap().blocking_recv().unwrap();
    assert!(
        matches!(answer, Rechecked::NotNeeded | Rechecked::Withdrawn(_)),
        "{answer:?}"
    );
}

#[test]
fn a_full_inbox_drops_no_proof() {
    let engine = TwoDevices::new();
    let model = engine.load(engine.spec(Mode::Probe, 1));
    let (request, _, log) = request(&model, ask());
    engine
        .card
        .at_forward(engine.card.counts().submitted + 3, Fault::Stall);
    engine.handle.generate(request).unwrap();
    engine.card.wait_until_stalled();
    engine.sleep();
    engine.card.wrong_from(Some(1));
    let ask = || {
        engine
            .handle
            .recheck(Recheck::AfterSleep, &CancelToken::new())
    };
    let taken: Vec<_> = (0..INBOX_MAX).map_while(|_| ask().ok()).collect();
    assert!(matches!(ask(), Err(NotTaken::Busy)), "{}", taken.len());
    engine.card.release();
    assert_eq!(stats_of(&log).served.device, DeviceKind::Cpu);
    assert_eq!(ids(&log), undisturbed());
}

#[test]
fn a_proof_after_a_sleep_that_is_stopped_proves_nothing() {
    let engine = TwoDevices::new();
    let model = engine.load(engine.spec(Mode::Probe, 1));
    engine.sleep();
    engine
        .card
        .at_forward(engine.card.counts().submitted + 1, Fault::Stall);
    let (request, cancel, log) = request(&model, ask());
    engine.handle.generate(request).unwrap();
    engine.card.wait_until_stalled();
    cancel.cancel();
    let end = end_of(&log);
    let stopped = |end: &Event| matches!(end, Event::Finished { reason, .. } if *reason == FinishReason::Cancelled);
    assert!(stopped(&end), "{end:?}");
    assert_eq!(ids(&log), Vec::<u32>::new());
    engine.card.release();
    engine.card.wrong_from(Some(1));
    let log = engine.generate(&model, ask());
    assert_eq!(stats_of(&log).served, Served::default());
    assert_eq!(ids(&log), undisturbed());
}

/// The prompt that takes the place of a stopped proof may be long, and says nothing of short contexts.
#[test]
fn a_prompt_in_the_place_of_a_stopped_proof_leaves_short_contexts_to_the_built_in_text() {
    for (wrong_below, device) in [(0, DeviceKind::Gpu), (400, DeviceKind::Cpu)] {
        let engine = TwoDevices::new();
        engine.card.ways(&[512, 2_048, 4_096]);
        let model = engine.load(engine.spec(Mode::Probe, 1));
        engine.sleep();
        engine
            .card
            .at_forward(engine.card.counts().submitted + 1, Fault::Stall);
        let (request, cancel, log) = request(&model, ask());
        engine.handle.generate(request).unwrap();
        engine.card.wait_until_stalled();
        cancel.cancel();
        end_of(&log);
        engine.card.release();
        engine.card.wrong_below(wrong_below);
        let log = engine.generate(&model, ask());
        assert_eq!(stats_of(&log).served.device, device, "{wrong_below}");
    }
}

/// The window asks for the proof, and a reply waits for it too: Stop ends the reply within a forward,
/// and the proof goes on for the window.
#[test]
fn a_reply_is_stopped_also_while_somebody_else_has_the_card_proven() {
    let engine = TwoDevices::new();
    let model = engine.load(engine.spec(Mode::Probe, 1));
    let (request, cancel, log) = request(&model, ask());
    let next = engine.card.counts().submitted;
    // One of the reply, and the first two of the proof, which comes before any other of the reply.
    for forward in [3, 4, 5] {
        engine.card.at_forward(next + forward, Fault::Stall);
    }
    engine.handle.generate(request).unwrap();
    engine.card.wait_until_stalled();
    engine.sleep();
    let asked = engine
        .handle
        .recheck(Recheck::AfterSleep, &CancelToken::new());
    engine.card.release();
    engine.card.wait_until_stalled();
    cancel.cancel();
    engine.card.release();
    engine.card.wait_until_stalled();
    let end = end_of(&log);
    let stopped = |end: &Event| matches!(end, Event::Finished { reason, .. } if *reason == FinishReason::Cancelled);
    assert!(stopped(&end), "{end:?}");
    // With the one that stands still.
    assert_eq!(engine.card.counts().submitted, next + 5 + 1);
    engine.card.release();
    let answer = asked.unwrap().blocking_recv().unwrap();
    assert!(matches!(answer, Rechecked::Kept(_)), "{answer:?}");
}

#[test]
fn a_load_that_fails_after_a_sleep_leaves_the_proof_owed() {
    let engine = TwoDevices::new();
    let model = engine.load(engine.spec(Mode::Probe, 1));
    engine.sleep();
    engine.card.wrong_from(Some(1));
    let missing = engine.folder.spec("missing.gguf", LoadOptions::default());
    engine.handle.load(missing).unwrap().wait().unwrap_err();
    let log = engine.generate(&model, ask());
    assert_eq!(stats_of(&log).served, Served::default());
}

#[test]
fn an_audit_after_a_sleep_comes_after_the_proof() {
    for wrong_from in [None, Some(1)] {
        let engine = TwoDevices::new();
        let model = engine.load(engine.spec(Mode::Probe, 1));
        stats_of(&engine.generate(&model, ask()));
        engine.sleep();
        engine.card.wrong_from(wrong_from);
        let answer = engine.handle.recheck(Recheck::Audit, &CancelToken::new());
        let answer = answer.unwrap().blocking_recv().unwrap();
        let now = engine.ready();
        match wrong_from {
            None => {
                assert!(
                    matches!(answer, Rechecked::NotJudged(_) | Rechecked::Kept(_)),
                    "{answer:?}"
                );
                assert_ne!(verdict(&now), verdict(&model));
            }
            Some(_) => assert_eq!(now.proof, Proof::Reference),
        }
    }
}
