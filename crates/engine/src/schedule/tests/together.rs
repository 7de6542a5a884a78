//! Several clients at once: what they begin with is read once, everybody gets on, and nobody
//! notices the others.

use candor_backend::Arithmetic;

use super::*;
use crate::load::LoadOptions;
use crate::prefix::Reuse;
use crate::testing::{ModelFolder, live_on};

/// What all clients begin with, and something of their own.
fn shared(common: usize, own: u32) -> Vec<u32> {
    let own = (0..20).map(|i| LETTERS.start + (own * 5 + i * 3) % 26);
    prompt(1, common).into_iter().chain(own).collect()
}

/// Drawn, so that a wrong context shows.
fn drawn(prompt: Vec<u32>, seed: u64) -> GenerateOptions {
    let mut options = options(prompt, 6);
    options.sampling.temperature = 1.5;
    options.sampling.seed = seed;
    options
}

/// What a session writes to which nothing happened before.
fn solo(options: &GenerateOptions) -> Vec<u32> {
    Bench::new(2_048, 1).reply(options.clone()).0
}

/// A bench whose session has slots beside those that are written in.
pub(super) fn keeping(slots: usize, kept: usize, ctx_len: usize) -> Bench {
    let script = Script::new(LETTERS);
    let options = LoadOptions {
        ctx_len: Some(ctx_len),
        slots,
        kept,
        ..LoadOptions::default()
    };
    let spec = ModelFolder::new();
    let live = live_on(Box::new(script.backend()), &spec.spec("tiny.gguf", options));
    Bench::over(script, live)
}

impl Bench {
    fn rows(&self) -> usize {
        self.script.counts().rows.iter().sum()
    }

    /// All of them at once; what each wrote and how many of its tokens were not computed.
    fn all(&mut self, requests: &[GenerateOptions]) -> Vec<(Vec<u32>, usize)> {
        let logs: Vec<_> = requests.iter().map(|o| self.add(o.clone()).1).collect();
        self.run();
        let told = |log: &Arc<TurnLog>| (ids(log), finished(log).1.cached_tokens);
        logs.iter().map(told).collect()
    }
}

#[test]
fn what_clients_begin_with_is_read_once() {
    // Tokens in common, clients, slots.
    for (common, clients, slots) in [(300, 4, 4), (700, 4, 4), (300, 6, 3), (300, 2, 2)] {
        let mut bench = Bench::new(2_048, slots);
        let requests: Vec<_> = (0..clients).map(|i| drawn(shared(common, i), 7)).collect();
        let found = bench.all(&requests);
        for (i, ((written, cached), request)) in found.iter().zip(&requests).enumerate() {
            let what = format!("client {i} of {clients} with {common} in {slots} slots");
            assert_eq!(written, &solo(request), "{what}");
            assert_eq!(*cached, if i == 0 { 0 } else { common }, "{what}");
        }
        // The last token of a reply is computed by nobody.
        let written = clients as usize * 5;
        assert_eq!(bench.rows(), common + clients as usize * 20 + written);
    }
}

#[test]
fn choices_for_one_prompt_read_it_once() {
    let prompt = prompt(3, 400);
    let mut bench = Bench::new(2_048, 4);
    let requests: Vec<_> = (0..4).map(|seed| drawn(prompt.clone(), seed)).collect();
    let found = bench.all(&requests);
    for ((written, cached), request) in found.iter().zip(&requests) {
        assert_eq!(written, &solo(request));
        assert!([0, 399].contains(cached), "{cached}");
    }
    // Each computes the last token itself: its logits choose the first of the reply.
    assert_eq!(bench.rows(), 400 + 3 + 4 * 5);
    assert_ne!(found[0].0, found[1].0, "seeds differ");
}

#[test]
fn a_beginning_is_taken_from_one_that_writes() {
    let mut bench = Bench::new(2_048, 2);
    let first = GenerateOptions {
        max_tokens: 40,
        ..drawn(shared(300, 1), 1)
    };
    let (_, log) = bench.add(first.clone());
    (0..10).for_each(|_| drop(bench.step()));
    let before = bench.rows();
    let second = drawn(shared(300, 2), 2);
    let (_, beside) = bench.add(second.clone());
    bench.run();
    assert_eq!(finished(&beside).1.cached_tokens, 300);
    assert_eq!(ids(&beside), solo(&second));
    assert_eq!(ids(&log), solo(&first), "and that one goes on as if alone");
    assert_eq!(bench.rows() - before, 20 + 5 + (40 - 10));
}

