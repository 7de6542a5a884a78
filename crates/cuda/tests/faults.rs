//! What goes wrong on a card: too little memory, kernels that fail or do nothing, a device that is
//! lost. Each scenario has a simulated machine of its own.
#![cfg(not(feature = "real-driver"))]

mod common;
#[path = "common/replies.rs"]
mod replies;

use std::time::Duration;

use candor_backend::{
    Backend, Batch, CancelToken, LoadError, Loaded, OpenError, OpenOptions, Part, Progress, Rows,
    Session, SessionError, Step, Want,
};
use candor_cuda::CudaBackend;
use candor_engine::Event;
use simcuda::{Library, scenario};

use common::{SLOT, forward, golden_model, load, options, simulated};
use replies::{MODEL, PROMPT, Running, TOKENS, await_tokens, engine, events, tokens};

fn loaded() -> Box<dyn Loaded> {
    let mut backend = CudaBackend::new(simulated());
    load(&mut backend, &golden_model(MODEL)).expect("the model loads")
}

fn session(loaded: &dyn Loaded) -> Box<dyn Session> {
    loaded.open(options(64)).expect("the session opens")
}

/// How a batch ends that is not expected to succeed.
fn end(session: &mut dyn Session, tokens: &[u32]) -> SessionError {
    let batch = Batch::of_slot(SLOT, tokens, Want::Logits);
    let mut rows = Rows::default();
    let ended = session
        .submit(&batch, &CancelToken::new())
        .and_then(|ticket| session.collect(ticket, &mut rows));
    assert!(rows.outputs.is_empty(), "a failed forward gives nothing");
    ended.expect_err("the forward fails")
}

fn logits(session: &mut dyn Session, tokens: &[u32]) -> Rows {
    forward(session, &Batch::of_slot(SLOT, tokens, Want::Logits))
}

/// A kernel fails while it runs: the device is lost, which every later call says at once.
fn check_lost(library: Library, sabotage: &str, tokens: &[u32]) {
    let loaded = loaded();
    let mut session = session(&*loaded);
    logits(&mut *session, &PROMPT);
    library.apply(sabotage).expect("the machine knows it");
    let SessionError::DeviceLost { reason } = end(&mut *session, tokens) else {
        panic!("the device is lost");
    };
    assert!(reason.contains("a kernel failed"), "{reason}");
    assert_eq!(session.position(SLOT), PROMPT.len());
    let launches = library.counters().launches();
    let again = end(&mut *session, tokens);
    assert!(matches!(again, SessionError::DeviceLost { .. }), "{again}");
    assert_eq!(
        library.counters().launches(),
        launches,
        "nobody tries again"
    );
}

scenario!(
    a_kernel_that_fails_in_a_prompt_loses_the_device,
    "",
    |library| {
        check_lost(library, "launch=3:719", &PROMPT);
    }
);

scenario!(
    a_kernel_that_fails_in_a_reply_loses_the_device,
    "",
    |library| {
        check_lost(library, "launch=7:719", &PROMPT[..1]);
    }
);

scenario!(
    a_model_that_does_not_fit_is_refused,
    "memory=300K",
    |library: Library| {
        let mut backend = CudaBackend::new(simulated());
        let model = golden_model(MODEL);
        let ended = load(&mut backend, &model).map(|_| ());
        let Err(LoadError::OutOfMemory {
            needed_bytes,
            available_bytes,
        }) = ended
        else {
            panic!("{ended:?}");
        };
        assert!(available_bytes <= 300 << 10 && needed_bytes > available_bytes);
        assert!(
            needed_bytes > 300 << 10,
            "what the weights take, and the smallest session: {needed_bytes}"
        );
        let counters = library.counters();
        assert_eq!((counters.allocations(), counters.uploads()), (0, 0));
    }
);

scenario!(
    a_state_that_does_not_fit_is_refused,
    "memory=40M",
    |library: Library| {
        let loaded = loaded();
        let before = library.counters().alive_bytes();
        let large = OpenOptions {
            ctx_len: 1 << 20,
            state_tokens: 1 << 20,
            ..options(64)
        };
        let ended = loaded.open(large).map(|_| ());
        assert!(
            matches!(ended, Err(OpenError::OutOfMemory { needed_bytes, available_bytes })
            if needed_bytes > available_bytes && available_bytes < 40 << 20),
            "{ended:?}"
        );
        assert_eq!(
            library.counters().alive_bytes(),
            before,
            "nothing was taken"
        );
        logits(&mut *session(&*loaded), &PROMPT);
    }
);

/// Stops at its nth question.
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

