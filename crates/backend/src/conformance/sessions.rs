//! Whole sessions on small models.

use candor_arch::models::{
    gemma3::GEMMA3, gpt_oss::GPT_OSS, llama::LLAMA, phi3::PHI3, qwen2::QWEN2, qwen3next::QWEN3NEXT,
};

use super::Subject;
use super::bench::{
    Bench, SLOT, Seen, Unwatched, VOCABULARY, numbers, open, quant, run, small, tokens,
};
use crate::{
    Batch, CancelToken, Feed, LoadError, Loaded, Outcome, Part, Progress, Row, RowOutput, Rows,
    Session, SessionError, SlotId, Step, Tap, Want,
};

/// Over the border of a page of 256, and at full size over the 512 rows of the largest chunk below.
pub(super) fn prompt_len(subject: &Subject) -> usize {
    subject.size.pick(530, 270)
}

/// Enough context for the prompt and what follows.
pub(super) const CTX_LEN: usize = 600;

/// The other slot.
pub(super) const OTHER: SlotId = SlotId(1);

/// A model with a window, and one that keeps a sum: their states cannot be cut anywhere.
pub(super) fn special_models() -> [Bench; 2] {
    [
        Bench::new(small(&GEMMA3), |_| quant("Q4_0")),
        Bench::new(small(&QWEN3NEXT), |name| match name {
            name if name.contains("_exps") => quant("Q8_0"),
            name if name.contains("gate_inp") => quant("F32"),
            _ => quant("F16"),
        }),
    ]
}

/// One model of each kind of state.
pub(super) fn models_by_state() -> Vec<Bench> {
    let mut all = vec![one_model()];
    all.extend(special_models());
    all
}

/// Models of all forms, with several types: matrices in one tensor and sinks among them.
fn models() -> Vec<Bench> {
    let mut all = Vec::from(dense_models());
    all.extend(special_models());
    all.push(Bench::new(small(&PHI3), |_| quant("Q4_K")));
    all.push(Bench::new(small(&GPT_OSS), |name| match name {
        name if name.contains("_exps") => quant("MXFP4"),
        _ => quant("Q8_0"),
    }));
    all
}

/// Models of the dense families.
fn dense_models() -> [Bench; 3] {
    [
        Bench::new(small(&LLAMA), |_| quant("F16")),
        Bench::new(small(&LLAMA), |name| match name {
            "token_embd.weight" | "output.weight" => quant("Q6_K"),
            name if name.contains("ffn_down") => quant("Q5_1"),
            _ => quant("Q4_K"),
        }),
        Bench::new(small(&QWEN2), |name| match name {
            "output.weight" => quant("Q8_0"),
            name if name.contains("attn") => quant("Q4_0"),
            _ => quant("Q5_0"),
        }),
    ]
}

/// One model where a property has nothing to do with the kernels.
pub(super) fn one_model() -> Bench {
    Bench::new(small(&LLAMA), |_| quant("Q8_0"))
}

/// Rows of one slot that all want their logits.
pub(super) fn all_logits(slot: SlotId, tokens: &[u32]) -> Vec<Row> {
    let row = |token: &u32| Row {
        slot,
        feed: Feed::Token(*token),
        want: Want::Logits,
    };
    tokens.iter().map(row).collect()
}

pub(super) fn logits_of(session: &mut dyn Session, slot: SlotId, tokens: &[u32]) -> Vec<RowOutput> {
    run(
        session,
        &Batch {
            rows: all_logits(slot, tokens),
        },
    )
}

/// Decode and prefill give the same bits, wherever a chunk ends; where their arithmetic differs,
/// each by itself.
pub fn chunks_of_any_size_give_the_same_bits(subject: &Subject) {
    let benches = subject
        .size
        .pick(models as fn() -> Vec<Bench>, models_by_state)();
    for bench in benches {
        let loaded = bench.load(subject);
        if subject.few_rows == 0 {
            let prompt = tokens("chunks", prompt_len(subject));
            check_chunks(subject, &bench, &*loaded, &prompt, &[530, 1, 7, 16, 512]);
            continue;
        }
        let few = subject.few_rows;
        // No rest of the long one is of few rows.
        let long = tokens("chunks", prompt_len(subject));
        check_chunks(subject, &bench, &*loaded, &long, &[long.len(), 29]);
        let short = tokens("few", 3 * few + 3);
        check_chunks(subject, &bench, &*loaded, &short, &[few, 1, few - 1]);
    }
}

