//! Replies through the handle: one end each, whatever happens around them.

use candor_backend::SessionError;
use candor_testkit::scripted::Fault;

use super::*;
use crate::testing::{end_of, ids, options, prompt};

pub(super) fn code_of(log: &TurnLog) -> TurnCode {
    match end_of(log) {
        Event::Failed { code, .. } => code,
        other => panic!("the reply did not fail: {other:?}"),
    }
}

pub(super) fn reason_of(log: &TurnLog) -> FinishReason {
    match end_of(log) {
        Event::Finished { reason, .. } => reason,
        other => panic!("the reply did not finish: {other:?}"),
    }
}

/// Forwards that were submitted for the replies of an engine so far.
fn submitted(running: &Running) -> usize {
    running.script.counts().submitted
}

#[test]
fn a_reply_tells_its_phases_its_tokens_and_its_figures() {
    let (running, model) = Running::loaded(1);
    let (_, log) = running.generate(&model, options(prompt(0, 600), 4));
    let Event::Finished { reason, stats } = end_of(&log) else {
        panic!("it failed")
    };
    assert_eq!(reason, FinishReason::Length);
    let events = testing::events(&log);
    let states: Vec<TurnState> = events
        .iter()
        .filter_map(|event| match event {
            Event::State(state) => Some(*state),
            _ => None,
        })
        .collect();
    let read = |done| TurnState::Prefill { done, total: 600 };
    let served = TurnState::Served(Served::default());
    let decode = TurnState::Decode;
    assert_eq!(states, [served, read(0), read(512), read(600), decode]);
    assert_eq!(
        (
            stats.prompt_tokens,
            stats.cached_tokens,
            stats.generated_tokens
        ),
        (600, 0, 4)
    );
    assert!(stats.prefill_ms > 0.0 && stats.decode_ms > 0.0);
    assert!(stats.time_to_first_token_ms >= stats.prefill_ms);
}

#[test]
fn a_stop_through_the_handle_ends_a_forward_that_runs() {
    let (running, model) = Running::loaded(1);
    for forward in [0, 1, 5] {
        let before = running.script.counts();
        running
            .script
            .at_forward(before.submitted + forward, Fault::Stall);
        let (cancel, log) = running.generate(&model, options(prompt(forward as u32, 600), 50));
        running.script.wait_until_stalled();
        cancel.cancel();
        assert_eq!(reason_of(&log), FinishReason::Cancelled);
        let after = running.script.counts();
        assert_eq!(after.submitted - before.submitted, forward + 1);
        assert_eq!(after.committed - before.committed, forward);
    }
}

#[test]
fn a_full_inbox_is_an_answer_and_nothing_in_it_is_lost() {
    let (running, model) = Running::loaded(1);
    running.script.at_forward(submitted(&running), Fault::Stall);
    let (_, first) = running.generate(&model, options(prompt(0, 5), 2));
    running.script.wait_until_stalled();
    let waiting: Vec<_> = (0..INBOX_MAX)
        .map(|_| running.generate(&model, options(prompt(1, 5), 2)))
        .collect();
    for _ in 0..3 {
        let (request, _, log) = request(&model, options(prompt(2, 5), 2));
        assert_eq!(
            running.handle.generate(request).unwrap_err(),
            NotTaken::Busy
        );
        assert_eq!(code_of(&log), TurnCode::Busy);
    }
    assert_eq!(
        running.handle.load(running.spec(1)).unwrap_err(),
        NotTaken::Busy
    );
    assert_eq!(running.handle.unload(), Err(NotTaken::Busy));
    running.script.release();
    assert_eq!(reason_of(&first), FinishReason::Length);
    for (_, log) in &waiting {
        assert_eq!(reason_of(log), FinishReason::Length);
    }
}

/// What happens while one reply is written and another waits, and how both end.
#[derive(Clone, Copy, Debug)]
enum Around {
    Unload,
    Shutdown,
    Panic,
    DeviceLost,
    HandlesDropped,
}

