//! One question to a card's thread: what is said until it is answered, and who still wants to know.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;

use candor_backend::Step;

/// What is said before the answer; whoever asked says whether to go on.
#[derive(Debug)]
pub(crate) enum Word {
    /// How far a load is.
    Progress { done: u64, total: u64 },
    /// What a node of a forward gave.
    Node {
        name: String,
        rows: usize,
        width: usize,
        values: Vec<f32>,
    },
}

/// What an answer is: what was asked for, or what broke down.
type Done = thread::Result<Box<dyn Any + Send>>;

/// What crosses to whoever asked.
pub(super) enum Said {
    Word(Word),
    Done(Done),
}

/// Whether whoever asked still waits, and whether what was asked takes effect: only one of both
/// sides can say so.
const OPEN: u8 = 0;
const LEFT: u8 = 1;
const KEPT: u8 = 2;

/// The thread's end.
pub(crate) struct Line {
    said: Sender<Said>,
    answered: Receiver<Step>,
    state: Arc<AtomicU8>,
}

/// The other end.
pub(super) struct Promise(Arc<AtomicU8>);

impl Line {
    pub(super) fn new(said: Sender<Said>, answered: Receiver<Step>) -> (Self, Promise) {
        let state = Arc::new(AtomicU8::new(OPEN));
        let promise = Promise(Arc::clone(&state));
        let line = Self {
            said,
            answered,
            state,
        };
        (line, promise)
    }

    /// Says something and waits for the answer to it. Who has left wants the end.
    pub(crate) fn say(&self, word: Word) -> Step {
        match self.said.send(Said::Word(word)) {
            Ok(()) => self.answered.recv().unwrap_or(Step::Stop),
            Err(_) => Step::Stop,
        }
    }

    /// Whether what was done is still wanted. If so, whoever asked stays for the answer; if not,
    /// it has to be taken back.
    pub(crate) fn keeps(&self) -> bool {
        let order = Ordering::AcqRel;
        let kept = self
            .state
            .compare_exchange(OPEN, KEPT, order, Ordering::Acquire);
        kept.is_ok() || kept == Err(KEPT)
    }

    pub(super) fn close(self, done: Done) {
        // Nobody may be there any more.
        let _ = self.said.send(Said::Done(done));
    }
}

impl Promise {
    /// Whoever asked leaves, unless the answer is on its way.
    pub(super) fn leave(&self) -> bool {
        let order = Ordering::AcqRel;
        let left = self
            .0
            .compare_exchange(OPEN, LEFT, order, Ordering::Acquire);
        left.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn line() -> (Line, Promise) {
        Line::new(channel().0, channel().1)
    }

    #[test]
    fn what_was_left_is_not_kept_and_what_is_kept_is_waited_for() {
        let (line, promise) = line();
        assert!(promise.leave() && !line.keeps());

        let (line, promise) = self::line();
        assert!(line.keeps() && !promise.leave() && line.keeps());
    }

    #[test]
    fn nobody_there_is_a_wish_to_stop() {
        let (line, _) = line();
        let word = Word::Progress { done: 1, total: 2 };
        assert_eq!(line.say(word), Step::Stop);
    }
}