#[test]
fn whoever_waits_for_a_reader_goes_on_from_where_that_was_stopped() {
    let mut bench = Bench::new(4_096, 2);
    let (cancel, stopped) = bench.add(drawn(shared(1_500, 1), 1));
    let second = drawn(shared(1_500, 2), 2);
    let (_, log) = bench.add(second.clone());
    bench.step();
    assert_eq!(
        bench.rows(),
        CHUNK_TOKENS,
        "the second does not read the same"
    );
    cancel.cancel();
    bench.run();
    assert_eq!(finished(&stopped).0, FinishReason::Cancelled);
    assert_eq!(finished(&log).1.cached_tokens, CHUNK_TOKENS);
    assert_eq!(ids(&log), Bench::new(4_096, 1).reply(second).0);
    assert_eq!(bench.rows(), 1_520 + 5, "nothing is computed twice");
}

#[test]
fn a_person_waits_for_no_program() {
    let mut bench = Bench::new(2_048, 2);
    let program = GenerateOptions {
        priority: Priority::Background,
        ..drawn(shared(900, 1), 1)
    };
    bench.add(program);
    bench.step();
    let (_, log) = bench.add(drawn(shared(900, 2), 2));
    let mut steps = 0;
    while ids(&log).is_empty() {
        bench.step();
        steps += 1;
    }
    // What the program had read is taken over; the rest is read at once, before the program's.
    assert_eq!(steps, 1);
    bench.run();
    assert_eq!(finished(&log).1.cached_tokens, CHUNK_TOKENS);
}

#[test]
fn finished_prompts_are_kept_beside_the_slots_until_room_is_needed() {
    let mut bench = keeping(1, 2, 512);
    assert_eq!(bench.live.info.slots, 1);
    let talks: Vec<_> = (0..3).map(|seed| options(prompt(seed, 150), 4)).collect();
    let cached = |bench: &mut Bench, talk: usize| bench.reply(talks[talk].clone()).1.cached_tokens;
    for talk in 0..3 {
        assert_eq!(cached(&mut bench, talk), 0, "{talk}");
    }
    for talk in [0, 1, 2, 0] {
        assert_eq!(cached(&mut bench, talk), 149, "{talk}");
    }
    // One slot is written in at a time, however many there are.
    let logs: Vec<_> = talks.iter().map(|talk| bench.add(talk.clone()).1).collect();
    bench.run();
    assert!(
        logs.iter()
            .all(|log| finished(log).0 == FinishReason::Length)
    );
    let several = bench
        .script
        .batches()
        .into_iter()
        .any(|batch| batch.rows.iter().any(|row| row.slot != batch.rows[0].slot));
    assert!(!several);
    // 512 tokens are all there is: the talk unused for longest gives way, and only that.
    let (written, _) = bench.reply(options(prompt(5, 150), 4));
    assert_eq!(written, solo(&options(prompt(5, 150), 4)));
    assert_eq!(cached(&mut bench, 1), 149);
    assert_eq!(cached(&mut bench, 2), 149);
    assert_eq!(cached(&mut bench, 0), 0);
}

#[test]
fn where_writing_computes_otherwise_only_what_was_read_is_taken_over() {
    // How writing computes, what may be taken over, and how much is.
    let same = Arithmetic::F32;
    let other = Arithmetic::Q8Block32;
    let cases = [
        (same, Reuse::All, 105),
        (same, Reuse::OnlyRead, 105),
        (other, Reuse::All, 105),
        (other, Reuse::OnlyRead, 100),
        (other, Reuse::Nothing, 0),
    ];
    for (writing, reuse, expected) in cases {
        let mut bench = Bench::new(2_048, 2);
        bench.script.writes_with(writing);
        let mut next = prompt(1, 100);
        let (written, _) = bench.reply(options(next.clone(), 6));
        next.extend(written);
        next.extend(prompt(2, 10));
        let next = GenerateOptions {
            reuse,
            ..options(next, 6)
        };
        let (reply, stats) = bench.reply(next.clone());
        assert_eq!(stats.cached_tokens, expected, "{writing:?} {reuse:?}");
        assert_eq!(reply, solo(&next));
    }
}

