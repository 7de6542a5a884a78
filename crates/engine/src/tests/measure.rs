//! Direct sessions: logits of every position, and measurements of the shipped loop by the forwards
//! that they run.

use candor_backend::{Backend, Step};
use candor_testkit::scripted::Fault;

use super::*;
use crate::direct::{DecodeRun, Direct, DirectError};
use crate::testing::prompt;

fn direct(script: &Script, ctx_len: usize, slots: usize) -> Direct {
    let folder = ModelFolder::new();
    let options = LoadOptions {
        ctx_len: Some(ctx_len),
        slots,
        ..LoadOptions::default()
    };
    let spec = folder.spec("tiny.gguf", options);
    let mut backends: Vec<Box<dyn Backend>> = vec![Box::new(script.backend())];
    Direct::load(&mut backends, &spec, &config(), &mut |_, _, _| Step::Go).unwrap()
}

#[test]
fn logits_of_a_position_do_not_depend_on_how_many_are_wanted() {
    let ids = prompt(0, 700);
    let mut all = Vec::new();
    let script = Script::new(LETTERS);
    let mut session = direct(&script, 1_024, 1);
    let never = CancelToken::new();
    session
        .logits(&ids, 0, &never, &mut |at, logits| {
            all.push((at, logits.to_vec()))
        })
        .unwrap();
    assert_eq!(
        all.iter().map(|(at, _)| *at).collect::<Vec<_>>(),
        (0..700).collect::<Vec<_>>()
    );
    for first in [1, 512, 699, 700] {
        let mut some = Vec::new();
        session
            .logits(&ids, first, &never, &mut |at, logits| {
                some.push((at, logits.to_vec()))
            })
            .unwrap();
        assert_eq!(some, all[first..], "from {first}");
    }
}

#[test]
fn a_measurement_runs_the_forwards_it_says() {
    let script = Script::new(LETTERS);
    let mut session = direct(&script, 1_024, 3);
    let never = CancelToken::new();
    for _ in 0..2 {
        let before = script.counts().rows.len();
        session.time_prefill(&prompt(0, 600), &never).unwrap();
        assert_eq!(
            script.counts().rows[before..],
            [512, 88],
            "from an empty context each time"
        );
    }
    let token = |sequence: usize, place: usize| LETTERS.start + ((sequence + place) % 26) as u32;
    for (parallel, depth, tokens) in [(1, 0, 5), (1, 40, 5), (3, 0, 4), (3, 100, 4)] {
        for _ in 0..2 {
            let before = script.counts().rows.len();
            let run = DecodeRun {
                tokens,
                depth,
                parallel,
            };
            session.time_decode(run, &token, &never).unwrap();
            let rows = &script.counts().rows[before..];
            let measured = &rows[rows.len() - tokens..];
            assert_eq!(measured, vec![parallel; tokens], "{run:?}: {rows:?}");
        }
    }
}

#[test]
fn a_measurement_that_cannot_be_made_says_so() {
    let script = Script::new(LETTERS);
    let mut session = direct(&script, 64, 1);
    let never = CancelToken::new();
    let token = |_: usize, place: usize| LETTERS.start + (place % 26) as u32;
    let run = DecodeRun {
        tokens: 100,
        depth: 10,
        parallel: 1,
    };
    let error = session.time_decode(run, &token, &never).unwrap_err();
    assert!(matches!(error, DirectError::ContextFull), "{error}");

    let stop = CancelToken::new();
    let call = stop.clone();
    let forward = script.counts().submitted;
    script.at_forward(forward, Fault::Before(Box::new(move || call.cancel())));
    let error = session.time_prefill(&prompt(0, 20), &stop).unwrap_err();
    assert!(matches!(error, DirectError::Stopped), "{error}");
    let error = session
        .logits(&prompt(0, 20), 0, &stop, &mut |_, _| ())
        .unwrap_err();
    assert!(matches!(error, DirectError::Stopped), "{error}");
    let error = session.logits(&[], 0, &never, &mut |_, _| ()).unwrap_err();
    assert!(
        matches!(error, DirectError::Request(RequestError::EmptyPrompt)),
        "{error}"
    );
    assert!(session.time_prefill(&prompt(0, 20), &never).is_ok());
}
