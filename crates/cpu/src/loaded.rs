//! Weights that are ready, and the sessions that share them.

use std::sync::{Arc, Mutex, PoisonError};

use candor_arch::{StateSizes, fuse};
use candor_backend::{
    LoadError, Loaded, Model, OpenError, OpenOptions, Precision, Progress, Session, Step,
};

use crate::forward::PATTERNS;
use crate::session::CpuSession;
use crate::simd::Kernels;
use crate::state::{self, State};
use crate::threads::{Pool, cores};
use crate::weights::{PackedWeights, Weights};

/// A model on the CPU.
pub(crate) struct CpuLoaded {
    pool: Arc<Pool>,
    kernels: &'static Kernels,
    weights: Arc<Weights>,
    /// Made at load, or when the first fast session is opened.
    packed: Mutex<Option<Arc<PackedWeights>>>,
}

impl CpuLoaded {
    pub(crate) fn new(
        pool: Arc<Pool>,
        kernels: &'static Kernels,
        weights: Arc<Weights>,
        packed: Option<Arc<PackedWeights>>,
    ) -> Self {
        Self {
            pool,
            kernels,
            weights,
            packed: Mutex::new(packed),
        }
    }

    fn packed(&self) -> Result<Arc<PackedWeights>, OpenError> {
        let mut packed = self.packed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ready) = &*packed {
            return Ok(Arc::clone(ready));
        }
        let made = PackedWeights::new(&self.weights, &self.pool, &mut Unwatched);
        let made = Arc::new(made.map_err(|error| match error {
            LoadError::OutOfMemory {
                needed_bytes,
                available_bytes,
            } => OpenError::OutOfMemory {
                needed_bytes,
                available_bytes,
            },
            // Nobody can stop it, and the graph was checked.
            _ => OpenError::OutOfMemory {
                needed_bytes: 0,
                available_bytes: 0,
            },
        })?);
        *packed = Some(Arc::clone(&made));
        Ok(made)
    }
}

/// Nobody watches.
struct Unwatched;

impl Progress for Unwatched {
    fn report(&mut self, _done_bytes: u64, _total_bytes: u64) -> Step {
        Step::Go
    }
}

impl Loaded for CpuLoaded {
    fn open(&self, options: OpenOptions) -> Result<Box<dyn Session>, OpenError> {
        options.check()?;
        let graph = &self.weights.model.graph;
        let sizes = StateSizes {
            kv: options.kv,
            ctx_len: options.ctx_len,
            slots: options.slots_max,
            tokens: options.state_tokens,
            threads: self.pool.threads(),
        };
        check_memory(state::bytes_needed(&graph.state, sizes))?;
        let packed = match options.precision {
            Precision::Exact => None,
            Precision::Fast => Some(self.packed()?),
        };
        Ok(Box::new(CpuSession::new(
            Arc::clone(&self.pool),
            self.kernels,
            Arc::clone(&self.weights),
            packed,
            fuse(graph, PATTERNS),
            State::new(&graph.state, sizes),
        )))
    }

    fn weights_bytes(&self) -> u64 {
        let packed = self.packed.lock().unwrap_or_else(PoisonError::into_inner);
        self.weights.size_bytes() + packed.as_ref().map_or(0, |packed| packed.size_bytes())
    }

    fn model(&self) -> &Arc<Model> {
        &self.weights.model
    }
}

/// Refuses a state that could not be held once it is full.
fn check_memory(needed_bytes: u64) -> Result<(), OpenError> {
    match cores::available_memory() {
        Some(available_bytes) if needed_bytes > available_bytes => Err(OpenError::OutOfMemory {
            needed_bytes,
            available_bytes,
        }),
        _ => Ok(()),
    }
}
