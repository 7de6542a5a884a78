//! Opens models and runs prompts.

use std::path::Path;
use std::sync::Arc;

use candor_backend::{
    Backend, Batch, CancelToken, Feed, KvType, Loaded, Model, OpenOptions, Outcome, Part,
    Precision, Progress, Row, RowOutput, Rows, Session, SlotId, Step, Want,
};
use candor_cpu::{CpuBackend, CpuConfig, default_threads};
use candor_modelfile::{Assumed, ModelFile};

/// The only slot.
pub(crate) const SLOT: SlotId = SlotId(0);

struct Unwatched;

impl Progress for Unwatched {
    fn report(&mut self, _done_bytes: u64, _total_bytes: u64) -> Step {
        Step::Go
    }
}

pub(crate) fn load(path: &Path) -> Box<dyn Loaded> {
    load_as(path, &Assumed::default())
}

/// The same with facts that a person states.
pub(crate) fn load_as(path: &Path, assumed: &Assumed) -> Box<dyn Loaded> {
    let file = ModelFile::open_as(path, assumed).expect("the model opens");
    let graph = candor_arch::build(file.index()).expect("the architecture is known");
    let mut config = CpuConfig::new(default_threads());
    config.prepare = Precision::Exact;
    let mut backend = CpuBackend::new(config);
    backend
        .load(Arc::new(Model { file, graph }), Part::All, &mut Unwatched)
        .expect("the model loads")
}

/// A session with the state that belongs to a precision, for one slot of `ctx_len` tokens.
pub(crate) fn open(loaded: &dyn Loaded, precision: Precision, ctx_len: usize) -> Box<dyn Session> {
    let kv = match precision {
        Precision::Exact => KvType::F32,
        Precision::Fast => KvType::F16,
    };
    open_with(loaded, precision, kv, ctx_len)
}

/// The same with any kind of keys and values.
pub(crate) fn open_with(
    loaded: &dyn Loaded,
    precision: Precision,
    kv: KvType,
    ctx_len: usize,
) -> Box<dyn Session> {
    let options = OpenOptions {
        ctx_len,
        slots_max: 1,
        state_tokens: ctx_len,
        kv,
        precision,
    };
    loaded.open(options).expect("the session opens")
}

/// The logits of every position from `first`, in chunks of `chunk` tokens.
pub(crate) fn logits(
    session: &mut dyn Session,
    tokens: &[u32],
    first: usize,
    chunk: usize,
) -> Vec<Vec<f32>> {
    let mut all = Vec::new();
    for (chunk_idx, tokens) in tokens.chunks(chunk).enumerate() {
        let rows = tokens.iter().enumerate().map(|(i, token)| Row {
            slot: SLOT,
            feed: Feed::Token(*token),
            want: if chunk_idx * chunk + i >= first {
                Want::Logits
            } else {
                Want::Nothing
            },
        });
        let batch = Batch {
            rows: rows.collect(),
        };
        for output in forward(session, &batch).outputs {
            match output {
                RowOutput::Logits(logits) => all.push(logits),
                RowOutput::Top { .. } | RowOutput::Hidden(_) => panic!("logits were asked for"),
            }
        }
    }
    all
}

pub(crate) fn forward(session: &mut dyn Session, batch: &Batch) -> Rows {
    let mut rows = Rows::default();
    let ticket = session
        .submit(batch, &CancelToken::new())
        .expect("the batch is accepted");
    let outcome = session
        .collect(ticket, &mut rows)
        .expect("the forward succeeds");
    assert_eq!(outcome, Outcome::Done);
    rows
}

/// Continues greedily from a prompt; stops before a step whose margin is below `near_tie`.
pub(crate) fn check_greedy(
    session: &mut dyn Session,
    prompt: &[u32],
    expected: &[u32],
    margins: &[f32],
    near_tie: f32,
) -> usize {
    let mut batch = Batch::of_slot(SLOT, prompt, Want::Top { k: 1 });
    for (step, (expected, margin)) in expected.iter().zip(margins).enumerate() {
        if *margin < near_tie {
            return step;
        }
        let rows = forward(session, &batch);
        let RowOutput::Top { best, .. } = &rows.outputs[0] else {
            panic!("the best was asked for")
        };
        assert_eq!(best[0].0, *expected, "step {step}, margin {margin}");
        batch = Batch::of_slot(SLOT, &[*expected], Want::Top { k: 1 });
    }
    expected.len()
}
