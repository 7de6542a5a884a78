//! The flag that stops work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A flag that one side sets and the other polls. Setting it twice, or after the work has ended,
/// does nothing. Every piece of work that can take long takes one; there is no way to run without.
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    own: Arc<AtomicBool>,
    /// Flags that count as this one.
    also: Option<Arc<[CancelToken]>>,
    /// Flags that together count as this one.
    all: Option<Arc<[CancelToken]>>,
    /// Questions that are still answered with no.
    patience: Option<Arc<AtomicUsize>>,
}

impl CancelToken {
    /// A token that nobody has cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// A token that is cancelled as soon as one of these is, and can be cancelled by itself without
    /// touching them. For a forward that computes rows of several requests.
    pub fn any(tokens: impl IntoIterator<Item = CancelToken>) -> Self {
        Self {
            also: Some(tokens.into_iter().collect()),
            ..Self::default()
        }
    }

    /// A token that is cancelled as soon as all of these are, of which there has to be one. For a
    /// forward that goes on while somebody needs it.
    pub fn all(tokens: impl IntoIterator<Item = CancelToken>) -> Self {
        Self {
            all: Some(tokens.into_iter().collect()),
            ..Self::default()
        }
    }

    /// A token that answers so many questions with no and is cancelled then. For tests, which so
    /// stop work at each place where it asks.
    pub fn after(questions: usize) -> Self {
        Self {
            patience: Some(Arc::new(AtomicUsize::new(questions))),
            ..Self::default()
        }
    }

    /// Asks the work that holds a clone of this token to end.
    pub fn cancel(&self) {
        // Nothing is published along with the flag, so no ordering beyond the flag is needed.
        self.own.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked for the end.
    pub fn is_cancelled(&self) -> bool {
        self.own.load(Ordering::Relaxed)
            || self.patience.as_ref().is_some_and(|left| {
                let less = |left: usize| left.checked_sub(1);
                let order = Ordering::Relaxed;
                left.fetch_update(order, order, less).is_err()
            })
            || self
                .also
                .as_ref()
                .is_some_and(|also| also.iter().any(Self::is_cancelled))
            || self
                .all
                .as_ref()
                .is_some_and(|all| !all.is_empty() && all.iter().all(Self::is_cancelled))
    }

    /// Whether both are the same flag.
    pub fn same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.own, &other.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_joint_token_hears_each_of_its_parts_and_touches_none() {
        let parts = [CancelToken::new(), CancelToken::new()];
        let joint = CancelToken::any(parts.clone());
        assert!(!joint.is_cancelled());
        parts[1].cancel();
        assert!(joint.is_cancelled() && !parts[0].is_cancelled());

        let joint = CancelToken::any([parts[0].clone()]);
        joint.cancel();
        joint.cancel();
        assert!(joint.is_cancelled() && !parts[0].is_cancelled());
        assert!(!joint.same_as(&parts[0]) && joint.same_as(&joint.clone()));
    }

    #[test]
    fn a_token_of_all_waits_for_the_last() {
        let parts = [CancelToken::new(), CancelToken::new()];
        let both = CancelToken::all(parts.clone());
        parts[0].cancel();
        assert!(!both.is_cancelled() && !parts[1].is_cancelled());
        parts[1].cancel();
        assert!(both.is_cancelled());
        assert!(!CancelToken::all([]).is_cancelled(), "of none");
    }

    #[test]
    fn a_patient_token_answers_so_often() {
        let token = CancelToken::after(2);
        let answers = [(); 4].map(|()| token.clone().is_cancelled());
        assert_eq!(answers, [false, false, true, true]);
    }
}