/// Chunks of the first size give what those of the others give.
fn check_chunks(
    subject: &Subject,
    bench: &Bench,
    loaded: &dyn Loaded,
    prompt: &[u32],
    sizes: &[usize],
) {
    let mut session = open(subject, loaded, 1, CTX_LEN);
    let mut of_size = |size: usize| -> Vec<RowOutput> {
        session.reset(SLOT).expect("the slot is there");
        let chunks = prompt.chunks(size);
        let all = chunks.flat_map(|chunk| {
            assert!(subject.alike(chunk.len(), sizes[0]), "sizes that compare");
            logits_of(&mut *session, SLOT, chunk)
        });
        all.collect()
    };
    let expected = of_size(sizes[0]);
    for size in &sizes[1..] {
        let found = of_size(*size);
        let first = found.iter().zip(&expected).position(|(f, e)| f != e);
        assert_eq!(
            first, None,
            "{}: chunks of {size}",
            bench.graph.architecture
        );
    }
}

/// Rows of several slots in one forward give what each slot gives alone.
pub fn slots_do_not_touch_each_other(subject: &Subject) {
    let benches = subject
        .size
        .pick(models as fn() -> Vec<Bench>, models_by_state)();
    let of_b = subject.size.pick(300, 50);
    for bench in benches {
        let loaded = bench.load(subject);
        let (a, b) = (tokens("slot a", 37), tokens("slot b", of_b));
        let mut alone = open(subject, &*loaded, 1, CTX_LEN);
        let of_a = logits_of(&mut *alone, SLOT, &a);
        alone.reset(SLOT).expect("the slot is there");
        let of_b = logits_of(&mut *alone, SLOT, &b);

        let mut both = open(subject, &*loaded, 2, CTX_LEN);
        // Row by row in turn, then a chunk of one beside single rows of the other.
        let mut rows = Vec::new();
        for (a, b) in a[..20].iter().zip(&b) {
            rows.extend(all_logits(SLOT, &[*a]));
            rows.extend(all_logits(OTHER, &[*b]));
        }
        let mut found = run(&mut *both, &Batch { rows });
        let mut rows = all_logits(SLOT, &a[20..21]);
        rows.extend(all_logits(OTHER, &b[20..]));
        rows.extend(all_logits(SLOT, &a[21..]));
        let last = run(&mut *both, &Batch { rows });
        let of = |slot: usize| found.iter().skip(slot).step_by(2).cloned();
        let (mut found_a, mut found_b): (Vec<_>, Vec<_>) = (of(0).collect(), of(1).collect());
        let middle = 1 + (b.len() - 20);
        found_a.push(last[0].clone());
        found_b.extend_from_slice(&last[1..middle]);
        found_a.extend_from_slice(&last[middle..]);
        found.clear();
        assert!(
            found_a == of_a && found_b == of_b,
            "{}",
            bench.graph.architecture
        );
        assert_eq!(
            (both.position(SLOT), both.position(OTHER)),
            (a.len(), b.len())
        );
    }
}

/// A flag set before or during a forward leaves the positions and the later results as they were,
/// of every slot that has rows in it.
pub fn a_cancelled_forward_changes_nothing(subject: &Subject) {
    for bench in models_by_state() {
        check_cancelled(subject, &bench);
    }
}

/// Rows of both slots by turns, more than the largest chunk that goes through a plan at once.
fn by_turns(one: &[u32], other: &[u32]) -> Batch {
    let mut rows = Vec::new();
    for (of_one, of_other) in one.chunks(40).zip(other.chunks(15)) {
        rows.extend(all_logits(SLOT, of_one));
        rows.extend(all_logits(OTHER, of_other));
    }
    Batch { rows }
}

/// Two slots with something in them, and a checkpoint there.
fn begun(subject: &Subject, loaded: &dyn Loaded, before: [&[u32]; 2]) -> Box<dyn Session> {
    let mut session = open(subject, loaded, 2, CTX_LEN);
    for (slot, tokens) in [SLOT, OTHER].into_iter().zip(before) {
        logits_of(&mut *session, slot, tokens);
        session.checkpoint(slot).expect("the slot is there");
    }
    session
}

