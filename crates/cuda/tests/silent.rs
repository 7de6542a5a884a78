//! A driver that keeps a call for good, wherever it is asked: nobody waits for it for longer than
//! was said, the card is lost with a reason, and a stop does not wait at all. Each scenario has a
//! simulated machine of its own, whose calls hang until they are told not to.
#![cfg(not(feature = "real-driver"))]

mod common;
#[path = "common/replies.rs"]
mod replies;

use std::thread;
use std::time::Duration;

use candor_backend::{
    Backend, Batch, CancelToken, DriverFault, LoadError, Loaded, Outcome, Part, Progress, Rows,
    Session, SessionError, Step, Unavailable, Want,
};
use candor_cuda::{Cards, CudaBackend, Patience};
use candor_engine::{EngineHandle, EngineState, Event, WhyNot};
use simcuda::{Library, scenario};

use common::{SLOT, forward, golden_model, load, options, simulated};
use replies::{MODEL, PROMPT, Running, TOKENS, await_tokens, engine, events, spec, tokens};

/// One whose state is sums, of which a forward changes all.
const RECURRENT: &str = "s19-qwen35-q4_k_m.gguf";

/// Less than a person puts up with, and more than the simulated card needs on a busy machine.
const PATIENCE: Patience = Patience {
    answer: Duration::from_secs(2),
    leave: Duration::from_millis(200),
    doubtful: Duration::from_secs(1),
};

/// With [`PATIENCE`].
fn cards() -> Cards {
    Cards::with_patience(PATIENCE)
}

fn hang(library: Library, call: &str) {
    let settings = format!("hang={call}");
    library.apply(&settings).expect("the machine knows it");
}

fn session(loaded: &dyn Loaded) -> Box<dyn Session> {
    loaded.open(options(64)).expect("the session opens")
}

/// What a card that is silent in each call says that it was at, when a model is loaded.
#[track_caller]
fn check_load(library: Library, call: &str, words: &str) {
    let (cards, model) = (cards(), golden_model(MODEL));
    let mut backend = CudaBackend::among(&cards, simulated());
    hang(library, call);
    let mut ready = || {
        let loaded = load(&mut backend, &model)?;
        loaded.open(options(64)).map_err(|error| match error {
            candor_backend::OpenError::Device { reason } => LoadError::Device { reason },
            other => panic!("{call}: {other}"),
        })
    };
    let Err(LoadError::Device { reason }) = ready().map(|_| ()) else {
        panic!("{call}: nobody can load anything");
    };
    let expected = format!("it did not answer for 2 seconds while {words}");
    assert!(reason.starts_with(&expected), "{call}: {reason}");
    let calls = library.counters();
    let mut again = CudaBackend::among(&cards, simulated());
    assert_eq!(
        again.probe(),
        Err(Unavailable::DriverBroken {
            reason: DriverFault::Lost {
                reason: reason.clone()
            }
        }),
        "another backend of the process knows it too"
    );
    let refused = load(&mut again, &model).map(|_| ());
    assert!(
        matches!(&refused, Err(LoadError::Device { reason: same }) if *same == reason),
        "{refused:?}"
    );
    assert_eq!(library.counters(), calls, "and asks the driver nothing");
    // The thread comes back, sees that nobody waits, and touches nothing.
    hang(library, "");
    let ended = settled(library);
    assert_eq!(library.counters(), ended);
}

/// The counters, once they change no more.
fn settled(library: Library) -> simcuda::Counters {
    loop {
        let before = library.counters();
        thread::sleep(Duration::from_millis(50));
        if library.counters() == before {
            return before;
        }
    }
}

scenario!(
    a_driver_that_does_not_start_is_given_up,
    "",
    |library: Library| {
        check_load(library, "cuInit", "it was starting the card");
        check_load(
            library,
            "cuDevicePrimaryCtxRetain",
            "it was starting the card",
        );
        check_load(library, "cuCtxSetCurrent", "it was starting the card");
        check_load(library, "cuStreamCreate", "it was starting the card");
    }
);

scenario!(
    a_driver_that_translates_for_ever_is_given_up,
    "",
    |library: Library| {
        check_load(
            library,
            "cuModuleLoadDataEx",
            "it was translating the kernels",
        );
        check_load(
            library,
            "cuModuleGetFunction",
            "it was translating the kernels",
        );
    }
);

scenario!(
    a_driver_that_gives_no_memory_is_given_up,
    "",
    |library: Library| {
        check_load(library, "cuMemGetInfo_v2", "it was giving memory");
        check_load(library, "cuMemAlloc_v2", "it was giving memory");
        check_load(library, "cuMemHostAlloc", "it was giving memory");
        check_load(library, "cuEventCreate", "it was giving memory");
    }
);

