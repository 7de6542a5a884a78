//! How much a card computes after somebody said stop, and how much it is asked for a token: counted,
//! not timed. Each scenario has a simulated machine of its own.
#![cfg(not(feature = "real-driver"))]

mod common;

use candor_backend::{Batch, CancelToken, Loaded, Outcome, Rows, Session, Want};
use candor_cuda::CudaBackend;
use simcuda::{Library, scenario};

use common::{SLOT, forward, golden_model, load, options, simulated};

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

scenario!(
    a_token_is_one_launch_of_a_graph_and_one_wait,
    "",
    |library: Library| {
        let loaded = loaded();
        let mut session = loaded.open(options(256)).expect("the session opens");
        let batch = Batch::of_slot(SLOT, &[1], Want::Top { k: 1 });
        forward(&mut *session, &batch);
        let before = library.counters();
        assert_eq!((before.captures(), before.graph_launches()), (1, 1));
        for _ in 0..5 {
            forward(&mut *session, &batch);
        }
        let after = library.counters();
        assert_eq!((after.captures(), after.graph_launches()), (1, 6));
        assert_eq!(
            after.calls_of("cuLaunchKernel"),
            before.calls_of("cuLaunchKernel")
        );
        assert_eq!(after.allocations(), before.allocations());
        assert_eq!(after.modules(), before.modules());
        // The rows go there, their report comes back; the ring of pinned memory is waited for too.
        assert_eq!(after.uploads() - before.uploads(), 5);
        assert_eq!(after.downloads() - before.downloads(), 5);
        assert_eq!(after.stream_syncs(), before.stream_syncs());
        assert_eq!(
            after.blocking_event_syncs() - before.blocking_event_syncs(),
            2 * 5
        );
        assert_eq!(after.spinning_event_syncs(), 0);
    }
);

scenario!(
    a_layer_of_a_reply_takes_few_launches,
    "",
    |library: Library| {
        // The model, layers, and launches of each. Beside them are the embedding, the norm before the
        // first layer (every other one goes with the sum before it), the logits, and the report on them.
        let cases = [
            ("s04-llama-q8_0.gguf", 3, 9),
            ("s27-gpt-oss-mxfp4.gguf", 3, 11),
        ];
        for (name, layers, launches) in cases {
            let mut backend = CudaBackend::new(simulated());
            let model = golden_model(name);
            assert_eq!(model.graph.hparams.n_layers, layers, "{name}");
            let loaded = load(&mut backend, &model).expect("the model loads");
            let mut session = loaded.open(options(64)).expect("the session opens");
            let before = library.counters().launches();
            forward(&mut *session, &Batch::of_slot(SLOT, &[1], Want::Logits));
            let found = library.counters().launches() - before;
            assert!(
                found <= launches * layers as u64 + 4,
                "{name}: {found} launches"
            );
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
