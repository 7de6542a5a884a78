//! The bounded queue in front of the engine: a request has a place in it from its first byte that
//! was understood to the end of its answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many requests are inside.
#[derive(Debug)]
pub(crate) struct Gate {
    inside: AtomicUsize,
    max: usize,
}

/// Places of one request, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    gate: Arc<Gate>,
    count: usize,
}

impl Gate {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            inside: AtomicUsize::new(0),
            max,
        })
    }

    /// Places for so many replies, or none while too many are inside.
    pub(crate) fn enter(self: &Arc<Self>, count: usize) -> Option<Place> {
        let more = |inside: usize| inside.checked_add(count).filter(|sum| *sum <= self.max);
        let order = Ordering::SeqCst;
        self.inside.fetch_update(order, order, more).ok()?;
        Some(Place {
            gate: Arc::clone(self),
            count,
        })
    }

    pub(crate) fn inside(&self) -> usize {
        self.inside.load(Ordering::SeqCst)
    }

    pub(crate) fn max(&self) -> usize {
        self.max
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.gate.inside.fetch_sub(self.count, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_come_in_than_there_are_places() {
        let gate = Gate::new(3);
        let first = gate.enter(1).unwrap();
        assert!(gate.enter(3).is_none() && gate.enter(usize::MAX).is_none());
        let second = gate.enter(2).unwrap();
        assert!(gate.enter(1).is_none());
        drop(first);
        assert_eq!(gate.inside(), 2);
        drop((gate.enter(1).unwrap(), second));
        assert_eq!(gate.inside(), 0);
    }
}
