//! The shipped loop over the processor and tiny models of every kind of state: one that can be cut
//! anywhere, one with windows, and hybrids that keep a sum.
//!
//! Replies are drawn, not greedy: a difference in any logit shows within a few tokens.

use std::path::Path;

use candor_backend::Precision;
use candor_cpu::{CpuBackend, CpuConfig};

use super::*;
use crate::load::{LoadOptions, LoadSpec};
use crate::testing::live_on;

/// Of the folder of golden models.
const MODELS: [(&str, Cuts); 5] = [
    ("s04-llama-q8_0", Cuts::Anywhere),
    ("s16-gemma3-q4_0", Cuts::NearTheEnd),
    ("s18-qwen35-f16", Cuts::AtCheckpoints),
    ("s20-qwen35moe-q8_0", Cuts::AtCheckpoints),
    ("s21-qwen3next-q8_0", Cuts::AtCheckpoints),
];

/// Where the state of a model can be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cuts {
    Anywhere,
    /// In the pages that its windows have not let go of, and at checkpoints.
    NearTheEnd,
    AtCheckpoints,
}

const CTX_LEN: usize = 2_048;

fn bench(name: &str, slots: usize) -> Bench {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/models");
    let spec = LoadSpec {
        options: LoadOptions {
            ctx_len: Some(CTX_LEN),
            slots,
            precision: Precision::Fast,
            ..LoadOptions::default()
        },
        ..LoadSpec::new(folder.join(format!("{name}.gguf")))
    };
    let backend = CpuBackend::new(CpuConfig::new(2));
    Bench::over(Script::new(LETTERS), live_on(Box::new(backend), &spec))
}

fn drawn(prompt: Vec<u32>, max_tokens: usize) -> GenerateOptions {
    let mut options = options(prompt, max_tokens);
    options.sampling.temperature = 1.0;
    options.sampling.seed = 11;
    options
}

/// Tokens of the replies that are compared.
const REPLY: usize = 12;

/// A reply by a session that nothing happened to before.
fn fresh(name: &str, prompt: &[u32]) -> Vec<u32> {
    bench(name, 1).reply(drawn(prompt.to_vec(), REPLY)).0
}

/// The next reply equals that of a fresh session, and so many tokens were not computed again.
fn check_next(bench: &mut Bench, name: &str, next: &[u32], cached: usize, what: &str) {
    let (reply, stats) = bench.reply(drawn(next.to_vec(), REPLY));
    assert_eq!(reply, fresh(name, next), "{name}: {what}");
    assert_eq!(stats.cached_tokens, cached, "{name}: {what}");
}

#[test]
fn sequences_in_slots_write_what_they_write_alone() {
    let cases: [(u32, usize); 3] = [(1, 700), (2, 3), (3, 90)];
    for (name, _) in MODELS {
        let alone = cases.map(|(seed, len)| fresh(name, &prompt(seed, len)));
        assert!(alone[0] != alone[1] && alone[1] != alone[2], "{name}");
        for slots in [2, 3] {
            let mut bench = bench(name, slots);
            let logs = cases.map(|(seed, len)| {
                let log = bench.add(drawn(prompt(seed, len), REPLY)).1;
                // Each comes while those before it read or write.
                bench.step();
                log
            });
            bench.run();
            for (log, alone) in logs.iter().zip(&alone) {
                assert_eq!(&ids(log), alone, "{name} in {slots} slots");
            }
        }
    }
}

/// A prompt of three chunks: steps 0 to 2 read it, step 3 is the first of decode.
const PROMPT: usize = 2 * CHUNK_TOKENS + 100;

/// When a stop comes, in steps.
#[derive(Clone, Copy, Debug)]
enum When {
    /// After this step.
    After(usize),
    /// Somewhere in this step, or just after it.
    In(usize),
}