scenario!(
    a_driver_that_takes_no_weights_is_given_up,
    "",
    |library: Library| {
        check_load(library, "cuMemcpyHtoDAsync_v2", "it was copying");
        check_load(library, "cuEventRecord", "it was starting a step");
        check_load(library, "cuEventSynchronize", "the card was computing");
        check_load(library, "cuStreamSynchronize", "the card was computing");
    }
);

/// Wants the end from its nth question on.
struct StopAt(usize);

impl Progress for StopAt {
    fn report(&mut self, _done_bytes: u64, _total_bytes: u64) -> Step {
        match self.0.checked_sub(1) {
            Some(left) => {
                self.0 = left;
                Step::Go
            }
            None => Step::Stop,
        }
    }
}

scenario!(
    a_load_is_stopped_while_the_driver_is_silent,
    "",
    |library: Library| {
        let (cards, model) = (cards(), golden_model(MODEL));
        let mut backend = CudaBackend::among(&cards, simulated());
        for call in [
            "cuInit",
            "cuModuleLoadDataEx",
            "cuMemAlloc_v2",
            "cuMemcpyHtoDAsync_v2",
        ] {
            stop_in(library, &mut backend, call);
            hang(library, "");
            let ended = settled(library);
            assert_eq!((ended.alive(), ended.pinned()), (0, 0), "{call}");
        }
        assert!(backend.probe().is_ok(), "a stop is no fault of the card");
        let stopped = backend.load(model.clone(), Part::All, &mut StopAt(0));
        assert!(matches!(stopped, Err(LoadError::Stopped)));
        let loaded = load(&mut backend, &model).expect("it loads");
        forward(&mut *session(&*loaded), &batch(&PROMPT));
    }
);

/// Wants the end once one more call hangs.
struct StopHung {
    library: Library,
    hung_before: u64,
}

impl Progress for StopHung {
    fn report(&mut self, _done_bytes: u64, _total_bytes: u64) -> Step {
        match self.library.counters().hung() > self.hung_before {
            true => Step::Stop,
            false => Step::Go,
        }
    }
}

/// Stops a load in a call that hangs, which it does still.
#[track_caller]
fn stop_in(library: Library, backend: &mut CudaBackend, call: &'static str) {
    let hung_before = library.counters().hung();
    hang(library, call);
    let mut watcher = StopHung {
        library,
        hung_before,
    };
    let stopped = backend.load(golden_model(MODEL), Part::All, &mut watcher);
    let stopped = stopped.map(|_| ());
    assert!(
        matches!(stopped, Err(LoadError::Stopped)),
        "{call}: {stopped:?}"
    );
    let hung = library.counters().hung();
    assert_eq!(hung, hung_before + 1, "{call}: it hangs there");
}

fn batch(tokens: &[u32]) -> Batch {
    Batch::of_slot(SLOT, tokens, Want::Logits)
}

/// How a batch ends.
fn run(session: &mut dyn Session, tokens: &[u32], cancel: &CancelToken) -> Ended {
    let mut rows = Rows::default();
    let ticket = session.submit(&batch(tokens), cancel)?;
    let outcome = session.collect(ticket, &mut rows)?;
    assert_eq!(outcome == Outcome::Cancelled, rows.outputs.is_empty());
    Ok(outcome)
}

type Ended = Result<Outcome, SessionError>;

/// The calls of a prompt and of a reply, and what the card then is at.
const PREFILL: [(&str, &str); 5] = [
    ("cuCtxSetCurrent", "it was starting the card"),
    ("cuMemcpyHtoDAsync_v2", "it was copying"),
    ("cuLaunchKernel", "it was starting a step"),
    ("cuMemcpyDtoHAsync_v2", "it was copying"),
    ("cuEventSynchronize", "the card was computing"),
];
const DECODE: [(&str, &str); 5] = [
    (
        "cuStreamBeginCapture_v2",
        "it was readying the steps of a token",
    ),
    ("cuStreamEndCapture", "it was readying the steps of a token"),
    (
        "cuGraphInstantiateWithFlags",
        "it was readying the steps of a token",
    ),
    ("cuGraphLaunch", "it was starting a step"),
    ("cuEventSynchronize", "the card was computing"),
];

/// A forward that hangs in a call ends, and so does everything that is asked afterwards.
fn check_forward(library: Library, tokens: &[u32], (call, words): (&str, &str)) {
    let mut backend = CudaBackend::among(&cards(), simulated());
    let loaded = load(&mut backend, &golden_model(MODEL)).expect("it loads");
    let mut session = session(&*loaded);
    forward(&mut *session, &batch(&PROMPT));
    hang(library, call);
    let never = CancelToken::new();
    let Err(SessionError::DeviceLost { reason }) = run(&mut *session, tokens, &never) else {
        panic!("{call}: the card is lost");
    };
    let expected = format!("it did not answer for 2 seconds while {words}");
    assert!(reason.starts_with(&expected), "{call}: {reason}");
    assert_eq!(session.position(SLOT), PROMPT.len());
    let calls = library.counters();
    let again = run(&mut *session, tokens, &never);
    assert_eq!(again, Err(SessionError::DeviceLost { reason }));
    assert!(session.reset(SLOT).is_err());
    drop(session);
    drop(loaded);
    assert_eq!(
        library.counters(),
        calls,
        "{call}: the driver is asked nothing"
    );
    hang(library, "");
    settled(library);
}