#[test]
fn those_who_write_get_a_row_in_every_forward_and_readers_share_the_rest() {
    let mut bench = Bench::new(2_048, 5);
    let long = |seed| GenerateOptions {
        max_tokens: 60,
        ..drawn(prompt(seed, 8), u64::from(seed))
    };
    let writers = [bench.add(long(20)).1, bench.add(long(21)).1];
    bench.step();
    let before = bench.script.batches().len();
    let readers: Vec<_> = (0..3)
        .map(|i| bench.add(drawn(prompt(i, 400 + 50 * i as usize), 3)).1)
        .collect();
    let begun = |bench: &Bench| {
        let mut sequences = bench.sequences.iter();
        sequences.all(|sequence| !sequence.is_reading())
    };
    bench.step();
    while !begun(&bench) {
        bench.step();
    }
    let forwards = bench.script.batches().split_off(before);
    assert!(forwards.len() > 8, "{}", forwards.len());
    for batch in &forwards {
        let of_slot = |slot: usize| {
            batch
                .rows
                .iter()
                .filter(|row| row.slot == SlotId(slot))
                .count()
        };
        assert_eq!((of_slot(0), of_slot(1)), (1, 1));
        assert!(batch.rows.len() <= CHUNK_TOKENS_BESIDE_WRITERS + 2 + 3);
    }
    // Equal shares from the first forward on, no less than is sensible.
    let first = &forwards[0];
    let of_slot = |slot: usize| {
        first
            .rows
            .iter()
            .filter(|row| row.slot == SlotId(slot))
            .count()
    };
    assert_eq!([2, 3, 4].map(of_slot), [64, 64, 0]);
    bench.run();
    for log in writers.iter().chain(&readers) {
        assert_eq!(finished(log).0, FinishReason::Length);
    }
}

#[test]
fn a_program_that_goes_away_costs_the_others_no_forward() {
    for (priority, lost) in [(Priority::Background, 0), (Priority::Interactive, 1)] {
        let mut bench = Bench::new(2_048, 2);
        let (_, stays) = bench.add(options(prompt(1, 10), 12));
        bench.step();
        let goes = GenerateOptions {
            priority,
            ..options(prompt(2, 300), 12)
        };
        let (cancel, gone) = bench.add(goes);
        let submitted = bench.script.counts().submitted;
        bench
            .script
            .at_forward(submitted, Fault::Before(Box::new(move || cancel.cancel())));
        bench.run();
        assert_eq!(finished(&gone).0, FinishReason::Cancelled);
        assert!(ids(&gone).is_empty());
        assert_eq!(ids(&stays), solo(&options(prompt(1, 10), 12)));
        let counts = bench.script.counts();
        assert_eq!(counts.submitted - counts.committed, lost, "{priority:?}");
        assert_eq!(counts.submitted, 12 + lost);
    }
    // The last one that goes away ends its forward all the same.
    let mut bench = Bench::new(2_048, 2);
    let alone = GenerateOptions {
        priority: Priority::Background,
        ..options(prompt(1, 300), 5)
    };
    let (cancel, log) = bench.add(alone);
    bench
        .script
        .at_forward(0, Fault::Before(Box::new(move || cancel.cancel())));
    bench.run();
    assert_eq!(finished(&log).0, FinishReason::Cancelled);
    assert_eq!(bench.script.counts().committed, 0);
}

#[test]
fn a_copy_without_room_is_computed_in_the_room_of_what_is_kept() {
    // 512 tokens in all: what is kept, the first client, and the copy for the second are more.
    let mut bench = keeping(2, 1, 256);
    bench.reply(options(prompt(9, 200), 4));
    let first = GenerateOptions {
        max_tokens: 20,
        ..drawn(shared(150, 1), 1)
    };
    let (_, log) = bench.add(first.clone());
    bench.step();
    let second = drawn(shared(150, 2), 2);
    let (_, beside) = bench.add(second.clone());
    bench.run();
    assert_eq!(ids(&log), solo(&first));
    assert_eq!(ids(&beside), solo(&second));
    assert_eq!(finished(&beside).1.cached_tokens, 0);
    assert_eq!(
        bench.reply(options(prompt(9, 200), 4)).1.cached_tokens,
        0,
        "it gave way"
    );
}

#[test]
fn a_person_gets_a_slot_beside_those_of_programs() {
    let background = |seed| GenerateOptions {
        priority: Priority::Background,
        ..options(prompt(seed, 20), 30)
    };
    // Slots beside those that are written in, and whether a person is written to at once.
    for (kept, at_once) in [(0, false), (1, true)] {
        let mut bench = keeping(2, kept, 256);
        let programs = [1, 2, 3].map(|seed| bench.add(background(seed)).1);
        bench.step();
        let (_, person) = bench.add(options(prompt(4, 20), 5));
        bench.step();
        assert_eq!(!ids(&person).is_empty(), at_once, "{kept}");
        assert!(ids(&programs[2]).is_empty(), "a program takes no such slot");
        bench.run();
        assert_eq!(finished(&person).0, FinishReason::Length);
    }
    // Persons wait for each other.
    let mut bench = keeping(1, 2, 256);
    bench.add(options(prompt(1, 20), 5));
    bench.step();
    let (_, second) = bench.add(options(prompt(2, 20), 5));
    bench.step();
    assert!(ids(&second).is_empty());
}