fn check_around(around: Around, forward: usize) {
    let (running, model) = Running::loaded(1);
    let at = submitted(&running) + forward;
    match around {
        Around::Panic => running.script.at_forward(at, Fault::Panic),
        Around::DeviceLost => {
            let lost = SessionError::DeviceLost {
                reason: String::from("pulled out"),
            };
            running.script.at_forward(at, Fault::Error(lost));
        }
        Around::Unload | Around::Shutdown | Around::HandlesDropped => {
            running.script.at_forward(at, Fault::Stall);
        }
    }
    // Both are in the inbox before the thread takes the first.
    let (_, written) = running.generate(&model, options(prompt(0, 5), 20));
    let (_, waits) = running.generate(&model, options(prompt(1, 5), 20));
    match around {
        Around::Unload => {
            running.script.wait_until_stalled();
            running.handle.unload().unwrap();
            running.script.release();
            assert_eq!(code_of(&written), TurnCode::Unloaded);
            assert_eq!(code_of(&waits), TurnCode::Unloaded);
            let unloaded =
                |s: &EngineState| matches!(s, EngineState::NoModel(WhyNoModel::Unloaded));
            running.wait_for(unloaded);
        }
        Around::Shutdown => {
            running.script.wait_until_stalled();
            running.handle.shutdown();
            running.handle.shutdown();
            assert_eq!(reason_of(&written), FinishReason::Cancelled);
            assert!(waits.has_ended());
            assert!(matches!(running.state(), EngineState::Closed));
            assert_eq!(running.handle.unload(), Err(NotTaken::Closed));
        }
        Around::HandlesDropped => {
            running.script.wait_until_stalled();
            running.script.release();
            assert_eq!(reason_of(&written), FinishReason::Length);
            assert_eq!(reason_of(&waits), FinishReason::Length);
        }
        Around::Panic | Around::DeviceLost => {
            let expected = match around {
                Around::Panic => TurnCode::Broken,
                _ => TurnCode::DeviceLost,
            };
            assert_eq!(code_of(&written), expected);
            end_of(&waits);
            let broken =
                |s: &EngineState| matches!(s, EngineState::NoModel(WhyNoModel::Broken { .. }));
            running.wait_for(broken);
        }
    }
    let counts = running.script.counts();
    if !matches!(around, Around::HandlesDropped) {
        assert_eq!(
            (counts.weights_alive, counts.sessions_alive),
            (0, 0),
            "{around:?}"
        );
        // The forward that was let go counts; the one that was stopped or broke down does not.
        let written_tokens = forward + usize::from(matches!(around, Around::Unload));
        assert_eq!(ids(&written).len(), written_tokens, "{around:?}");
    }
    if matches!(around, Around::Unload | Around::Panic | Around::DeviceLost) {
        check_goes_on(&running, &model);
    }
}

/// The thread goes on without the model, and takes the next.
pub(super) fn check_goes_on(running: &Running, gone: &LoadedModel) {
    let (request, _, log) = request(gone, options(prompt(0, 5), 2));
    running.handle.generate(request).unwrap();
    assert_eq!(code_of(&log), TurnCode::NoModel);
    let again = running.load(1).unwrap();
    let (_, log) = running.generate(&again, options(prompt(0, 5), 2));
    assert_eq!(reason_of(&log), FinishReason::Length);
}

#[test]
fn every_reply_ends_once_whatever_happens_around_it() {
    use Around::{DeviceLost, HandlesDropped, Panic, Shutdown, Unload};
    for around in [Unload, Shutdown, Panic, DeviceLost, HandlesDropped] {
        for forward in [0, 1, 7] {
            check_around(around, forward);
        }
    }
}

#[test]
fn the_thread_ends_when_nobody_holds_a_handle_any_more() {
    let script = Script::new(LETTERS);
    let config = EngineConfig {
        clock: clock(),
        available_memory: Arc::new(|| None),
        with_sleep: Arc::new(|| None),
        today: Arc::new(|| 0),
    };
    let handle = Engine::spawn(config, vec![Box::new(script.backend())]).unwrap();
    let folder = ModelFolder::new();
    let spec = folder.spec("tiny.gguf", LoadOptions::default());
    let model = handle.load(spec).unwrap().wait().unwrap();
    let (request, _, log) = request(&model, options(prompt(0, 5), 6));
    handle.generate(request).unwrap();
    drop(handle);
    assert_eq!(
        reason_of(&log),
        FinishReason::Length,
        "what was asked for is still written"
    );
    let deadline = Instant::now() + HANG_LIMIT;
    while script.counts().sessions_alive > 0 {
        assert!(Instant::now() < deadline, "the thread did not end");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_load_waits_for_the_replies_before_it() {
    let (running, model) = Running::loaded(1);
    running
        .script
        .at_forward(submitted(&running) + 2, Fault::Stall);
    let (_, before) = running.generate(&model, options(prompt(0, 5), 6));
    running.script.wait_until_stalled();
    let answer = running.handle.load(running.spec(1)).unwrap();
    let (_, after) = running.generate(&model, options(prompt(0, 5), 6));
    running.script.release();
    assert_eq!(reason_of(&before), FinishReason::Length);
    let next = answer.wait().unwrap();
    assert_ne!(next.id, model.id);
    assert_eq!(code_of(&after), TurnCode::ModelChanged);
}

#[test]
fn two_slots_write_at_once_and_a_third_reply_says_that_it_waits() {
    let (running, model) = Running::loaded(2);
    let start = submitted(&running);
    running.script.at_forward(start, Fault::Stall);
    let (_, first) = running.generate(&model, options(prompt(0, 5), 30));
    running.script.wait_until_stalled();
    let (_, second) = running.generate(&model, options(prompt(1, 5), 30));
    let (_, third) = running.generate(&model, options(prompt(2, 5), 30));
    running.script.release();
    for log in [&first, &second, &third] {
        assert_eq!(reason_of(log), FinishReason::Length);
        assert_eq!(ids(log).len(), 30);
    }
    let waits = |log: &TurnLog| testing::events(log).contains(&Event::State(TurnState::Waiting));
    assert_eq!(
        [&first, &second, &third].map(|log| waits(log)),
        [false, false, true]
    );
    assert!(
        running.script.counts().rows.contains(&2),
        "two rows shared a forward"
    );
}
