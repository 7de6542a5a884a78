//! How much a card computes after somebody said stop, and how much it is asked for a token: counted,
//! not timed. Each scenario has a simulated machine of its own.
#![cfg(not(feature = "real-driver"))]

mod common;
#[path = "common/replies.rs"]
mod replies;

use std::sync::Arc;
use std::time::Duration;

use candor_backend::{Batch, CancelToken, Loaded, Model, Outcome, Rows, Session, Want};
use candor_cuda::CudaBackend;
use candor_engine::{Event, FinishReason, TurnLog};
use candor_testkit::large::LargeModel;
use simcuda::{Library, scenario};

use common::{SLOT, forward, golden_model, load, model, options, simulated};
use replies::{Running, TOKENS, await_tokens, engine, events, tokens};

/// More than the tensor cores' rows of one tile.
const PROMPT: usize = 70;

fn prompt() -> Vec<u32> {
    (0..PROMPT as u32).map(|i| i * 7 % 50).collect()
}

fn loaded() -> Box<dyn Loaded> {
    let mut backend = CudaBackend::new(simulated());
    load(&mut backend, &golden_model("s04-llama-q8_0.gguf")).expect("the model loads")
}

fn stopped(session: &mut dyn Session, batch: &Batch, cancel: &CancelToken) -> Outcome {
    let mut rows = Rows::default();
    let ticket = session
        .submit(batch, cancel)
        .expect("the batch is accepted");
    let outcome = session.collect(ticket, &mut rows);
    let outcome = outcome.expect("a stop is no failure");
    assert_eq!(outcome == Outcome::Cancelled, rows.outputs.is_empty());
    outcome
}

scenario!(
    a_stop_ends_a_prompt_at_the_next_step,
    "",
    |library: Library| {
        let loaded = loaded();
        let mut session = loaded.open(options(256)).expect("the session opens");
        let batch = Batch::of_slot(SLOT, &prompt(), Want::Logits);
        let expected = forward(&mut *session, &batch);
        let all = library.counters().launches();
        session.reset(SLOT).expect("the slot is there");
        let mut before = 0;
        for questions in [0, 1, 2, 5, 9] {
            let start = library.counters().launches();
            let outcome = stopped(&mut *session, &batch, &CancelToken::after(questions));
            let launched = library.counters().launches() - start;
            assert_eq!(outcome, Outcome::Cancelled, "after {questions} questions");
            assert_eq!(session.position(SLOT), 0);
            assert!(
                questions > 1 || launched == 0,
                "nothing is launched before the second question"
            );
            assert!((before..all).contains(&launched), "{launched} of {all}");
            before = launched;
        }
        assert!(before > 0, "some of it was launched");
        assert!(
            forward(&mut *session, &batch) == expected,
            "as if there had been no stop"
        );
    }
);

scenario!(
    a_stop_before_a_token_launches_nothing,
    "",
    |library: Library| {
        let loaded = loaded();
        let mut session = loaded.open(options(256)).expect("the session opens");
        let tokens = prompt();
        forward(&mut *session, &Batch::of_slot(SLOT, &tokens, Want::Nothing));
        let batch = Batch::of_slot(SLOT, &[1], Want::Top { k: 1 });
        forward(&mut *session, &batch);
        let launches = library.counters().launches();
        let cancelled = CancelToken::new();
        cancelled.cancel();
        assert_eq!(
            stopped(&mut *session, &batch, &cancelled),
            Outcome::Cancelled
        );
        assert_eq!(library.counters().launches(), launches);
        assert_eq!(session.position(SLOT), PROMPT + 1);
    }
);

/// Models of the usual form, and with experts: of one type, and of several with biases.
const FORMS: [&str; 3] = [
    "s04-llama-q8_0.gguf",
    "s14-qwen3moe-q4_k_m.gguf",
    "s27-gpt-oss-mxfp4.gguf",
];

/// Bytes of the report on a row with its largest logits, as `kernels/ops/top.cu` writes it: two words,
/// and 64 ids with their values.
const REPORT_BYTES: u64 = (2 + 2 * 64) * 4;

