//! What all requests share.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candor_app::service::{DescribedFiles, Source};

use crate::config::ServerConfig;
use crate::gate::Gate;
use crate::metrics::Metrics;

/// What all requests share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) config: ServerConfig,
    pub(crate) gate: Arc<Gate>,
    pub(crate) metrics: Metrics,
    pub(crate) described: DescribedFiles,
    /// Where this run's names of answers begin.
    first_id: u64,
    ids: AtomicU64,
    /// The model whose memory the last request wants given back once nobody is inside.
    unloads_soon: Mutex<Option<String>>,
    /// When a request last began or ended, in milliseconds since 1970.
    used_ms: AtomicI64,
}

impl std::ops::Deref for Shared {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Shared {
    pub(crate) fn new(source: Arc<dyn Source>, config: ServerConfig) -> Self {
        let gate = Gate::new(config.slots.saturating_add(config.queue));
        let first_id = (config.fresh_seed)();
        let used_ms = AtomicI64::new((config.clock.now_ms)());
        Self(Arc::new(Inner {
            source,
            config,
            gate,
            metrics: Metrics::default(),
            described: DescribedFiles::default(),
            first_id,
            ids: AtomicU64::new(0),
            unloads_soon: Mutex::default(),
            used_ms,
        }))
    }
}

impl Inner {
    /// A name that no other answer of this run has.
    pub(crate) fn fresh_id(&self, prefix: &str) -> String {
        let number = self.ids.fetch_add(1, Ordering::Relaxed);
        format!("{prefix}{:016x}{number:08x}", self.first_id)
    }

    pub(crate) fn now_ms(&self) -> i64 {
        (self.config.clock.now_ms)()
    }

    pub(crate) fn now_s(&self) -> i64 {
        self.now_ms().div_euclid(1_000)
    }

    /// Notes that the model is in use.
    pub(crate) fn used(&self) {
        self.used_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    /// A request has come: what one before it wanted of the model's memory counts no more.
    pub(crate) fn keeps_model(&self) {
        *self.unloads() = None;
    }

    /// Has the memory of this model given back once nobody is inside.
    pub(crate) fn unload_soon(&self, id: &str) {
        *self.unloads() = Some(id.to_owned());
    }

    /// The model whose memory is to be given back now; said once.
    pub(crate) fn unloads_now(&self) -> Option<String> {
        (self.gate.inside() == 0)
            .then(|| self.unloads().take())
            .flatten()
    }

    fn unloads(&self) -> MutexGuard<'_, Option<String>> {
        // Each change is one assignment, so a panic leaves nothing half done.
        self.unloads_soon
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// How long nobody has used the model, in milliseconds; 0 while somebody does.
    pub(crate) fn idle_ms(&self) -> i64 {
        if self.gate.inside() > 0 {
            return 0;
        }
        self.now_ms() - self.used_ms.load(Ordering::Relaxed)
    }
}
