//! Stopping at every point of a reply, by the number of forwards.

use std::sync::Arc;

use candor_testkit::scripted::Fault;

use super::*;

/// When a stop comes.
#[derive(Clone, Copy, Debug)]
enum When {
    /// Before the first step.
    Before,
    /// While this forward computes.
    In(usize),
    /// Between this forward's commit and the choice of its token.
    After(usize),
    /// After the whole step of this forward.
    Between(usize),
}

/// A prompt of three chunks: forwards 0 to 2 read it, forward 3 is the first of decode.
const PROMPT_TOKENS: usize = 2 * CHUNK_TOKENS + 100;

/// Stops a reply and returns what it left behind.
fn stopped_at(when: When) -> (Bench, Arc<TurnLog>) {
    let mut bench = Bench::new(4_096, 1);
    let (cancel, log) = bench.add(options(prompt(0, PROMPT_TOKENS), 50));
    let stop = cancel.clone();
    match when {
        When::Before => cancel.cancel(),
        When::In(n) => bench
            .script
            .at_forward(n, Fault::Before(Box::new(move || stop.cancel()))),
        When::After(n) => bench
            .script
            .at_forward(n, Fault::After(Box::new(move || stop.cancel()))),
        When::Between(n) => {
            for _ in 0..=n {
                bench.step();
            }
            cancel.cancel();
        }
    }
    bench.run();
    (bench, log)
}

/// When, submitted forwards, committed ones, tokens written.
const STOPS: &[(When, usize, usize, usize)] = &[
    (When::Before, 0, 0, 0),
    (When::In(0), 1, 0, 0),
    (When::After(0), 1, 1, 0),
    (When::Between(0), 1, 1, 0),
    (When::In(1), 2, 1, 0),
    (When::Between(1), 2, 2, 0),
    (When::In(2), 3, 2, 0),
    (When::After(2), 3, 3, 1),
    (When::Between(2), 3, 3, 1),
    (When::In(3), 4, 3, 1),
    (When::After(3), 4, 4, 2),
    (When::Between(10), 11, 11, 9),
    (When::In(20), 21, 20, 18),
];

#[test]
fn a_stop_ends_the_reply_with_the_forward_it_comes_in() {
    for &(when, submitted, committed, written) in STOPS {
        let (mut bench, log) = stopped_at(when);
        let counts = bench.script.counts();
        assert_eq!(
            (counts.submitted, counts.committed),
            (submitted, committed),
            "{when:?}"
        );
        let (reason, stats) = finished(&log);
        assert_eq!(reason, FinishReason::Cancelled, "{when:?}");
        assert_eq!(
            (ids(&log).len(), stats.generated_tokens),
            (written, written),
            "{when:?}"
        );
        let rows: usize = counts.rows.iter().sum();
        let slot = SlotId(0);
        let servable = bench.live.servable().unwrap();
        assert_eq!(
            (servable.held(slot), servable.session().position(slot)),
            (rows, rows)
        );
    }
}

#[test]
fn after_a_stop_the_next_reply_equals_a_fresh_one() {
    for &(when, ..) in STOPS {
        let (mut stopped, log) = stopped_at(when);
        let mut same = prompt(0, PROMPT_TOKENS);
        let mut longer = same.clone();
        longer.extend(ids(&log));
        longer.extend(prompt(9, 10));
        same.truncate(700);
        for next in [longer, same, prompt(5, 30)] {
            let fresh = Bench::new(4_096, 1).reply(options(next.clone(), 20)).0;
            assert_eq!(stopped.reply(options(next, 20)).0, fresh, "{when:?}");
        }
    }
}

#[test]
fn a_second_stop_and_a_stop_after_the_end_do_nothing() {
    let mut bench = Bench::new(512, 1);
    let (cancel, log) = bench.add(options(prompt(0, 5), 4));
    bench.run();
    cancel.cancel();
    cancel.cancel();
    assert_eq!(finished(&log).0, FinishReason::Length);
    let counts = bench.script.counts();
    bench.step();
    assert_eq!(bench.script.counts(), counts);

    let (cancel, log) = bench.add(options(prompt(0, 5), 100));
    bench.step();
    cancel.cancel();
    cancel.cancel();
    bench.run();
    cancel.cancel();
    assert_eq!(finished(&log).0, FinishReason::Cancelled);
    assert_eq!(bench.reply(options(prompt(1, 5), 4)).0.len(), 4);
}

#[test]
fn a_stop_in_the_step_of_the_natural_end_leaves_one_end() {
    let mut bench = Bench::new(512, 1);
    let (cancel, log) = bench.add(options(prompt(0, 5), 3));
    bench
        .script
        .at_forward(2, Fault::After(Box::new(move || cancel.cancel())));
    bench.run();
    assert_eq!(finished(&log).0, FinishReason::Length);
    assert_eq!(ids(&log).len(), 3);
}

#[test]
fn one_stop_touches_no_other_request() {
    let alone = Bench::new(2_048, 1).reply(options(prompt(1, 600), 12)).0;
    for forward in 0..12 {
        for mid in [true, false] {
            let mut bench = Bench::new(2_048, 2);
            let (_, kept) = bench.add(options(prompt(1, 600), 12));
            let (cancel, stopped) = bench.add(options(prompt(2, 900), 12));
            let call: Box<dyn FnOnce() + Send> = Box::new(move || cancel.cancel());
            let fault = if mid {
                Fault::Before(call)
            } else {
                Fault::After(call)
            };
            bench.script.at_forward(forward, fault);
            bench.run();
            assert_eq!(
                finished(&stopped).0,
                FinishReason::Cancelled,
                "forward {forward}"
            );
            assert_eq!(finished(&kept).0, FinishReason::Length, "forward {forward}");
            assert_eq!(ids(&kept), alone, "forward {forward}");
        }
    }
}

#[test]
fn a_request_that_is_stopped_while_it_waits_is_never_started() {
    let mut bench = Bench::new(512, 1);
    let (_, first) = bench.add(options(prompt(1, 5), 6));
    let (cancel, second) = bench.add(options(prompt(2, 5), 6));
    bench.step();
    bench.step();
    cancel.cancel();
    bench.step();
    // It ends at once, not when its turn comes.
    assert_eq!(finished(&second).0, FinishReason::Cancelled);
    bench.run();
    assert_eq!(finished(&first).0, FinishReason::Length);
    let counts = bench.script.counts();
    assert_eq!(counts.rows, [5, 1, 1, 1, 1, 1]);
}
