//! The flag that stops work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that one side sets and the other polls. Setting it twice, or after the work has ended,
/// does nothing. Every piece of work that can take long takes one; there is no way to run without.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token that nobody has cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the work that holds a clone of this token to end.
    pub fn cancel(&self) {
        // Nothing is published along with the flag, so no ordering beyond the flag is needed.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked for the end.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether both are the same flag.
    pub fn same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
