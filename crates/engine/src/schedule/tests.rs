//! Counts of the shipped loop over a scripted session.

use std::sync::Arc;

use candor_backend::{CancelToken, SessionError};
use candor_testkit::scripted::{Fault, Script};

mod constrained;
mod crowd;
mod real;
mod stop;
mod together;

use super::*;
use crate::load::Live;
use crate::message::Stats;
use crate::request::{EndTokens, GenerateOptions, Priority};
use crate::sequence::End;
use crate::testing::{LETTERS, end_of, ids, live, options, prompt, request, text};
use crate::turn_log::{Event, TurnLog};

/// A tiny model in this thread, and the sequences it works on.
struct Bench {
    script: Script,
    live: Live,
    sequences: Vec<Sequence>,
}

impl Bench {
    fn new(ctx_len: usize, slots: usize) -> Self {
        let script = Script::new(LETTERS);
        let live = live(&script, ctx_len, slots);
        Self::over(script, live)
    }

    fn over(script: Script, live: Live) -> Self {
        let sequences = Vec::new();
        Self {
            script,
            live,
            sequences,
        }
    }

    fn add(&mut self, options: GenerateOptions) -> (CancelToken, Arc<TurnLog>) {
        let (request, cancel, log) = request(&self.live.info, options);
        self.sequences.push(Sequence::new(
            request,
            Arc::clone(&self.live.info.tokenizer),
        ));
        (cancel, log)
    }

    /// One step, whose ended sequences are closed as the engine thread does it.
    fn step(&mut self) -> Progress {
        let mut progress = step(self.live.servable().unwrap(), &mut self.sequences);
        let now = (crate::testing::clock())();
        for sequence in progress.ended.drain(..) {
            sequence.close(now, || unreachable!("an ended sequence has an end"));
        }
        progress
    }

    fn run(&mut self) {
        for _ in 0..10_000 {
            if self.sequences.is_empty() {
                return;
            }
            self.step();
        }
        panic!("the sequences did not end");
    }

    fn reply(&mut self, options: GenerateOptions) -> (Vec<u32>, Stats) {
        let (_, log) = self.add(options);
        self.run();
        (ids(&log), finished(&log).1)
    }
}

fn finished(log: &TurnLog) -> (FinishReason, Stats) {
    match end_of(log) {
        Event::Finished { reason, stats } => (reason, stats),
        other => panic!("the reply did not finish: {other:?}"),
    }
}

fn failed(log: &TurnLog) -> TurnCode {
    match end_of(log) {
        Event::Failed { code, .. } => code,
        other => panic!("the reply did not fail: {other:?}"),
    }
}

#[test]
fn sequences_in_slots_share_forwards_and_write_what_they_write_alone() {
    let cases: [(u32, usize, usize); 4] = [(1, 700, 9), (2, 3, 30), (3, 40, 5), (4, 1_100, 2)];
    let alone = cases.map(|(seed, len, max)| {
        Bench::new(2_048, 1)
            .reply(options(prompt(seed, len), max))
            .0
    });
    for slots in 1..=4 {
        let mut bench = Bench::new(2_048, slots);
        let logs = cases.map(|(seed, len, max)| bench.add(options(prompt(seed, len), max)).1);
        bench.run();
        for (log, alone) in logs.iter().zip(&alone) {
            assert_eq!(&ids(log), alone, "{slots} slots");
        }
        for batch in bench.script.batches() {
            let slots_in = |slot: usize| batch.rows.iter().any(|row| row.slot == SlotId(slot));
            assert!((0..slots).filter(|&slot| slots_in(slot)).count() >= 1);
            assert!(batch.rows.len() < CHUNK_TOKENS + slots);
        }
    }
    let mut bench = Bench::new(2_048, 2);
    bench.add(options(prompt(1, 3), 6));
    bench.step();
    bench.add(options(prompt(2, 600), 3));
    bench.run();
    // The first goes on writing while the second reads its prompt, and waits for little of it.
    let beside = 1 + CHUNK_TOKENS_BESIDE_WRITERS;
    let rows = [3, beside, beside, beside, beside, 1 + 88, 1, 1];
    assert_eq!(bench.script.counts().rows, rows);
}

