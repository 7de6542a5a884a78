//! Proofs on prompts, and checks of a card that serves.

use candor_backend::DeviceKind;

use super::*;
use crate::testing::{end_of, events, ids, options, prompt};

fn proofs(log: &TurnLog) -> usize {
    events(log)
        .iter()
        .filter(|event| matches!(event, Event::Proven(_)))
        .count()
}

#[test]
fn a_card_is_proven_on_the_prompts_that_the_mode_says() {
    for (mode, expected) in [
        (Mode::FirstPrompt, [1, 0, 0]),
        (Mode::EveryPrompt, [1, 1, 1]),
    ] {
        let engine = TwoDevices::new();
        let model = engine.load(engine.spec(mode, 1));
        assert_eq!(model.proof, Proof::Awaited(mode));
        assert_eq!(engine.reference.counts().sessions_opened, 0);
        for (turn, expected) in expected.into_iter().enumerate() {
            // By what whoever asks knows: of a proof that he knows he is not told.
            let log = engine.generate(&engine.ready(), options(prompt(turn as u32, 80), 5));
            let stats = stats_of(&log);
            assert_eq!(proofs(&log), expected, "{mode:?}, turn {turn}");
            assert_eq!(stats.served.device, DeviceKind::Gpu);
            let Proof::Proven(report) = engine.ready().proof.clone() else {
                panic!("{mode:?}");
            };
            assert_eq!(stats.served.verdict, Some(report.id));
            assert_eq!((report.mode, report.asked), (mode, 65));
            let proving = |event: &&Event| matches!(event, Event::State(TurnState::Proving { .. }));
            assert_eq!(
                events(&log).iter().filter(proving).count() > 0,
                expected > 0
            );
        }
    }
}

#[test]
fn a_short_prompt_is_lengthened_and_not_waved_through() {
    let engine = TwoDevices::new();
    engine.card.wrong_from(Some(40));
    let model = engine.load(engine.spec(Mode::FirstPrompt, 1));
    let log = engine.generate(&model, options(prompt(0, 2), 4));
    assert_eq!(stats_of(&log).served, Served::default());
    assert!(matches!(
        engine.ready().passed_over[0].why,
        WhyNot::Rejected(_)
    ));
}

#[test]
fn a_card_that_fails_on_a_prompt_gives_none_of_its_reply() {
    let engine = TwoDevices::new();
    let model = engine.load(engine.spec(Mode::EveryPrompt, 1));
    let expected = engine.generate(&model, options(prompt(1, 100), 6));
    assert_eq!(stats_of(&expected).served.device, DeviceKind::Gpu);
    engine.card.wrong_from(Some(90));
    let log = engine.generate(&model, options(prompt(1, 100), 6));
    assert_eq!(stats_of(&log).served, Served::default());
    assert_eq!(ids(&log), ids(&expected));
    let now = engine.ready();
    assert_eq!(
        (now.device.kind, &now.proof),
        (DeviceKind::Cpu, &Proof::Reference)
    );
    assert!(matches!(now.passed_over[0].why, WhyNot::Rejected(_)));
}

#[test]
fn replies_that_wait_for_a_proof_are_proven_one_after_the_other() {
    let engine = TwoDevices::new();
    let model = engine.load(engine.spec(Mode::EveryPrompt, 2));
    let logs: Vec<_> = (0..3)
        .map(|i| engine.generate(&model, options(prompt(i, 70), 5)))
        .collect();
    for log in logs {
        assert_eq!(stats_of(&log).generated_tokens, 5);
        assert_eq!(proofs(&log), 1);
    }
}

#[test]
fn a_proof_that_is_stopped_leaves_the_next_reply_to_ask_again() {
    let engine = TwoDevices::new();
    let model = engine.load(engine.spec(Mode::FirstPrompt, 1));
    engine.reference.at_forward(1, Fault::Stall);
    let (request, cancel, log) = request(&model, options(prompt(0, 200), 4));
    engine.handle.generate(request).unwrap();
    engine.reference.wait_until_stalled();
    cancel.cancel();
    let end = end_of(&log);
    assert!(
        matches!(
            end,
            Event::Finished {
                reason: FinishReason::Cancelled,
                ..
            }
        ),
        "{end:?}"
    );
    let log = engine.generate(&model, options(prompt(0, 200), 4));
    assert_eq!(stats_of(&log).served.device, DeviceKind::Gpu);
    assert_eq!(proofs(&log), 1);
}

