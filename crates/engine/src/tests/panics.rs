//! Whatever panics on the engine thread: every reply and every load is answered once, and the next
//! ones work.
//!
//! The clock is read everywhere on that thread, so it is what panics here.

use std::sync::atomic::{AtomicI64, Ordering};

use candor_testkit::scripted::Fault;

use super::turns::{check_goes_on, code_of, reason_of};
use super::*;
use crate::testing::{end_of, options, prompt};

/// A clock of which some readings on the engine thread panic.
#[derive(Clone)]
struct Fuse(Arc<[AtomicI64; 2]>);

impl Fuse {
    /// Readings from now on until the first that panics, and how many do.
    fn lay(&self, until: i64, count: i64) {
        self.0[1].store(count, Ordering::SeqCst);
        self.0[0].store(until, Ordering::SeqCst);
    }

    /// Whether fewer readings have come than were needed.
    fn is_unburnt(&self) -> bool {
        self.0[0].load(Ordering::SeqCst) >= 0
    }

    fn read(&self) -> Instant {
        if thread::current().name() == Some("engine") {
            let left = self.0[0].fetch_sub(1, Ordering::SeqCst);
            let count = self.0[1].load(Ordering::SeqCst);
            assert!(left > 0 || left <= -count, "the clock broke");
        }
        Instant::now()
    }
}

fn running() -> (Running, Fuse) {
    let fuse = Fuse(Arc::new([AtomicI64::new(i64::MAX), AtomicI64::new(0)]));
    let read = fuse.clone();
    let config = EngineConfig {
        clock: Arc::new(move || read.read()),
        available_memory: Arc::new(|| None),
        with_sleep: Arc::new(|| None),
        today: Arc::new(|| 0),
    };
    (Running::with(config), fuse)
}

/// Readings of the clock in a reply of three tokens: before and after each forward.
const READINGS_OF_A_REPLY: i64 = 6;

#[test]
fn a_panic_anywhere_in_a_step_ends_every_reply_once_and_the_thread_goes_on() {
    for until in 0..READINGS_OF_A_REPLY {
        // The second panic comes while the replies are being ended.
        for count in [1, 2] {
            let (running, fuse) = running();
            let model = running.load(1).unwrap();
            fuse.lay(until, count);
            let (_, written) = running.generate(&model, options(prompt(0, 5), 3));
            let (_, waits) = running.generate(&model, options(prompt(1, 5), 3));
            assert_eq!(code_of(&written), TurnCode::Broken, "{until} {count}");
            let waited = code_of(&waits);
            // It may have come after the breakdown.
            assert!(
                matches!(waited, TurnCode::Broken | TurnCode::NoModel),
                "{until} {count}: {waited:?}"
            );
            let broken =
                |s: &EngineState| matches!(s, EngineState::NoModel(WhyNoModel::Broken { .. }));
            running.wait_for(broken);
            assert_eq!(running.script.counts().sessions_alive, 0);
            fuse.lay(i64::MAX, 0);
            check_goes_on(&running, &model);
        }
    }
}

#[test]
fn a_panic_while_replies_are_ended_ends_them_all_the_same() {
    let (running, fuse) = running();
    let model = running.load(1).unwrap();
    running
        .script
        .at_forward(running.script.counts().submitted, Fault::Stall);
    let (_, written) = running.generate(&model, options(prompt(0, 5), 3));
    running.script.wait_until_stalled();
    let (_, waits) = running.generate(&model, options(prompt(1, 5), 3));
    running.handle.unload().unwrap();
    // After the forward that stalls comes the reading of its own end, then that of the unload.
    fuse.lay(1, 1);
    running.script.release();
    for log in [&written, &waits] {
        assert_eq!(code_of(log), TurnCode::Broken);
    }
    check_goes_on(&running, &model);
}

#[test]
fn a_panic_while_the_thread_ends_loses_nothing() {
    for count in [1, 9] {
        let (running, fuse) = running();
        let model = running.load(1).unwrap();
        running
            .script
            .at_forward(running.script.counts().submitted, Fault::Stall);
        let (_, written) = running.generate(&model, options(prompt(0, 5), 3));
        running.script.wait_until_stalled();
        let (_, waits) = running.generate(&model, options(prompt(1, 5), 3));
        fuse.lay(0, count);
        running.handle.shutdown();
        end_of(&written);
        end_of(&waits);
        assert!(matches!(running.state(), EngineState::Closed));
        assert!(running.handle.has_ended());
    }
}

#[test]
fn a_panic_anywhere_in_a_load_is_its_answer_and_loses_nothing() {
    let (running, fuse) = running();
    let mut kept = running.load(1).unwrap();
    let mut failures = 0;
    for until in 0.. {
        fuse.lay(until, 1);
        let loaded = running.load(1);
        let unburnt = fuse.is_unburnt();
        fuse.lay(i64::MAX, 0);
        match loaded {
            Ok(model) if unburnt => {
                assert_ne!(model.id, kept.id);
                break;
            }
            Ok(model) => kept = model,
            Err(failure) => {
                assert_eq!(failure.code(), LoadCode::Failed, "{until}: {failure}");
                failures += 1;
            }
        }
        let (_, log) = running.generate(&kept, options(prompt(0, 5), 3));
        assert_eq!(reason_of(&log), FinishReason::Length, "{until}");
    }
    assert!(failures > 5, "{failures} readings in a load");
}

#[test]
fn backends_that_cannot_be_made_leave_everything_as_it_was() {
    let (running, _) = running();
    let kept = running.load(1).unwrap();
    let make: MakeBackends = Box::new(|| panic!("no backends today"));
    let answer = running.handle.load_on(running.spec(1), make).unwrap();
    let failure = answer.wait().unwrap_err();
    assert_eq!(
        failure.to_string(),
        "the load broke down: no backends today"
    );
    let (_, log) = running.generate(&kept, options(prompt(0, 5), 3));
    assert_eq!(reason_of(&log), FinishReason::Length);
    running.load(1).unwrap();
}
