//! One reply while it is written, for everybody who follows it.
//!
//! The engine writes a log; the end is only known once the reply is stored. A reply whose model
//! was exchanged before its first token is asked for again, so a turn may have several logs, of
//! which only the last one goes on.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use candor_backend::CancelToken;
use candor_engine::{Event, TurnLog};

use crate::wire::{ConversationId, RunningTurn, TurnEvent, TurnId};

/// A turn. Its number is that of the message it writes.
pub(crate) struct Turn {
    pub(crate) id: TurnId,
    pub(crate) conversation: ConversationId,
    pub(crate) cancel: CancelToken,
    /// How the reply begins: what it had before, and what its template begins it with.
    begun: Mutex<String>,
    course: Mutex<Course>,
    changed: Condvar,
}

#[derive(Default)]
struct Course {
    logs: Vec<Arc<TurnLog>>,
    /// How long each of the reply's thoughts took that are at their end, in milliseconds.
    thinking_ms: Vec<f64>,
    /// The terminal event, once the reply is stored.
    ended: Option<TurnEvent>,
}

/// What a reader gets.
pub(crate) enum Heard {
    /// The engine's next events, without the terminal one.
    Events(Vec<Event>),
    /// The end.
    End(Box<TurnEvent>),
    /// Nothing within the time.
    Nothing,
}

/// Where a reader is.
#[derive(Default)]
pub(crate) struct Cursor {
    log: usize,
    place: u64,
    /// Events before this place, over all logs.
    pub(crate) seq: u64,
}

impl Turn {
    pub(crate) fn new(id: TurnId, conversation: ConversationId) -> Self {
        let (course, changed) = (Mutex::default(), Condvar::new());
        Self {
            id,
            conversation,
            cancel: CancelToken::new(),
            begun: Mutex::default(),
            course,
            changed,
        }
    }

    pub(crate) fn running(&self) -> RunningTurn {
        RunningTurn {
            turn: self.id,
            conversation: self.conversation,
            message: self.id,
        }
    }

    pub(crate) fn goes_on_in(&self, log: Arc<TurnLog>) {
        self.course().logs.push(log);
        self.changed.notify_all();
    }

    /// Notes how the reply begins, before it has a log.
    pub(crate) fn begins_with(&self, text: &str) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        text.clone_into(&mut begun);
    }

    /// How the reply begins.
    pub(crate) fn beginning(&self) -> String {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.clone()
    }

    /// Notes how long a thought took.
    pub(crate) fn thought_for(&self, ms: f64) {
        self.course().thinking_ms.push(ms);
    }

    /// How long the thought with this number took, if its end was noted.
    pub(crate) fn thinking_ms(&self, number: usize) -> Option<f64> {
        self.course().thinking_ms.get(number).copied()
    }

    /// Whether the engine has it.
    pub(crate) fn is_asked(&self) -> bool {
        !self.course().logs.is_empty()
    }

    pub(crate) fn end(&self, event: TurnEvent) {
        self.course().ended = Some(event);
        self.changed.notify_all();
    }

    /// The next events for a reader; waits up to `timeout` for them.
    pub(crate) fn hear(&self, cursor: &mut Cursor, timeout: Duration) -> Heard {
        loop {
            let (log, is_last) = {
                let course = self.course();
                let log = course.logs.get(cursor.log).cloned();
                (log, cursor.log + 1 >= course.logs.len())
            };
            let Some(log) = log else {
                return self.wait_for_more(cursor, timeout);
            };
            let entries = log.wait(cursor.place, timeout);
            if !entries.is_empty() {
                cursor.place += entries.len() as u64;
                cursor.seq += entries.len() as u64;
                let events = entries.into_iter().map(|entry| entry.event);
                return Heard::Events(events.filter(|event| !event.is_terminal()).collect());
            }
            if !log.has_ended() || cursor.place < log.len() {
                return Heard::Nothing;
            }
            if is_last {
                return self.wait_for_more(cursor, timeout);
            }
            (cursor.log, cursor.place) = (cursor.log + 1, 0);
        }
    }

    /// Waits until there is a log after the reader's, or the end.
    fn wait_for_more(&self, cursor: &mut Cursor, timeout: Duration) -> Heard {
        let at_end_of = cursor.place > 0;
        let next = cursor.log + usize::from(at_end_of);
        let nothing_new = |course: &mut Course| course.logs.len() <= next && course.ended.is_none();
        let waited = self
            .changed
            .wait_timeout_while(self.course(), timeout, nothing_new);
        let (course, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if course.logs.len() > next {
            (cursor.log, cursor.place) = (next, 0);
            return Heard::Events(Vec::new());
        }
        match &course.ended {
            Some(end) => Heard::End(Box::new(end.clone())),
            None => Heard::Nothing,
        }
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        // Each change is one assignment, so a panic leaves nothing half done.
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