scenario!(
    a_prompt_that_hangs_loses_the_card,
    "",
    |library: Library| {
        for case in PREFILL {
            check_forward(library, &PROMPT, case);
        }
    }
);

scenario!(a_reply_that_hangs_loses_the_card, "", |library: Library| {
    for case in DECODE {
        check_forward(library, &PROMPT[..1], case);
    }
});

/// Cancels a forward that hangs, which ends as cancelled while it still hangs; the session then
/// goes on as if it had never been.
fn check_stop(library: Library, model: &str, tokens: &[u32], call: &str) {
    let mut backend = CudaBackend::among(&cards(), simulated());
    let loaded = load(&mut backend, &golden_model(model)).expect("it loads");
    let mut session = session(&*loaded);
    forward(&mut *session, &batch(&PROMPT));
    let expected = forward(&mut *session, &batch(tokens));
    session.reset(SLOT).expect("the slot is there");
    forward(&mut *session, &batch(&PROMPT));
    let cancel = CancelToken::new();
    let stop = cancel.clone();
    hang(library, call);
    let stopper = thread::spawn(move || {
        thread::sleep(PATIENCE.leave / 4);
        stop.cancel();
    });
    let ended = run(&mut *session, tokens, &cancel);
    assert_eq!(ended, Ok(Outcome::Cancelled), "{model}: {call}");
    assert_eq!(session.position(SLOT), PROMPT.len(), "{model}: {call}");
    stopper.join().expect("it does no more than that");
    hang(library, "");
    let rows = forward(&mut *session, &batch(tokens));
    assert!(
        rows == expected,
        "{model}: {call}: as if there had been no stop"
    );
}

scenario!(
    a_stop_does_not_wait_for_the_driver,
    "",
    |library: Library| {
        for (call, _) in PREFILL {
            check_stop(library, MODEL, &PROMPT, call);
        }
        for call in ["cuGraphLaunch", "cuEventSynchronize"] {
            check_stop(library, MODEL, &PROMPT[..1], call);
        }
    }
);

scenario!(
    a_stop_does_not_wait_for_the_driver_with_sums_either,
    "",
    |library: Library| {
        check_stop(library, RECURRENT, &PROMPT, "cuEventSynchronize");
        check_stop(library, RECURRENT, &PROMPT[..1], "cuEventSynchronize");
    }
);

scenario!(
    what_is_asked_of_a_silent_card_after_a_stop_loses_it_soon,
    "",
    |library: Library| {
        let mut backend = CudaBackend::among(&cards(), simulated());
        let loaded = load(&mut backend, &golden_model(MODEL)).expect("it loads");
        let mut session = session(&*loaded);
        hang(library, "cuEventSynchronize");
        let cancelled = CancelToken::after(100);
        let ended = run(&mut *session, &PROMPT[..1], &cancelled);
        assert!(
            matches!(ended, Err(SessionError::DeviceLost { .. })),
            "{ended:?}"
        );
        hang(library, "");

        let mut backend = CudaBackend::among(&cards(), simulated());
        let loaded = load(&mut backend, &golden_model(MODEL)).expect("it loads");
        let mut session = self::session(&*loaded);
        hang(library, "cuCtxSetCurrent");
        let cancelled = CancelToken::new();
        cancelled.cancel();
        let ended = run(&mut *session, &PROMPT[..1], &cancelled);
        assert_eq!(ended, Ok(Outcome::Cancelled));
        let Err(SessionError::DeviceLost { reason }) = session.seek(SLOT, 0) else {
            panic!("nobody can seek");
        };
        assert!(
            reason.starts_with("it did not answer for a second while"),
            "{reason}"
        );
        hang(library, "");
    }
);

// The session's question stands behind the load that was left, which translates still: for that
// there is as much patience as ever.
scenario!(
    a_session_waits_for_the_load_that_was_left_before_it,
    "",
    |library: Library| {
        for (call, words, time) in [
            (
                "cuModuleLoadDataEx",
                "it was translating the kernels",
                "2 seconds",
            ),
            ("cuMemcpyHtoDAsync_v2", "it was copying", "a second"),
        ] {
            let mut backend = CudaBackend::among(&cards(), simulated());
            let loaded = load(&mut backend, &golden_model(MODEL)).expect("it loads");
            let mut session = session(&*loaded);
            forward(&mut *session, &batch(&PROMPT));
            stop_in(library, &mut backend, call);
            let Err(SessionError::DeviceLost { reason }) = session.seek(SLOT, 0) else {
                panic!("{call}: nobody can seek");
            };
            let expected = format!("it did not answer for {time} while {words}");
            assert!(reason.starts_with(&expected), "{call}: {reason}");
            hang(library, "");
            settled(library);
        }
    }
);