fn stopped_at(name: &str, when: When) -> (Bench, Vec<u32>) {
    let mut bench = bench(name, 1);
    let (cancel, log) = bench.add(drawn(prompt(0, PROMPT), 50));
    let (When::After(steps) | When::In(steps)) = when;
    (0..steps).for_each(|_| drop(bench.step()));
    match when {
        When::After(_) => drop(bench.step()),
        When::In(_) => std::thread::scope(|scope| {
            let cancel = cancel.clone();
            scope.spawn(move || cancel.cancel());
            bench.step();
        }),
    }
    cancel.cancel();
    bench.run();
    assert_eq!(finished(&log).0, FinishReason::Cancelled, "{name} {when:?}");
    let mut held = prompt(0, PROMPT);
    held.extend(ids(&log));
    (bench, held)
}

#[test]
fn after_a_stop_the_next_reply_equals_a_fresh_one() {
    use When::{After, In};
    for (name, cuts) in MODELS {
        for when in [After(0), After(1), In(1), After(2), In(2), In(5), After(10)] {
            // Goes on: all that is held is kept.
            let (mut bench, mut longer) = stopped_at(name, when);
            let held = bench.live.servable().unwrap().held(SlotId(0));
            longer.extend(prompt(9, 10));
            check_next(
                &mut bench,
                name,
                &longer,
                held,
                &format!("longer, {when:?}"),
            );
            // Turns off in the middle of the prompt, where nothing was marked.
            let (mut bench, _) = stopped_at(name, when);
            let held = bench.live.servable().unwrap().held(SlotId(0));
            let mut other = prompt(0, 700);
            other.extend(prompt(5, 20));
            let cached = match cuts {
                _ if held <= 700 => held,
                Cuts::Anywhere => 700,
                Cuts::NearTheEnd | Cuts::AtCheckpoints => 0,
            };
            check_next(
                &mut bench,
                name,
                &other,
                cached,
                &format!("other, {when:?}"),
            );
        }
    }
}

#[test]
fn rewound_and_repeated_conversations_equal_fresh_ones() {
    for (name, cuts) in MODELS {
        let mut bench = bench(name, 1);
        let first = prompt(0, 300);
        let mut context = first.clone();
        context.extend(bench.reply(drawn(first.clone(), REPLY)).0);
        let mut second = context.clone();
        second.extend(prompt(1, 40));
        let held = context.len() - 1;
        check_next(&mut bench, name, &second, held, "the next question");
        // The same again: its last token has to be computed, so the mark at its end is too late.
        let cached = match cuts {
            Cuts::Anywhere | Cuts::NearTheEnd => second.len() - 1,
            Cuts::AtCheckpoints => first.len(),
        };
        check_next(&mut bench, name, &second, cached, "regenerate");
        // The second question in other words.
        let mut edited = context.clone();
        edited.extend(prompt(7, 25));
        let cached = match cuts {
            Cuts::Anywhere | Cuts::NearTheEnd => context.len(),
            Cuts::AtCheckpoints => first.len(),
        };
        check_next(&mut bench, name, &edited, cached, "an edited question");
        // The first one in other words: no mark is left before it.
        let mut anew = first[..200].to_vec();
        anew.extend(prompt(8, 30));
        let cached = match cuts {
            Cuts::Anywhere => 200,
            Cuts::NearTheEnd | Cuts::AtCheckpoints => 0,
        };
        check_next(&mut bench, name, &anew, cached, "an edited beginning");
    }
}

#[test]
fn clients_with_one_beginning_read_it_once_and_write_what_they_write_alone() {
    for (name, _) in MODELS {
        let with = |own: u32| [prompt(4, 150), prompt(own, 30)].concat();
        let mut bench = bench(name, 3);
        let logs = [5, 6, 7].map(|own| bench.add(drawn(with(own), REPLY)).1);
        bench.run();
        for (own, log) in (5..).zip(&logs) {
            let cached = if own == 5 { 0 } else { 150 };
            assert_eq!(ids(log), fresh(name, &with(own)), "{name}, client {own}");
            assert_eq!(
                finished(log).1.cached_tokens,
                cached,
                "{name}, client {own}"
            );
        }
    }
}