fn check_cancelled(subject: &Subject, bench: &Bench) {
    let loaded = bench.load(subject);
    let before: [&[u32]; 2] = [&tokens("before", 40), &tokens("beside", 7)];
    let (of_one, of_other) = subject.size.pick((400, 150), (40, 15));
    let batch = by_turns(&tokens("cancelled", of_one), &tokens("as well", of_other));
    let mut fresh = begun(subject, &*loaded, before);
    let expected = run(&mut *fresh, &batch);

    let mut session = begun(subject, &*loaded, before);
    let mut rows = Rows::default();
    let cancelled = CancelToken::new();
    cancelled.cancel();
    let ticket = session
        .submit(&batch, &cancelled)
        .expect("the batch is accepted");
    let outcome = session
        .collect(ticket, &mut rows)
        .expect("a stop is no failure");
    assert_eq!(outcome, Outcome::Cancelled);
    assert!(rows.outputs.is_empty(), "a cancelled forward gives nothing");

    let delays_us = [0, 50, 200, 1_000, 5_000, 20_000];
    for delay_us in &delays_us[subject.size.pick(0, 3)..] {
        let cancel = CancelToken::new();
        let outcome = std::thread::scope(|scope| {
            let flag = cancel.clone();
            scope.spawn(move || {
                std::thread::sleep(std::time::Duration::from_micros(*delay_us));
                flag.cancel();
            });
            let ticket = session
                .submit(&batch, &cancel)
                .expect("the batch is accepted");
            session
                .collect(ticket, &mut rows)
                .expect("a stop is no failure")
        });
        let moved = [SLOT, OTHER].map(|slot| session.position(slot));
        match outcome {
            Outcome::Cancelled => assert_eq!(moved, [40, 7]),
            Outcome::Done => {
                assert_eq!(moved, [40 + of_one, 7 + of_other]);
                assert!(rows.outputs == expected, "the flag came too late to matter");
                for (slot, before) in [SLOT, OTHER].into_iter().zip(before) {
                    let reached = session.seek(slot, before.len());
                    assert_eq!(reached, Ok(before.len()), "a checkpoint is reached");
                }
            }
        }
    }
    assert!(
        run(&mut *session, &batch) == expected,
        "after a stop as if there had been none"
    );
}

/// The best of a row are its largest logits, ties to the lower id.
pub fn top_agrees_with_logits(subject: &Subject) {
    let bench = one_model();
    let loaded = bench.load(subject);
    let prompt = tokens("top", 5);
    let mut session = open(subject, &*loaded, 1, CTX_LEN);
    let logits = logits_of(&mut *session, SLOT, &prompt);
    for k in [1, 7, VOCABULARY] {
        if !session.offers(Want::Top { k }) {
            continue;
        }
        session.reset(SLOT).expect("the slot is there");
        let mut rows = all_logits(SLOT, &prompt);
        rows.iter_mut().for_each(|row| row.want = Want::Top { k });
        let tops = run(&mut *session, &Batch { rows });
        for (top, logits) in tops.iter().zip(&logits) {
            check_top(k, top, logits);
        }
    }
    assert!(!session.offers(Want::Top { k: VOCABULARY + 1 }));
}

fn check_top(k: usize, top: &RowOutput, logits: &RowOutput) {
    let (RowOutput::Top { best, lse }, RowOutput::Logits(logits)) = (top, logits) else {
        panic!("what was asked for");
    };
    let mut sorted: Vec<(u32, f32)> = (0..).zip(logits.iter().copied()).collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    assert_eq!(best[..], sorted[..k]);
    let truth = logits.iter().map(|v| f64::from(*v).exp()).sum::<f64>().ln();
    assert!((f64::from(*lse) - truth).abs() < 1e-5, "{lse} {truth}");
}

/// A tapped forward computes what any other does.
pub fn a_tap_sees_every_node_and_changes_nothing(subject: &Subject) {
    for bench in models() {
        let loaded = bench.load(subject);
        for prompt in [tokens("tap", 20), tokens("few", 3)] {
            check_tap(subject, &bench, &*loaded, &prompt);
        }
    }
}

fn check_tap(subject: &Subject, bench: &Bench, loaded: &dyn Loaded, prompt: &[u32]) {
    let batch = Batch {
        rows: all_logits(SLOT, prompt),
    };
    let mut session = open(subject, loaded, 1, CTX_LEN);
    let expected = run(&mut *session, &batch);
    session.reset(SLOT).expect("the slot is there");
    let (mut seen, mut rows) = (Seen::default(), Rows::default());
    let showing = (&mut seen as &mut dyn Tap, &CancelToken::new());
    let outcome = session.tapped(&batch, showing, &mut rows);
    assert_eq!(outcome.expect("the forward succeeds"), Outcome::Done);
    assert!(rows.outputs == expected, "{}", bench.graph.architecture);
    assert_eq!(session.position(SLOT), prompt.len());
    for node in bench
        .graph
        .nodes
        .iter()
        .filter(|node| node.name != "logits")
    {
        let values = seen.0.get(&node.name);
        let values = values.unwrap_or_else(|| panic!("{} was not shown", node.name));
        assert_eq!(values.len(), prompt.len() * node.width, "{}", node.name);
    }
}

