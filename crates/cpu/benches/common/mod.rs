//! What the benches of whole models share.

use std::path::Path;
use std::sync::Arc;

use candor_backend::{
    Backend, Batch, CancelToken, KvType, Loaded, Model, OpenOptions, Outcome, Part, Precision,
    Progress, Rows, Session, SlotId, Step, Want,
};
use candor_cpu::{CpuBackend, CpuConfig};
use candor_modelfile::ModelFile;

/// The only slot.
pub(crate) const SLOT: SlotId = SlotId(0);

/// Tokens of a prompt that are read at once, as the engine does.
pub(crate) const CHUNK: usize = 512;

struct Unwatched;

impl Progress for Unwatched {
    fn report(&mut self, _done_bytes: u64, _total_bytes: u64) -> Step {
        Step::Go
    }
}

/// A model, ready for the fast path.
pub(crate) fn load(path: &Path, config: CpuConfig) -> Box<dyn Loaded> {
    let file = ModelFile::open(path).expect("the model opens");
    let graph = candor_arch::build(file.index()).expect("the architecture is known");
    CpuBackend::new(config)
        .load(Arc::new(Model { file, graph }), Part::All, &mut Unwatched)
        .expect("the model loads")
}

/// A session of the fast path for one slot.
pub(crate) fn open(loaded: &dyn Loaded, ctx_len: usize, kv: KvType) -> Box<dyn Session> {
    let options = OpenOptions {
        ctx_len,
        slots_max: 1,
        state_tokens: ctx_len,
        kv,
        precision: Precision::Fast,
    };
    loaded.open(options).expect("the session opens")
}

/// Fixed tokens, spread over the vocabulary.
pub(crate) fn ids(session: &dyn Session, count: usize) -> Vec<u32> {
    let vocabulary = session.vocabulary();
    let id = |place| (place * 7_919 + 13) % vocabulary;
    (0..count).map(|place| id(place) as u32).collect()
}

/// Reads or writes some tokens; the outputs are those of the last one.
pub(crate) fn forward(
    session: &mut dyn Session,
    ids: &[u32],
    cancel: &CancelToken,
) -> (Outcome, Rows) {
    let mut rows = Rows::default();
    let batch = Batch::of_slot(SLOT, ids, Want::Top { k: 16 });
    let ticket = session
        .submit(&batch, cancel)
        .expect("the batch is accepted");
    let outcome = session
        .collect(ticket, &mut rows)
        .expect("the forward succeeds");
    (outcome, rows)
}
