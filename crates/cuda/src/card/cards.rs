//! The cards that this process uses.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Card, Patience, Silence};

/// The cards that a process uses, each with its one thread. Backends that share it know of a card
/// that was lost before they were made.
#[derive(Clone, Debug, Default)]
pub struct Cards {
    started: Arc<Mutex<BTreeMap<usize, Arc<Card>>>>,
    patience: Patience,
}

impl Cards {
    /// None yet, with other limits than usual: for tests.
    #[must_use]
    pub fn with_patience(patience: Patience) -> Self {
        Self {
            patience,
            ..Self::default()
        }
    }

    /// A card whose thread runs, or could run no more.
    pub(crate) fn card(&self, ordinal: usize) -> Result<Arc<Card>, Silence> {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(card) = started.get(&ordinal) {
            return Ok(Arc::clone(card));
        }
        let card = Card::start(ordinal, self.patience)?;
        started.insert(ordinal, Arc::clone(&card));
        Ok(card)
    }

    /// Why a card is of no use to this process, if it is.
    pub(crate) fn lost(&self, ordinal: usize) -> Option<String> {
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started.get(&ordinal)?.lost().map(String::from)
    }
}