/// At most two forwards are open, and each is collected once.
pub fn tickets_are_taken_once(subject: &Subject) {
    let bench = one_model();
    let loaded = bench.load(subject);
    let prompt = tokens("tickets", 3);
    let mut session = open(subject, &*loaded, 1, CTX_LEN);
    let expected = logits_of(&mut *session, SLOT, &prompt);
    session.reset(SLOT).expect("the slot is there");
    let batch = |i: usize| Batch {
        rows: all_logits(SLOT, &prompt[i..=i]),
    };
    let never = CancelToken::new();
    let first = session
        .submit(&batch(0), &never)
        .expect("the batch is accepted");
    let second = session
        .submit(&batch(1), &never)
        .expect("the batch is accepted");
    assert_eq!(
        session.submit(&batch(2), &never),
        Err(SessionError::BadTicket)
    );
    let again = crate::Ticket(first.0);
    let mut rows = Rows::default();
    assert_eq!(session.collect(first, &mut rows), Ok(Outcome::Done));
    assert!(rows.outputs == expected[..1]);
    assert_eq!(
        session.collect(again, &mut rows),
        Err(SessionError::BadTicket)
    );
    assert_eq!(session.collect(second, &mut rows), Ok(Outcome::Done));
    assert!(rows.outputs == expected[1..2]);
    assert!(
        run(&mut *session, &batch(2)) == expected[2..],
        "the slot went on"
    );
}

/// A model that computes NaN, or beyond all numbers, gives an error and no logits.
pub fn what_is_no_number_is_an_error(subject: &Subject) {
    for bad in [f32::NAN, f32::INFINITY] {
        let mut bench = one_model();
        let mut weight = numbers("output_norm", 256);
        weight[100] = bad;
        bench.set("output_norm.weight", &[256], quant("F32"), &weight);
        let loaded = bench.load(subject);
        let mut session = open(subject, &*loaded, 1, CTX_LEN);
        let batch = Batch::of_slot(SLOT, &[1, 2, 3], Want::Logits);
        let mut rows = Rows::default();
        let ticket = session
            .submit(&batch, &CancelToken::new())
            .expect("the batch is accepted");
        let found = session.collect(ticket, &mut rows);
        assert!(
            matches!(found, Err(SessionError::NotFinite { .. })),
            "{bad}: {found:?}"
        );
        assert!(rows.outputs.is_empty());
        assert_eq!(session.position(SLOT), 0);
    }
}

/// Says stop at its nth question.
struct StopAt(usize);

impl Progress for StopAt {
    fn report(&mut self, done_bytes: u64, total_bytes: u64) -> Step {
        assert!(done_bytes <= total_bytes, "{done_bytes} of {total_bytes}");
        if self.0 == 0 {
            return Step::Stop;
        }
        self.0 -= 1;
        Step::Go
    }
}

/// A stop while loading is an answer, and the next load is whole.
pub fn a_load_can_be_stopped(subject: &Subject) {
    let bench = one_model();
    let mut backend = (subject.backend)();
    for n in [0, 1, 5] {
        let loaded = backend
            .load(bench.model(subject), Part::All, &mut StopAt(n))
            .map(|_| ());
        assert!(
            matches!(loaded, Err(LoadError::Stopped)),
            "question {n}: {loaded:?}"
        );
    }
    let loaded = backend.load(bench.model(subject), Part::All, &mut Unwatched);
    let loaded = loaded.expect("the model loads");
    let mut session = open(subject, &*loaded, 1, CTX_LEN);
    assert_eq!(logits_of(&mut *session, SLOT, &[1, 2]).len(), 2);
    // What is wrong with a file is said before anything is made ready.
    let mut wrong = one_model();
    let row = numbers("short", 64);
    wrong.set("blk.0.attn_norm.weight", &[64], quant("F32"), &row);
    let found = backend
        .load(wrong.model(subject), Part::All, &mut Unwatched)
        .map(|_| ());
    assert!(matches!(found, Err(LoadError::Problems(problems)) if problems.len() == 1));
}
