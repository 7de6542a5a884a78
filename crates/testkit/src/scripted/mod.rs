//! A backend that says what it is told to, counts what it is asked for, and goes wrong on demand.
//!
//! A [`Script`] is the test's end: it holds the plan and the counts, and any number of backends
//! and sessions share it. Without a plan the next token depends on every token of the slot before
//! it, so a reply that goes on from a wrong context is a wrong reply.

mod backend;
mod plan;
mod session;

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use candor_backend::{
    Arithmetic, Batch, DeviceKind, OpenOptions, Session, Unavailable, Unsupported,
};

pub use backend::ScriptedBackend;
pub use plan::{Fault, LoadFault};

use plan::Plan;

/// A test that waits longer than this has hung.
pub const HANG_LIMIT: Duration = Duration::from_secs(10);

/// What scripted backends and sessions have been asked for so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Forwards that were submitted.
    pub submitted: usize,
    /// Forwards that were committed.
    pub committed: usize,
    /// Rows of each committed forward.
    pub rows: Vec<usize>,
    /// Progress reports of all loads.
    pub load_reports: usize,
    /// Weights that are in memory now.
    pub weights_alive: usize,
    /// Sessions that are open now.
    pub sessions_alive: usize,
    /// Sessions that were opened.
    pub sessions_opened: usize,
}

/// The plan and the counts. A clone is the same script.
#[derive(Clone, Debug)]
pub struct Script(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    plan: Plan,
    counts: Counts,
    batches: Vec<Batch>,
    /// Whether something stands still until it is let go.
    stalled: bool,
    /// How often stalled work was let go.
    released: usize,
}

impl Script {
    /// Replies hold these tokens, chosen by all that came before.
    pub fn new(tokens: Range<u32>) -> Self {
        let state = State {
            plan: Plan::new(tokens),
            counts: Counts::default(),
            batches: Vec::new(),
            stalled: false,
            released: 0,
        };
        Self(Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }))
    }

    /// A backend that follows this script.
    pub fn backend(&self) -> ScriptedBackend {
        ScriptedBackend::new(self.clone())
    }

    /// It says that it is a graphics card.
    pub fn on_a_card(&self) {
        self.lock().plan.kind = DeviceKind::Gpu;
    }

    /// Its device cannot be used.
    pub fn unavailable(&self, why: Unavailable) {
        self.lock().plan.unavailable = Some(why);
    }

    /// It cannot run any model, for want of these.
    pub fn unsupported(&self, missing: &[Unsupported]) {
        self.lock().plan.missing = missing.to_vec();
    }

    /// Contexts of at least `tokens` tokens get other logits than they should; none with nothing.
    pub fn wrong_from(&self, tokens: Option<usize>) {
        self.lock().plan.wrong_from = tokens;
    }

    /// Contexts of fewer than `tokens` tokens get other logits than they should.
    pub fn wrong_below(&self, tokens: usize) {
        self.lock().plan.wrong_below = tokens;
    }

    /// A few rows are computed in one way for each of these lengths of context.
    pub fn ways(&self, lengths: &[usize]) {
        self.lock().plan.ways = lengths.to_vec();
    }

    /// A session without a model.
    pub fn session(&self, options: OpenOptions, vocabulary: usize) -> Box<dyn Session> {
        Box::new(session::ScriptedSession::new(
            self.clone(),
            options,
            vocabulary,
        ))
    }

    /// The next logits favour these tokens, one each, whatever the context.
    pub fn reply(&self, tokens: &[u32]) {
        self.lock().plan.reply.extend(tokens);
    }

    /// Something goes wrong at a submitted forward, counted from 0 over all sessions.
    pub fn at_forward(&self, forward: usize, fault: Fault) {
        self.lock().plan.faults.push((forward, fault));
    }

    /// Loads report this often; more make a load slower.
    pub fn load_reports(&self, reports: usize) {
        self.lock().plan.load_reports = reports;
    }

    /// Something goes wrong at a report of the next load, counted from 0.
    pub fn at_load_report(&self, report: usize, fault: LoadFault) {
        self.lock().plan.load_fault = Some((report, fault));
    }

    /// States can be cut only at multiples of this many tokens.
    pub fn cut_only_at(&self, tokens: usize) {
        self.lock().plan.cut_tokens = tokens;
    }

    /// Its sessions say that writing computes with this; reading is in float32.
    pub fn writes_with(&self, decode: Arithmetic) {
        self.lock().plan.decode = decode;
    }

    /// Its sessions give no rows but as logits.
    pub fn offers_no_rows(&self) {
        self.lock().plan.offers_rows = false;
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        self.lock().counts.clone()
    }

    /// All batches that were submitted.
    pub fn batches(&self) -> Vec<Batch> {
        self.lock().batches.clone()
    }

    /// Waits until a planned stall is reached.
    ///
    /// # Panics
    /// If that takes longer than [`HANG_LIMIT`].
    pub fn wait_until_stalled(&self) {
        let waits = |state: &mut State| !state.stalled;
        let waited = self
            .0
            .changed
            .wait_timeout_while(self.lock(), HANG_LIMIT, waits);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(
            state.stalled,
            "the script was not stalled within {HANG_LIMIT:?}"
        );
    }

    /// Lets stalled work go on.
    pub fn release(&self) {
        let mut state = self.lock();
        state.stalled = false;
        state.released += 1;
        self.0.changed.notify_all();
    }

    /// Stands still until it is let go or `stopped` says so.
    fn stall(&self, mut stopped: impl FnMut() -> bool) {
        let mut state = self.lock();
        let before = state.released;
        state.stalled = true;
        self.0.changed.notify_all();
        while state.released == before {
            drop(state);
            if stopped() {
                state = self.lock();
                break;
            }
            // Short enough that a test does not notice, long enough to leave the core to others.
            let pause = Duration::from_millis(1);
            let waited = self.0.changed.wait_timeout(self.lock(), pause);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.stalled = false;
    }

    /// A planned panic may poison the lock; what it guards is whole at every moment.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