/// An engine whose card has [`PATIENCE`].
fn impatient() -> EngineHandle {
    engine(CudaBackend::among(&cards(), simulated()))
}

scenario!(
    a_reply_goes_on_with_the_processor_where_the_driver_hangs,
    "",
    |library: Library| {
        let running = Running::new(impatient());
        let (_, log) = running.reply();
        await_tokens(&log, 3);
        hang(library, "cuGraphLaunch");
        assert!(log.wait_for_end(Duration::from_secs(120)));
        let events = events(&log);
        let moved = events.iter().filter_map(|event| match event {
            Event::Moved { reason, .. } => Some(reason.as_str()),
            _ => None,
        });
        let [reason] = moved.collect::<Vec<_>>()[..] else {
            panic!("it moved once: {events:?}");
        };
        let words = "it did not answer for 2 seconds while it was starting a step";
        assert!(reason.contains(words), "{reason}");
        assert_eq!(tokens(&log), TOKENS, "none twice, none left out");
        let EngineState::Ready { model, .. } = running.handle.state().borrow().clone() else {
            panic!("the processor serves");
        };
        assert!(
            matches!(&model.passed_over[..], [passed] if matches!(passed.why, WhyNot::FailedLater { .. })),
            "{:?}",
            model.passed_over
        );
        // The next load knows it too, and the processor serves.
        let model = running.handle.load(spec()).expect("it is taken").wait();
        let model = model.expect("it loads");
        let [passed] = &model.passed_over[..] else {
            panic!("{:?}", model.passed_over);
        };
        assert!(
            matches!(
                &passed.why,
                WhyNot::Unavailable(Unavailable::DriverBroken { .. })
            ),
            "{passed:?}"
        );
        // Nobody waits for the thread, which hangs still.
        running.handle.shutdown();
    }
);

scenario!(
    a_load_goes_on_with_the_processor_where_the_driver_hangs,
    "hang=cuMemAlloc_v2",
    |_| {
        let handle = impatient();
        let model = handle.load(spec()).expect("it is taken").wait();
        let model = model.expect("it loads");
        let [passed] = &model.passed_over[..] else {
            panic!("{:?}", model.passed_over);
        };
        let WhyNot::Failed { reason } = &passed.why else {
            panic!("{passed:?}");
        };
        let words = "it did not answer for 2 seconds while it was giving memory";
        assert!(reason.contains(words), "{reason}");
        handle.shutdown();
    }
);

scenario!(
    the_engine_ends_while_the_driver_hangs,
    "",
    |library: Library| {
        let running = Running::new(impatient());
        let (_, log) = running.reply();
        await_tokens(&log, 3);
        assert!(simcuda::scenario::at_exit(wait_for_ever));
        hang(library, "cuEventSynchronize");
        while library.counters().hung() == 0 {
            assert!(!log.has_ended(), "it ended too soon: {:?}", log.read(0));
            log.wait(log.len(), Duration::from_millis(5));
        }
        // It does not wait for the card to be given up either.
        running.handle.shutdown();
        assert!(log.has_ended());
        let lost = events(&log);
        assert!(
            !lost
                .iter()
                .any(|event| matches!(event, Event::Moved { .. })),
            "{lost:?}"
        );
    }
);

/// What a driver's library may do at the end of its process: wait for the thread that hangs.
extern "C" fn wait_for_ever() {
    loop {
        thread::park();
    }
}

scenario!(
    a_program_ends_though_the_driver_would_wait_for_its_thread,
    "",
    |library: Library| {
        assert!(simcuda::scenario::at_exit(wait_for_ever));
        let mut backend = CudaBackend::among(&cards(), simulated());
        hang(library, "cuMemAlloc_v2");
        let lost = load(&mut backend, &golden_model(MODEL)).map(|_| ());
        assert!(matches!(lost, Err(LoadError::Device { .. })), "{lost:?}");
        // The process of this scenario ends now, or is found to hang.
    }
);

scenario!(
    a_program_ends_after_a_stop_that_the_card_never_answered,
    "",
    |library: Library| {
        assert!(simcuda::scenario::at_exit(wait_for_ever));
        let mut backend = CudaBackend::among(&cards(), simulated());
        stop_in(library, &mut backend, "cuInit");
        // As above. The card is not lost: nobody has waited for it that long.
    }
);