/// A first prompt that is long says nothing of how short contexts are computed.
#[test]
fn a_long_first_prompt_leaves_the_ways_of_short_contexts_to_the_built_in_text() {
    for (mode, wrong_below, device) in [
        (Mode::FirstPrompt, 0, DeviceKind::Gpu),
        (Mode::FirstPrompt, 400, DeviceKind::Cpu),
        // Every reply is preceded by its own check: short contexts by theirs.
        (Mode::EveryPrompt, 400, DeviceKind::Gpu),
    ] {
        let engine = TwoDevices::new();
        engine.card.ways(&[512, 2_048, 4_096]);
        engine.card.wrong_below(wrong_below);
        let model = engine.load(engine.spec(mode, 1));
        let log = engine.generate(&model, options(prompt(0, 700), 3));
        assert_eq!(stats_of(&log).served.device, device, "{mode:?}");
    }
}

fn recheck(engine: &TwoDevices, what: Recheck) -> Rechecked {
    let answer = engine.handle.recheck(what, &CancelToken::new()).unwrap();
    answer.blocking_recv().unwrap()
}

#[test]
fn after_a_sleep_the_card_is_proven_again_without_the_reference() {
    let engine = TwoDevices::new();
    assert_eq!(recheck(&engine, Recheck::AfterSleep), Rechecked::NotNeeded);
    let model = engine.load(engine.spec(Mode::Probe, 1));
    // It was awake.
    assert_eq!(recheck(&engine, Recheck::AfterSleep), Rechecked::NotNeeded);
    let forwards = engine.reference.counts().submitted;
    engine.sleep();
    let Rechecked::Kept(report) = recheck(&engine, Recheck::AfterSleep) else {
        panic!("not kept");
    };
    assert_eq!(report.basis, Basis::Remembered);
    assert_eq!(engine.reference.counts().submitted, forwards);
    assert_eq!(engine.ready().proof, Proof::Proven(report));
    // A card that came back wrong serves no more.
    engine.sleep();
    engine.card.wrong_from(Some(1));
    assert!(matches!(
        recheck(&engine, Recheck::AfterSleep),
        Rechecked::Withdrawn(_)
    ));
    let log = engine.generate(&model, options(prompt(0, 8), 3));
    assert_eq!(stats_of(&log).served, Served::default());
}

#[test]
fn an_audit_judges_what_was_written_and_keeps_the_conversation() {
    let engine = TwoDevices::new();
    let model = engine.load(engine.spec(Mode::Probe, 1));
    let log = engine.generate(&model, options(prompt(0, 900), 20));
    stats_of(&log);
    let mut context = prompt(0, 900);
    context.extend(ids(&log));
    let Rechecked::Kept(report) = recheck(&engine, Recheck::Audit) else {
        panic!("not kept");
    };
    assert_eq!(report.asked, 65);
    // The next turn goes on from what the card holds.
    let next = engine.generate(&model, options(context.clone(), 3));
    let stats = stats_of(&next);
    assert!(stats.cached_tokens >= 900, "{stats:?}");
    // Only long contexts are wrong: the probe cannot see that, the audit does.
    engine.card.wrong_from(Some(880));
    let Rechecked::Withdrawn(report) = recheck(&engine, Recheck::Audit) else {
        panic!("not withdrawn");
    };
    assert!(
        report
            .first_bad
            .as_ref()
            .is_some_and(|bad| bad.position >= 850),
        "{report}"
    );
    let next = engine.generate(&model, options(context, 3));
    assert_eq!(stats_of(&next).served, Served::default());
}

#[test]
fn an_audit_ends_when_anybody_asks_for_a_reply() {
    let engine = TwoDevices::new();
    let model = engine.load(engine.spec(Mode::Probe, 1));
    stats_of(&engine.generate(&model, options(prompt(0, 300), 4)));
    engine
        .reference
        .at_forward(engine.reference.counts().submitted + 1, Fault::Stall);
    let answer = engine
        .handle
        .recheck(Recheck::Audit, &CancelToken::new())
        .unwrap();
    engine.reference.wait_until_stalled();
    let log = engine.generate(&model, options(prompt(1, 10), 3));
    assert_eq!(stats_of(&log).served.device, DeviceKind::Gpu);
    let rechecked = answer.blocking_recv().unwrap();
    assert_eq!(rechecked, Rechecked::NotJudged(NotJudged::Stopped));
}