scenario!(what_was_taken_is_given_back, "", |library: Library| {
    let mut backend = CudaBackend::new(simulated());
    let model = golden_model(MODEL);
    let held = |library: &Library| {
        let counters = library.counters();
        (counters.alive(), counters.pinned())
    };
    for n in [0, 3, 30, 40] {
        let ended = backend
            .load(model.clone(), Part::All, &mut StopAt(n))
            .map(|_| ());
        assert!(
            matches!(ended, Err(LoadError::Stopped)),
            "question {n}: {ended:?}"
        );
        assert_eq!(held(&library), (0, 0), "stopped at question {n}");
    }
    library.apply("allocation=1").expect("the machine knows it");
    let ended = load(&mut backend, &model).map(|_| ());
    assert!(
        matches!(ended, Err(LoadError::OutOfMemory { .. })),
        "{ended:?}"
    );
    assert_eq!(held(&library), (0, 0));

    let loaded = load(&mut backend, &model).expect("the model loads");
    let of_weights = held(&library);
    assert_eq!(of_weights.1, 0, "pinned pieces are for the way only");
    for n in 1..=2 {
        library
            .apply(&format!("allocation={n}"))
            .expect("the machine knows it");
        let ended = loaded.open(options(64)).map(|_| ());
        assert!(
            matches!(ended, Err(OpenError::OutOfMemory { .. })),
            "{ended:?}"
        );
        assert_eq!(held(&library), of_weights);
    }
    library.apply("allocation=").expect("the machine knows it");
    let mut session = session(&*loaded);
    logits(&mut *session, &PROMPT);
    drop(session);
    assert_eq!(held(&library), of_weights);
    drop(loaded);
    assert_eq!(held(&library), (0, 0));
});

scenario!(
    a_kernel_that_gives_no_numbers_is_an_error,
    "",
    |library: Library| {
        let loaded = loaded();
        let mut session = session(&*loaded);
        let expected = logits(&mut *session, &PROMPT);
        for tokens in [&PROMPT[..], &PROMPT[..1]] {
            library
                .apply("kernel=rms_norm*:nan,kernel=add*:nan")
                .expect("the machine knows it");
            let ended = end(&mut *session, tokens);
            assert!(matches!(ended, SessionError::NotFinite { .. }), "{ended}");
            assert_eq!(session.position(SLOT), PROMPT.len());
            library.apply("kernel=").expect("the machine knows it");
        }
        session.reset(SLOT).expect("the slot is there");
        assert!(
            logits(&mut *session, &PROMPT) == expected,
            "as if nothing had been"
        );
    }
);

scenario!(
    a_kernel_that_does_nothing_is_seen,
    "kernel=rms_norm*:nothing,kernel=add*:nothing",
    |_| {
        let loaded = loaded();
        let ended = end(&mut *session(&*loaded), &PROMPT);
        assert!(matches!(ended, SessionError::NotFinite { .. }), "{ended}");
    }
);

scenario!(
    the_oldest_cards_run_their_own_kernels,
    "capability=7.5",
    |_| {
        let loaded = loaded();
        let mut session = session(&*loaded);
        logits(&mut *session, &PROMPT);
        logits(&mut *session, &PROMPT[..1]);
    }
);

/// A card fails while a reply is written: the processor writes it on, which is said once, and the
/// card is left alone from then on, by the next reply too.
fn check_moved(library: Library, fault: &str, words: &str) {
    let running = Running::new(engine(CudaBackend::new(simulated())));
    let (_, log) = running.reply();
    await_tokens(&log, 3);
    library.apply(fault).expect("the machine knows it");
    assert!(log.wait_for_end(Duration::from_secs(120)));
    let all = events(&log);
    let moved = all.iter().filter_map(|event| match event {
        Event::Moved { reason, .. } => Some(reason.as_str()),
        _ => None,
    });
    let [reason] = moved.collect::<Vec<_>>()[..] else {
        panic!("it moved once: {all:?}");
    };
    assert!(reason.contains(words), "{reason}");
    assert_eq!(tokens(&log), TOKENS, "none twice, none left out");
    let launches = library.counters().launches();
    let (_, next) = running.reply();
    assert!(next.wait_for_end(Duration::from_secs(120)));
    assert_eq!(tokens(&next), TOKENS);
    assert!(
        !events(&next)
            .iter()
            .any(|event| matches!(event, Event::Moved { .. }))
    );
    assert_eq!(
        library.counters().launches(),
        launches,
        "nobody tries again"
    );
    running.handle.shutdown();
}

macro_rules! moved {
    ($($(#[$doc:meta])* $name:ident: $fault:literal, $words:literal;)*) => {
        $(scenario!($(#[$doc])* $name, "", |library: Library| {
            check_moved(library, $fault, $words);
        });)*
    };
}

moved! {
    /// Memory that is not the kernel's own.
    an_illegal_address_in_a_reply_moves_it: "launch=9:700", "a kernel touched memory that is not its own";
    /// The system's watchdog of cards that show a screen too.
    a_watchdog_in_a_reply_moves_it: "launch=9:702", "702";
    a_kernel_that_fails_in_a_reply_moves_it: "launch=9:719", "a kernel failed";
    memory_that_is_missing_in_a_reply_moves_it: "fail=cuGraphLaunch:1:2", "memory";
}