/// A token is asked for as a whole, its result too, before the host waits for any of it: the chosen
/// experts are known to nobody but the card.
fn check_token(library: Library, name: &str) {
    let mut backend = CudaBackend::new(simulated());
    let loaded = load(&mut backend, &golden_model(name)).expect("the model loads");
    let mut session = loaded.open(options(256)).expect("the session opens");
    let batch = Batch::of_slot(SLOT, &[1], Want::Top { k: 1 });
    let first = library.counters();
    forward(&mut *session, &batch);
    let ready = library.counters();
    assert_eq!(ready.captures() - first.captures(), 1, "{name}");
    for _ in 0..5 {
        let before = library.counters();
        let ticket = session.submit(&batch, &CancelToken::new());
        let ticket = ticket.expect("the batch is accepted");
        let asked = library.counters();
        // The rows go there, their report comes back; the ring of pinned memory is waited for, whose
        // piece was last used for a token that has ended. Nothing of this one has run.
        assert_eq!(asked.graph_launches() - before.graph_launches(), 1);
        assert_eq!(asked.uploads() - before.uploads(), 1, "{name}");
        assert_eq!(asked.downloads() - before.downloads(), 1, "{name}");
        let downloaded = asked.downloaded_bytes() - before.downloaded_bytes();
        assert_eq!(downloaded, REPORT_BYTES, "{name}");
        assert_eq!(asked.syncs() - before.syncs(), 1, "{name}");
        assert_eq!(asked.runs(), before.runs(), "{name}");
        let mut rows = Rows::default();
        let outcome = session.collect(ticket, &mut rows);
        assert_eq!((outcome, rows.outputs.len()), (Ok(Outcome::Done), 1));
        let ended = library.counters();
        assert_eq!(ended.syncs() - asked.syncs(), 1, "{name}: one wait");
        assert_eq!(ended.launches(), asked.launches(), "{name}");
        assert_eq!(ended.uploads(), asked.uploads(), "{name}");
        assert_eq!(ended.downloads(), asked.downloads(), "{name}");
        let launched = asked.launches() - before.launches();
        assert_eq!(ended.runs() - asked.runs(), launched, "{name}");
    }
    let after = library.counters();
    for (what, before, after) in [
        ("captures", ready.captures(), after.captures()),
        (
            "launches of one kernel",
            ready.calls_of("cuLaunchKernel"),
            after.calls_of("cuLaunchKernel"),
        ),
        ("allocations", ready.allocations(), after.allocations()),
        ("modules", ready.modules(), after.modules()),
        ("copies", ready.device_copies(), after.device_copies()),
        ("fills", ready.fills(), after.fills()),
        ("waits", ready.stream_syncs(), after.stream_syncs()),
        ("turns", 0, after.spinning_event_syncs()),
    ] {
        assert_eq!(before, after, "{name}: {what}");
    }
}

scenario!(
    a_token_is_one_launch_of_a_graph_and_one_wait,
    "",
    |library: Library| {
        FORMS
            .into_iter()
            .for_each(|name| check_token(library, name));
    }
);

/// Launches of a token beside those of the layers: the embedding, the norm before the first layer
/// (every other one goes with the sum before it), the logits, and the report on them.
const LAUNCHES_BESIDE: u64 = 4;

