//! Vectors of texts over a scripted session, whose rows are its logits.

use candor_backend::{Row, SlotId, Want};
use candor_testkit::scripted::Script;

use super::*;
use crate::FinishReason;
use crate::load::Live;
use crate::schedule::step;
use crate::sequence::Sequence;
use crate::testing::{LETTERS, clock, end_of, events, live, options, prompt, request};
use crate::turn_log::Event;

/// Moves everything to its end.
fn run(live: &mut Live, mut sequences: Vec<Sequence>) {
    while !sequences.is_empty() {
        let ended = step(live.servable().unwrap(), &mut sequences).ended;
        for sequence in ended {
            sequence.close(clock()(), || unreachable!("an ended sequence has an end"));
        }
    }
}

fn vector(log: &TurnLog) -> Vec<f32> {
    let found = events(log).into_iter().filter_map(|event| match event {
        Event::Embedding(vector) => Some(vector.to_vec()),
        _ => None,
    });
    let mut found: Vec<_> = found.collect();
    assert_eq!(found.len(), 1);
    found.remove(0)
}

/// What a session that nothing happened to makes of a text: its rows, forwarded one by one.
fn rows(tokens: &[u32]) -> Vec<Vec<f32>> {
    let script = Script::new(LETTERS);
    let mut live = live(&script, 2_048, 1);
    let vocabulary = live.info.vocabulary;
    let servable = live.servable().unwrap();
    let row = |&token: &u32| {
        let batch = candor_backend::Batch {
            rows: vec![Row {
                slot: SlotId(0),
                feed: candor_backend::Feed::Token(token),
                want: Want::Hidden,
            }],
        };
        servable.forward(&batch, &CancelToken::new()).unwrap();
        match &servable.rows().outputs[..] {
            [RowOutput::Hidden(values)] => values.clone(),
            other => panic!("{} outputs", other.len()),
        }
    };
    let rows: Vec<Vec<f32>> = tokens.iter().map(row).collect();
    assert!(rows.iter().all(|row| row.len() == vocabulary));
    rows
}

fn of_length_one(values: &[f64]) -> Vec<f32> {
    let length = values.iter().map(|value| value * value).sum::<f64>().sqrt();
    values.iter().map(|value| (value / length) as f32).collect()
}

fn expected(tokens: &[u32], pooling: Pooling) -> Vec<f32> {
    let rows = rows(tokens);
    let first = match pooling {
        Pooling::Mean => 0,
        Pooling::Last => rows.len() - 1,
    };
    let sum = |i: usize| rows[first..].iter().map(|row| f64::from(row[i])).sum();
    of_length_one(&(0..rows[0].len()).map(sum).collect::<Vec<f64>>())
}

#[test]
fn a_vector_is_of_all_rows_or_of_the_last_whatever_else_is_computed() {
    let script = Script::new(LETTERS);
    let mut live = live(&script, 2_048, 3);
    for pooling in [Pooling::Mean, Pooling::Last] {
        // One token, a few, more than one chunk; twice, so that the slots hold the beginning.
        for len in [1, 7, 700, 700] {
            let text = prompt(3, len);
            let embed = EmbedRequest::pooled(
                &live.info,
                text.clone(),
                (pooling, Priority::Background),
                CancelToken::new(),
            );
            let embed = embed.unwrap();
            let log = embed.log();
            let (reply, _, written) = request(&live.info, options(prompt(4, 30), 5));
            let tokenizer = || Arc::clone(&live.info.tokenizer);
            let both = vec![
                Sequence::new(embed.0, tokenizer()),
                Sequence::new(reply, tokenizer()),
            ];
            run(&mut live, both);
            let found = vector(&log);
            let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-6;
            assert!(
                found.iter().zip(&expected(&text, pooling)).all(near),
                "{pooling:?} of {len}"
            );
            let Event::Finished { reason, stats } = end_of(&log) else {
                panic!("it did not finish");
            };
            assert_eq!((reason, stats.generated_tokens), (FinishReason::Stop, 0));
            assert_eq!(crate::testing::ids(&written).len(), 5);
        }
    }
}

#[test]
fn a_stopped_one_gives_no_vector() {
    let script = Script::new(LETTERS);
    let mut live = live(&script, 2_048, 1);
    let cancel = CancelToken::new();
    let embed = EmbedRequest::new(
        &live.info,
        prompt(1, 900),
        Priority::Interactive,
        cancel.clone(),
    );
    let embed = embed.unwrap();
    let log = embed.log();
    let mut sequences = vec![Sequence::new(embed.0, Arc::clone(&live.info.tokenizer))];
    step(live.servable().unwrap(), &mut sequences);
    cancel.cancel();
    run(&mut live, sequences);
    assert!(
        !events(&log)
            .iter()
            .any(|event| matches!(event, Event::Embedding(_)))
    );
    let Event::Finished { reason, .. } = end_of(&log) else {
        panic!("it did not finish");
    };
    assert_eq!(reason, FinishReason::Cancelled);
}

#[test]
fn who_gives_no_rows_gives_no_vector_and_says_so() {
    let script = Script::new(LETTERS);
    script.offers_no_rows();
    let mut live = live(&script, 2_048, 1);
    let embed = EmbedRequest::new(
        &live.info,
        prompt(1, 9),
        Priority::Interactive,
        CancelToken::new(),
    );
    let embed = embed.unwrap();
    let log = embed.log();
    let sequences = vec![Sequence::new(embed.0, Arc::clone(&live.info.tokenizer))];
    run(&mut live, sequences);
    let failed = matches!(
        end_of(&log),
        Event::Failed {
            code: crate::TurnCode::NotOffered,
            ..
        }
    );
    assert!(failed, "{:?}", end_of(&log));
    assert_eq!(script.counts().submitted, 0);
}
