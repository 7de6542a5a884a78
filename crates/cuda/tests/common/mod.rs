//! A card for tests: the simulated one, or with the feature `real-driver` the machine's own, without
//! which they fail.
#![allow(dead_code, reason = "not every test program uses all of it")]

use std::path::Path;
use std::sync::Arc;

use candor_backend::{
    Backend, Batch, CancelToken, KvType, LoadError, Loaded, Model, OpenOptions, Outcome, Part,
    Precision, Progress, Rows, Session, SlotId, Step,
};
use candor_cuda::{CudaBackend, CudaDevice};
use candor_modelfile::ModelFile;

/// The only slot of most tests.
pub(crate) const SLOT: SlotId = SlotId(0);

/// The machine of most tests.
pub(crate) const MACHINE: &str = "";

/// The card of this process, simulated with these settings at the first question.
pub(crate) fn device(settings: &str) -> CudaDevice {
    if cfg!(feature = "real-driver") {
        let found = candor_cuda::understand(&candor_cuda::probe_child());
        let first = found.expect("there is a card").into_iter().next();
        return first.expect("the answer names a card");
    }
    let _ = simcuda::load_here(settings);
    simulated()
}

/// The simulated card, which is loaded already.
pub(crate) fn simulated() -> CudaDevice {
    CudaDevice {
        ordinal: 0,
        name: String::from("Simulated GPU"),
        capability: (8, 6),
        total_bytes: 8 << 30,
        free_bytes: 8 << 30,
        driver_version: 12_040,
    }
}

pub(crate) fn backend() -> Box<dyn Backend> {
    Box::new(CudaBackend::new(device(MACHINE)))
}

/// Nobody watches.
pub(crate) struct Unwatched;

impl Progress for Unwatched {
    fn report(&mut self, _done_bytes: u64, _total_bytes: u64) -> Step {
        Step::Go
    }
}

/// One of the tiny golden models of the repository.
pub(crate) fn golden_model(name: &str) -> Arc<Model> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/models");
    model(&folder.join(name))
}

pub(crate) fn model(path: &Path) -> Arc<Model> {
    let file = ModelFile::open(path).expect("the model opens");
    let graph = candor_arch::build(file.index()).expect("the architecture is known");
    Arc::new(Model { file, graph })
}

pub(crate) fn load(
    backend: &mut dyn Backend,
    model: &Arc<Model>,
) -> Result<Box<dyn Loaded>, LoadError> {
    backend.load(Arc::clone(model), Part::All, &mut Unwatched)
}

/// Options of a session with one slot.
pub(crate) fn options(ctx_len: usize) -> OpenOptions {
    OpenOptions {
        ctx_len,
        slots_max: 1,
        state_tokens: ctx_len.next_multiple_of(256),
        kv: KvType::F16,
        precision: Precision::Fast,
    }
}

/// Runs a batch to its end.
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