#[test]
fn a_turn_goes_on_from_what_the_slot_holds() {
    // Cut multiple, tokens of the next prompt shared with the slot's, expected to be reused.
    let cases = [
        (1, 60, 60),
        (1, 30, 30),
        (1, 10, 10),
        (16, 60, 48),
        (16, 10, 0),
    ];
    for (cut, shared, expected) in cases {
        let mut bench = Bench::new(512, 1);
        bench.script.cut_only_at(cut);
        let first = prompt(0, 60);
        let written = bench.reply(options(first.clone(), 8)).0;
        let mut next = first;
        next.extend(written);
        next.truncate(shared);
        next.extend([1, 2, 3]);
        let before = bench.script.counts().rows.iter().sum::<usize>();
        let (reply, stats) = bench.reply(options(next.clone(), 5));
        let computed = bench.script.counts().rows.iter().sum::<usize>() - before;
        assert_eq!(stats.cached_tokens, expected, "cut {cut}, shared {shared}");
        assert_eq!(computed, next.len() - expected + 4);
        assert_eq!(reply, Bench::new(512, 1).reply(options(next, 5)).0);
    }
    let mut bench = Bench::new(512, 1);
    let again = options(prompt(0, 60), 8);
    let first = bench.reply(again.clone()).0;
    let (second, stats) = bench.reply(again);
    assert_eq!(
        (second, stats.cached_tokens),
        (first, 59),
        "the last token is computed again"
    );
}

#[test]
fn whoever_waits_gets_a_slot_by_priority_and_then_by_arrival() {
    let mut bench = Bench::new(512, 1);
    let background = |seed| GenerateOptions {
        priority: Priority::Background,
        ..options(prompt(seed, 4), 1)
    };
    let logs = [
        bench.add(background(1)).1,
        bench.add(background(2)).1,
        bench.add(options(prompt(3, 4), 1)).1,
    ];
    let mut order = Vec::new();
    while !bench.sequences.is_empty() {
        bench.step();
        let ended = (0..3).filter(|i| logs[*i].has_ended() && !order.contains(i));
        order.extend(ended.collect::<Vec<_>>());
    }
    assert_eq!(order, [2, 0, 1]);
}

/// Stands for the model's own end token in what a session is made to say.
const END: u32 = u32::MAX;

/// The session says `says`; the reply ends for this reason with this text and so many tokens.
fn check_end(
    says: &[u32],
    change: impl FnOnce(&mut GenerateOptions),
    (reason, expected, written): (FinishReason, &str, usize),
) {
    let mut bench = Bench::new(512, 1);
    let end = bench.live.info.tokenizer.end_ids()[0];
    let says: Vec<u32> = says
        .iter()
        .map(|&id| if id == END { end } else { id })
        .collect();
    bench.script.reply(&says);
    let mut options = options(prompt(0, 3), says.len());
    change(&mut options);
    let (_, log) = bench.add(options);
    bench.run();
    let (found, stats) = finished(&log);
    assert_eq!((found, text(&log).as_str()), (reason, expected), "{says:?}");
    assert_eq!(
        (ids(&log).len(), stats.generated_tokens),
        (written, written),
        "{says:?}"
    );
}

#[test]
fn replies_end_for_the_reason_that_holds() {
    use FinishReason::{Length, Stop, StopString};
    let hello = &"hello"
        .bytes()
        .map(u32::from)
        .chain([END])
        .collect::<Vec<_>>();
    let stop = |text: &str| vec![String::from(text)];
    // The end token is heeded and not shown, or ignored.
    check_end(hello, |o| o.ends = EndTokens::Heed, (Stop, "hello", 5));
    check_end(hello, |_| (), (Length, "hello", 6));
    check_end(hello, |o| o.max_tokens = 2, (Length, "he", 2));
    // A stop string over two tokens, and the beginning of one that never came.
    check_end(hello, |o| o.stop = stop("lo"), (StopString, "hel", 5));
    check_end(&hello[..5], |o| o.stop = stop("lol"), (Length, "hello", 5));
    // A character in four tokens, and one that stays incomplete. Ids of bytes above 0x7F are the
    // bytes in the tiny model's vocabulary.
    let smile: &[u32] = &[0xF0, 0x9F, 0x99, 0x82];
    check_end(smile, |_| (), (Length, "🙂", 4));
    check_end(&smile[..3], |_| (), (Length, "\u{FFFD}", 3));
}

#[test]
fn a_full_context_ends_the_reply_with_its_last_place_used() {
    // Tokens of the prompt in a context of 32, and how many can be written.
    for (prompt_len, written) in [(30, 3), (31, 2), (32, 1)] {
        let mut bench = Bench::new(32, 1);
        let (_, log) = bench.add(options(prompt(0, prompt_len), 100));
        bench.run();
        assert_eq!(finished(&log).0, FinishReason::ContextFull);
        assert_eq!(ids(&log).len(), written, "{prompt_len}");
        assert_eq!(bench.live.servable().unwrap().held(SlotId(0)), 32);
    }
}

