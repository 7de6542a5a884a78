//! What audits have shown, kept beside the verdicts.

use candor_engine::{Key, LoadedModel, VerdictMemory};

/// Audits that a card has passed with a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Audits {
    /// How many prompts it was held against the processor on.
    pub(crate) prompts: u32,
    /// The last position of the longest.
    pub(crate) position: u32,
}

impl Audits {
    /// With one more, which came to this position.
    pub(super) fn and(self, position: usize) -> Self {
        let position = u32::try_from(position).unwrap_or(u32::MAX);
        Self {
            prompts: self.prompts.saturating_add(1),
            position: self.position.max(position),
        }
    }

    fn to_bytes(self) -> [u8; 8] {
        let all = u64::from(self.prompts) << 32 | u64::from(self.position);
        all.to_le_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let all = u64::from_le_bytes(bytes.try_into().ok()?);
        Some(Self {
            prompts: u32::try_from(all >> 32).ok()?,
            position: (all & u64::from(u32::MAX)) as u32,
        })
    }

    /// What was kept of a model on a card with this driver; none where nothing was.
    pub(super) fn recall(memory: &VerdictMemory, (model, driver): (&LoadedModel, i32)) -> Self {
        let bytes = memory.store.recall(&key(memory, model, driver));
        let kept = bytes.and_then(|bytes| Self::from_bytes(&bytes));
        kept.unwrap_or_default()
    }

    pub(super) fn keep(self, memory: &VerdictMemory, (model, driver): (&LoadedModel, i32)) {
        let key = key(memory, model, driver);
        memory.store.keep(&key, &self.to_bytes());
    }
}

fn key(memory: &VerdictMemory, model: &LoadedModel, driver: i32) -> Key {
    let device = &model.device;
    Key {
        file: memory.file.clone(),
        device: format!("{} ({})", device.name, device.isa),
        fingerprint: format!("audits, driver {driver}"),
        version: memory.version.clone(),
    }
}