/// A model, the launches of each of its layers, and in how many layers the values' matrix is of
/// another type than those of queries and keys: that takes a launch of its own.
type Launches = (&'static str, u64, u64);

/// What a token launches is a sum that `docs/performance.md` reckons with, at every reach of the
/// context.
fn check_launches(library: Library, model: &Arc<Model>, (name, of_a_layer, more): Launches) {
    let mut backend = CudaBackend::new(simulated());
    let loaded = load(&mut backend, model).expect("the model loads");
    let mut session = loaded.open(options(8_192)).expect("the session opens");
    let layers = model.graph.hparams.n_layers as u64;
    let ways = session.ways();
    assert_eq!(ways, [1_024, 4_096, 8_192], "{name}");
    for way in ways {
        session.take_way(way);
        let before = library.counters();
        forward(&mut *session, &Batch::of_slot(SLOT, &[1], Want::Logits));
        let after = library.counters();
        assert_eq!(after.graph_launches() - before.graph_launches(), 1);
        assert_eq!(
            after.launches() - before.launches(),
            of_a_layer * layers + more + LAUNCHES_BESIDE,
            "{name}, {way}: {:?}",
            after.launched().collect::<Vec<_>>()
        );
    }
}

scenario!(
    a_layer_of_a_reply_takes_few_launches,
    "",
    |library: Library| {
        for case in [
            ("s04-llama-q8_0.gguf", 9, 0),
            ("s27-gpt-oss-mxfp4.gguf", 10, 0),
        ] {
            check_launches(library, &golden_model(case.0), case);
        }
        // The real shapes but for their size, in the types of a file that is named Q4_K_M.
        for case in [("llama-tiny", 9, 1), ("qwen3moe-tiny", 10, 1)] {
            let folder = tempfile::tempdir().expect("there is room for it");
            let path = folder.path().join(case.0);
            let shape = LargeModel::by_name(case.0).expect("it is known");
            shape.write(&path, 1).expect("it is written");
            check_launches(library, &model(&path), case);
        }
    }
);

scenario!(steps_give_what_their_graph_gives, "", |library: Library| {
    let model = golden_model("s04-llama-q8_0.gguf");
    let stepwise = CudaBackend::new(simulated()).stepwise();
    let all: Vec<Vec<Rows>> = [CudaBackend::new(simulated()), stepwise]
        .into_iter()
        .map(|mut backend| {
            let loaded = load(&mut backend, &model).expect("the model loads");
            let mut session = loaded.open(options(256)).expect("the session opens");
            let batches = [&[3_u32, 1, 4][..], &[1], &[5], &[9, 2, 6, 5, 3]];
            let batches = batches.iter();
            batches
                .map(|tokens| forward(&mut *session, &Batch::of_slot(SLOT, tokens, Want::Logits)))
                .collect()
        })
        .collect();
    assert!(all[0] == all[1], "the same bits");
    assert_eq!(
        library.counters().graph_launches(),
        4,
        "of the first backend alone"
    );
});

/// How a reply ends that was stopped: the events behind its last token.
fn check_stopped(log: &TurnLog) {
    assert!(log.wait_for_end(Duration::from_secs(60)));
    let events = events(log);
    let ended = |event: &Event| matches!(event, Event::Finished { reason, .. } if *reason == FinishReason::Cancelled);
    assert!(events.last().is_some_and(ended), "{events:?}");
}

scenario!(
    a_stop_before_a_reply_launches_nothing,
    "",
    |library: Library| {
        let running = Running::new(engine(CudaBackend::new(simulated())));
        let launches = library.counters().launches();
        let cancelled = CancelToken::new();
        cancelled.cancel();
        let log = running.reply_to(&replies::PROMPT, &cancelled);
        check_stopped(&log);
        assert_eq!(tokens(&log), 0);
        assert_eq!(library.counters().launches(), launches);
        running.handle.shutdown();
    }
);

scenario!(
    a_stop_ends_a_reply_with_the_token_under_way,
    "",
    |library: Library| {
        let running = Running::new(engine(CudaBackend::new(simulated())));
        let before = library.counters();
        let (cancel, log) = running.reply();
        await_tokens(&log, 3);
        cancel.cancel();
        check_stopped(&log);
        let written = tokens(&log);
        assert!((3..TOKENS).contains(&written), "{written}");
        let after = library.counters();
        // The first token is the prompt's; behind the last one a further one was at most begun.
        let forwards = after.graph_launches() - before.graph_launches();
        let of_written = written as u64 - 1;
        assert!(
            (of_written..=of_written + 1).contains(&forwards),
            "{forwards} forwards for {written} tokens"
        );
        running.handle.shutdown();
        assert_eq!(library.counters().launches(), after.launches());
    }
);

scenario!(
    two_forwards_are_under_way_at_once,
    "",
    |library: Library| {
        let loaded = loaded();
        let mut session = loaded.open(options(256)).expect("the session opens");
        let expected: Vec<Rows> = [3, 4]
            .iter()
            .map(|token| {
                forward(
                    &mut *session,
                    &Batch::of_slot(SLOT, &[*token], Want::Logits),
                )
            })
            .collect();
        session.reset(SLOT).expect("the slot is there");
        let runs = library.counters().runs();
        let never = CancelToken::new();
        let tickets = [3, 4].map(|token| {
            let batch = Batch::of_slot(SLOT, &[token], Want::Logits);
            session
                .submit(&batch, &never)
                .expect("the batch is accepted")
        });
        assert_eq!(library.counters().runs(), runs, "nobody has waited yet");
        for (ticket, expected) in tickets.into_iter().zip(&expected) {
            let mut rows = Rows::default();
            let outcome = session.collect(ticket, &mut rows);
            assert_eq!(outcome, Ok(Outcome::Done));
            assert!(rows == *expected);
        }
    }
);