#[test]
fn what_a_session_refuses_fails_the_reply_and_the_next_one_works() {
    fn lost() -> Fault {
        Fault::Error(SessionError::DeviceLost {
            reason: String::from("pulled out"),
        })
    }
    fn not_finite() -> Fault {
        Fault::Error(SessionError::NotFinite {
            node: String::from("blk.0.ffn"),
        })
    }
    type Case = (&'static str, fn() -> Fault, TurnCode, bool);
    let cases: [Case; 4] = [
        (
            "not a number",
            || Fault::NotANumber,
            TurnCode::NotFinite,
            false,
        ),
        ("not finite", not_finite, TurnCode::NotFinite, false),
        ("lost", lost, TurnCode::DeviceLost, true),
        (
            "bad ticket",
            || Fault::Error(SessionError::BadTicket),
            TurnCode::Internal,
            false,
        ),
    ];
    for (what, fault, code, is_lost) in cases {
        for forward in [0, 1, 4] {
            let mut bench = Bench::new(2_048, 1);
            bench.script.at_forward(forward, fault());
            // At a forward whose rows all want nothing there are no logits to be wrong.
            let (_, log) = bench.add(options(prompt(0, 20), 50));
            let mut lost = None;
            while !bench.sequences.is_empty() {
                lost = bench.step().lost.or(lost);
            }
            assert_eq!(failed(&log), code, "{what} at {forward}");
            assert_eq!(lost.is_some(), is_lost, "{what} at {forward}");
            assert_eq!(ids(&log).len(), forward, "what was written stays");
            if code == TurnCode::NotFinite && bench.script.counts().committed > forward {
                // The forward was committed, and the next turn must not go on from its state.
                assert_eq!(
                    bench.live.servable().unwrap().held(SlotId(0)),
                    0,
                    "{what} at {forward}"
                );
            }
            if !is_lost {
                let fresh = Bench::new(2_048, 1).reply(options(prompt(0, 20), 5)).0;
                assert_eq!(bench.reply(options(prompt(0, 20), 5)).0, fresh, "{what}");
            }
        }
    }
}

#[test]
fn a_full_pool_drops_what_nobody_needs_and_then_ends_the_last_that_came() {
    let full = || Fault::Error(SessionError::StateFull { asked: 1, free: 0 });
    let mut bench = Bench::new(512, 2);
    bench.reply(options(prompt(1, 40), 2));
    let (_, log) = bench.add(options(prompt(2, 40), 6));
    let submitted = bench.script.counts().submitted;
    bench.script.at_forward(submitted + 2, full());
    bench.run();
    assert_eq!(
        finished(&log).0,
        FinishReason::Length,
        "the idle slot gave way"
    );
    let held: Vec<usize> = (0..2)
        .map(|slot| bench.live.servable().unwrap().held(SlotId(slot)))
        .collect();
    assert_eq!(
        held.iter().filter(|&&held| held == 0).count(),
        1,
        "{held:?}"
    );

    let mut bench = Bench::new(512, 2);
    let (_, first) = bench.add(options(prompt(1, 40), 6));
    let (_, second) = bench.add(options(prompt(2, 40), 6));
    bench.script.at_forward(3, full());
    bench.run();
    assert_eq!(finished(&first).0, FinishReason::Length);
    assert_eq!(finished(&second).0, FinishReason::ContextFull);
}

#[test]
fn a_seed_gives_the_same_reply_with_and_without_a_reused_context() {
    let sampled = |seed: u64, prompt: Vec<u32>| {
        let mut options = options(prompt, 24);
        options.sampling.temperature = 2.0;
        options.sampling.seed = seed;
        options
    };
    let mut bench = Bench::new(512, 1);
    let first = bench.reply(sampled(1, prompt(0, 30))).0;
    let (again, stats) = bench.reply(sampled(1, prompt(0, 30)));
    assert_eq!((&again, stats.cached_tokens), (&first, 29));
    assert_eq!(Bench::new(512, 1).reply(sampled(1, prompt(0, 30))).0, first);
    assert_ne!(bench.reply(sampled(2, prompt(0, 30))).0, first);
}

#[test]
fn an_end_is_kept_even_if_another_follows() {
    let mut bench = Bench::new(512, 1);
    bench.add(options(prompt(0, 3), 1));
    let sequence = &mut bench.sequences[0];
    sequence.finish(FinishReason::Stop);
    sequence.fail(TurnCode::Broken, String::new());
    assert_eq!(sequence.end, Some(End::Finished(FinishReason::Stop)));
}
