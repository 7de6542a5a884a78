//! The guard's work around a load: the probe, the reference's side, and what is kept of it.

use std::sync::Arc;

use candor_arch::PAGE_TOKENS;
use candor_backend::{Backend, KvType, Loaded, Model, OpenOptions, Precision, Session};

use crate::guard::{Key, Remembered, VerdictMemory};

/// The reference's side of a device: weights that are ready once a session was needed.
pub(crate) struct ExactSide<'a> {
    pub(crate) backend: &'a mut dyn Backend,
    pub(crate) model: &'a Arc<Model>,
    pub(crate) weights: &'a mut Option<Box<dyn Loaded>>,
    /// As the device's session was opened.
    pub(crate) options: OpenOptions,
}

impl ExactSide<'_> {
    /// A session for so many tokens, with float32 activations and state. Its context is as long
    /// as the device's, because some models rotate by that; only its pool is as small as it can be.
    pub(crate) fn open(&mut self, tokens: usize) -> Result<Box<dyn Session>, String> {
        if self.weights.is_none() {
            let loaded = self.backend.load_exact(Arc::clone(self.model));
            *self.weights = Some(loaded.map_err(|error| error.to_string())?);
        }
        let weights = self.weights.as_ref().expect("they were readied just now");
        let pages = tokens.div_ceil(PAGE_TOKENS);
        let options = OpenOptions {
            slots_max: 1,
            state_tokens: (pages * PAGE_TOKENS).min(self.options.ctx_len.max(tokens)),
            kv: KvType::F32,
            precision: Precision::Exact,
            ..self.options
        };
        weights.open(options).map_err(|error| error.to_string())
    }
}

/// Where the logits of one device and file are kept.
pub(crate) struct Kept {
    memory: VerdictMemory,
    key: Key,
}

impl Kept {
    pub(crate) fn new(memory: VerdictMemory, device: String, fingerprint: String) -> Self {
        let key = Key {
            file: memory.file.clone(),
            device,
            fingerprint,
            version: memory.version.clone(),
        };
        Self { memory, key }
    }

    /// What is not whole, or of another version, is as good as nothing.
    pub(crate) fn recall(&self) -> Option<Arc<Remembered>> {
        let bytes = self.memory.store.recall(&self.key)?;
        Remembered::from_bytes(&bytes).ok().map(Arc::new)
    }

    pub(crate) fn keep(&self, remembered: &Remembered) {
        self.memory.store.keep(&self.key, &remembered.to_bytes());
    }
}
