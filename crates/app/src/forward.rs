//! From a turn to one window: several events in a batch, at most one batch a frame.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use candor_engine::{Event, TurnState};

use crate::config::Clock;
use crate::record;
use crate::turn::{Cursor, Heard, Turn};
use crate::wire::{TurnBatch, TurnEvent};

/// A frame at 60 per second: more batches than this no window can paint.
const FRAME: Duration = Duration::from_millis(16);

/// How long a quiet turn is waited for before it is looked at again.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reads that are put into one batch at most. Bounds a batch for a reader that comes late to a
/// long reply, to some thousand tokens.
const READS_MAX: usize = 32;

/// Whether a reader wants more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attached {
    /// It does.
    Stay,
    /// It is gone.
    Gone,
}

/// Takes what a turn tells, in order, on a thread of its own. It is dropped after the batch with
/// the terminal event, or when it says that it is gone.
pub type TurnReader = Box<dyn FnMut(TurnBatch) -> Attached + Send>;

/// Tells a reader everything from `from_seq` to the end.
pub(crate) fn forward(turn: &Arc<Turn>, from_seq: u64, clock: &Clock, mut reader: TurnReader) {
    let mut cursor = Cursor::default();
    let mut gathered = Gathered::default();
    let mut last_sent = None;
    loop {
        let mut end = listen(turn, &mut cursor, from_seq, &mut gathered, PATIENCE);
        if let (None, Some(sent), false) = (&end, last_sent, gathered.events.is_empty()) {
            let since = (clock.instant)().saturating_duration_since(sent);
            thread::sleep(FRAME.saturating_sub(since));
            for _ in 0..READS_MAX {
                let before = cursor.seq;
                end = listen(turn, &mut cursor, from_seq, &mut gathered, Duration::ZERO);
                if end.is_some() || cursor.seq == before {
                    break;
                }
            }
        }
        let ended = end.is_some();
        gathered.events.extend(end);
        if gathered.events.is_empty() {
            continue;
        }
        // The end has no place of its own: whoever attaches is told it, from wherever.
        let next_seq = u32::try_from(cursor.seq).unwrap_or(u32::MAX);
        let batch = TurnBatch {
            next_seq,
            events: std::mem::take(&mut gathered.events),
        };
        if reader(batch) == Attached::Gone || ended {
            return;
        }
        last_sent = Some((clock.instant)());
    }
}

/// Takes in what is new; gives the end once it is reached.
fn listen(
    turn: &Turn,
    cursor: &mut Cursor,
    from_seq: u64,
    gathered: &mut Gathered,
    timeout: Duration,
) -> Option<TurnEvent> {
    let seq = cursor.seq;
    match turn.hear(cursor, timeout) {
        Heard::Events(events) => {
            for (seq, event) in (seq..).zip(events) {
                gathered.take(event, seq >= from_seq);
            }
            None
        }
        Heard::End(end) => Some(*end),
        Heard::Nothing => None,
    }
}

/// Events on their way into a batch.
#[derive(Default)]
struct Gathered {
    events: Vec<TurnEvent>,
    tokens: u32,
}

impl Gathered {
    /// Counts an event, and keeps it if it is new to the reader.
    fn take(&mut self, event: Event, is_new: bool) {
        if matches!(event, Event::Token { .. }) {
            self.tokens = self.tokens.saturating_add(1);
        }
        let Some(event) = self.of_engine(event).filter(|_| is_new) else {
            return;
        };
        match (self.events.last_mut(), event) {
            (
                Some(TurnEvent::Text { text, tokens }),
                TurnEvent::Text {
                    text: more,
                    tokens: now,
                },
            ) => {
                text.push_str(&more);
                *tokens = now;
            }
            (Some(last @ TurnEvent::Reading { .. }), event @ TurnEvent::Reading { .. })
            | (Some(last @ TurnEvent::Checking { .. }), event @ TurnEvent::Checking { .. }) => {
                *last = event;
            }
            (_, event) => self.events.push(event),
        }
    }

    fn of_engine(&self, event: Event) -> Option<TurnEvent> {
        let count = |tokens| u32::try_from(tokens).unwrap_or(u32::MAX);
        match event {
            Event::Token { text, .. } | Event::Tail { text } => Some(TurnEvent::Text {
                text,
                tokens: self.tokens,
            }),
            Event::State(TurnState::Waiting) => Some(TurnEvent::Waiting),
            Event::State(TurnState::Prefill { done, total }) => Some(TurnEvent::Reading {
                done: count(done),
                total: count(total),
            }),
            Event::State(TurnState::Proving { done, total }) => Some(TurnEvent::Checking {
                done: count(done),
                total: count(total),
            }),
            Event::Moved { reason, .. } => Some(TurnEvent::Moved {
                notice: record::moved_words(&reason),
            }),
            Event::State(TurnState::Decode | TurnState::Served(_))
            | Event::Proven(_)
            | Event::Repeats(_)
            | Event::Embedding(_)
            | Event::Finished { .. }
            | Event::Failed { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> Event {
        Event::Token {
            id: 1,
            text: String::from(text),
            logprobs: None,
        }
    }

    fn text(text: &str, tokens: u32) -> TurnEvent {
        TurnEvent::Text {
            text: String::from(text),
            tokens,
        }
    }

    #[track_caller]
    fn check(from: usize, want: &[TurnEvent]) {
        let prefill = |done| Event::State(TurnState::Prefill { done, total: 9 });
        let all = [
            Event::State(TurnState::Waiting),
            prefill(4),
            prefill(9),
            Event::State(TurnState::Decode),
            token("a"),
            token(""),
            token("bc"),
            Event::Tail {
                text: String::from("d"),
            },
        ];
        let mut gathered = Gathered::default();
        for (seq, event) in all.into_iter().enumerate() {
            gathered.take(event, seq >= from);
        }
        assert_eq!(gathered.events, want);
    }

    #[test]
    fn events_of_one_kind_become_one_and_tokens_are_counted_from_the_start() {
        let reading = TurnEvent::Reading { done: 9, total: 9 };
        check(0, &[TurnEvent::Waiting, reading.clone(), text("abcd", 3)]);
        check(2, &[reading, text("abcd", 3)]);
        check(6, &[text("bcd", 3)]);
        check(8, &[]);
    }
}
