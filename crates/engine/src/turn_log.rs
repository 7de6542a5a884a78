//! The events of one reply: appended by the engine, read by anybody from any place.
//!
//! A log has one writer and any number of readers. A reader holds the lock only to copy at most
//! [`READ_MAX`] events, so a slow, dead or absent one costs the writer nothing. A page that was
//! reloaded reads again from the start. Putting several tokens into one message is a reader's
//! business.

use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::Notify;

use crate::guard::{Report, Served};
use crate::message::{FinishReason, Stats, TurnCode};
use crate::repetition::Repeated;
use crate::sampler::Logprobs;

/// Events that one read copies at most: about a second of the fastest reply, and few enough to
/// copy in microseconds.
pub const READ_MAX: usize = 256;

/// State events that one log takes. A reply has one for each prefill chunk and two more; past the
/// bound they are left out, since they only inform.
const STATES_MAX: usize = 4_096;

/// One event and its place in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Counts from 0 without gaps.
    pub seq: u64,
    /// What happened.
    pub event: Event,
}

/// What happened to a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A token was written.
    Token {
        /// Its id.
        id: u32,
        /// The text that it made complete; empty while characters or stop strings are held back.
        text: String,
        /// How likely it was by the logits as the model gave them, if that was asked for.
        logprobs: Option<Box<Logprobs>>,
    },
    /// Text that was held back and that no further token completes. At most once, before the end.
    Tail {
        /// The text.
        text: String,
    },
    /// The reply came to another phase.
    State(TurnState),
    /// What computes was held against the reference, on this prompt or since the request was made,
    /// and may serve.
    Proven(Arc<Report>),
    /// What computed does so no more; the reply goes on at the same token elsewhere.
    Moved {
        /// Why, in words.
        reason: String,
        /// What computes from here on.
        served: Served,
    },
    /// What was asked for is a vector, of length 1. At most once, before the end.
    Embedding(Arc<[f32]>),
    /// The reply repeats itself and may never end; somebody could stop it. At most once.
    Repeats(Repeated),
    /// The end: the reply is complete, as far as its reason says.
    Finished {
        /// Why it ended.
        reason: FinishReason,
        /// Its figures.
        stats: Stats,
    },
    /// The end: something went wrong. What was written stays valid.
    Failed {
        /// What a shell acts on.
        code: TurnCode,
        /// In words.
        message: String,
    },
}

impl Event {
    /// Whether nothing comes after it.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Finished { .. } | Self::Failed { .. })
    }

    /// The text that it adds to the reply.
    pub fn text(&self) -> &str {
        match self {
            Self::Token { text, .. } | Self::Tail { text } => text,
            Self::State(_)
            | Self::Proven(_)
            | Self::Moved { .. }
            | Self::Embedding(_)
            | Self::Repeats(_)
            | Self::Finished { .. }
            | Self::Failed { .. } => "",
        }
    }
}

/// The phases of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnState {
    /// Others come first.
    Waiting,
    /// What is to compute is being held against the reference on this prompt.
    Proving {
        /// Positions that are done.
        done: usize,
        /// Positions in all.
        total: usize,
    },
    /// This computes from here on.
    Served(Served),
    /// The prompt is being read.
    Prefill {
        /// Tokens in the context.
        done: usize,
        /// Tokens of the prompt.
        total: usize,
    },
    /// Tokens are being written.
    Decode,
}

/// The events of one reply.
#[derive(Debug, Default)]
pub struct TurnLog {
    events: Mutex<Vec<Event>>,
    changed: Condvar,
    /// The same for readers that are no threads.
    told: Notify,
}

impl TurnLog {
    /// A log and the only right to write to it.
    pub(crate) fn new() -> (Arc<Self>, TurnWriter) {
        let log = Arc::new(Self::default());
        let writer = TurnWriter {
            log: Arc::clone(&log),
            states: 0,
            ended: false,
        };
        (log, writer)
    }

    /// Up to [`READ_MAX`] events from `from` on. Never waits for the writer.
    pub fn read(&self, from: u64) -> Vec<Entry> {
        copy(&self.lock(), from)
    }

    /// As [`TurnLog::read`], but waits up to `timeout` for the first one. Empty when the time is
    /// over, or when nothing can come any more.
    pub fn wait(&self, from: u64, timeout: Duration) -> Vec<Entry> {
        let nothing_yet = |events: &mut Vec<Event>| {
            events.len() as u64 <= from && !events.last().is_some_and(Event::is_terminal)
        };
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), timeout, nothing_yet);
        let (events, _) = waited.unwrap_or_else(PoisonError::into_inner);
        copy(&events, from)
    }

    /// As [`TurnLog::wait`] for a reader that is no thread: comes back once there is an event at
    /// `from`, or nothing can come any more. How long it waits is its caller's business; given up,
    /// it leaves nothing behind.
    pub async fn grown(&self, from: u64) {
        loop {
            // Listens before it looks, so that nothing can come in between unheard.
            let mut told = pin!(self.told.notified());
            told.as_mut().enable();
            if self.len() > from || self.has_ended() {
                return;
            }
            told.await;
        }
    }

    /// Whether the terminal event is in.
    pub fn has_ended(&self) -> bool {
        self.lock().last().is_some_and(Event::is_terminal)
    }

    /// Number of events so far.
    pub fn len(&self) -> u64 {
        self.lock().len() as u64
    }

    /// Whether nothing has happened yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits for the end, and for no longer than `timeout`; says whether it came.
    pub fn wait_for_end(&self, timeout: Duration) -> bool {
        let runs = |events: &mut Vec<Event>| !events.last().is_some_and(Event::is_terminal);
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, runs);
        let (events, _) = waited.unwrap_or_else(PoisonError::into_inner);
        events.last().is_some_and(Event::is_terminal)
    }

    /// A panic between lock and unlock leaves whole events behind, so a poisoned log is readable.
    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn copy(events: &[Event], from: u64) -> Vec<Entry> {
    let start = usize::try_from(from)
        .unwrap_or(usize::MAX)
        .min(events.len());
    let end = events.len().min(start.saturating_add(READ_MAX));
    let entries = (from..).zip(&events[start..end]);
    entries
        .map(|(seq, event)| Entry {
            seq,
            event: event.clone(),
        })
        .collect()
}

/// The only one who may append. Ends the log when dropped, so a reply cannot be forgotten: not by
/// a panic and not by an engine that shuts down.
#[derive(Debug)]
pub(crate) struct TurnWriter {
    log: Arc<TurnLog>,
    states: usize,
    ended: bool,
}

impl TurnWriter {
    pub(crate) fn log(&self) -> &Arc<TurnLog> {
        &self.log
    }

    pub(crate) fn token(&mut self, id: u32, text: String, logprobs: Option<Box<Logprobs>>) {
        self.append(Event::Token { id, text, logprobs });
    }

    pub(crate) fn tail(&mut self, text: String) {
        if !text.is_empty() {
            self.append(Event::Tail { text });
        }
    }

    pub(crate) fn state(&mut self, state: TurnState) {
        if self.states < STATES_MAX {
            self.states += 1;
            self.append(Event::State(state));
        }
    }

    pub(crate) fn proven(&mut self, report: Arc<Report>) {
        self.append(Event::Proven(report));
    }

    pub(crate) fn moved(&mut self, reason: String, served: Served) {
        self.append(Event::Moved { reason, served });
    }

    pub(crate) fn embedding(&mut self, vector: Arc<[f32]>) {
        self.append(Event::Embedding(vector));
    }

    pub(crate) fn repeats(&mut self, repeated: Repeated) {
        self.append(Event::Repeats(repeated));
    }

    pub(crate) fn finish(mut self, reason: FinishReason, stats: Stats) {
        self.append(Event::Finished { reason, stats });
    }

    pub(crate) fn fail(mut self, code: TurnCode, message: String) {
        self.append(Event::Failed { code, message });
    }

    fn append(&mut self, event: Event) {
        self.ended |= event.is_terminal();
        self.log.lock().push(event);
        self.log.changed.notify_all();
        self.log.told.notify_waiters();
    }
}

impl Drop for TurnWriter {
    fn drop(&mut self) {
        if !self.ended {
            let code = match thread::panicking() {
                true => TurnCode::Broken,
                false => TurnCode::Closed,
            };
            self.append(Event::Failed {
                code,
                message: code.to_string(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    /// A reader that waits longer than this has hung.
    const HANG: Duration = Duration::from_secs(10);

    fn token(id: u32) -> Event {
        Event::Token {
            id,
            text: format!("{id} "),
            logprobs: None,
        }
    }

    /// All events from `from` to the end, read in the order in which they come.
    fn follow(log: &TurnLog, from: u64) -> Vec<Entry> {
        let mut all: Vec<Entry> = Vec::new();
        loop {
            let next = log.wait(from + all.len() as u64, HANG);
            if next.is_empty() {
                return all;
            }
            all.extend(next);
        }
    }

    #[test]
    fn every_reader_sees_the_same_from_wherever_it_starts() {
        const TOKENS: u32 = 1_000;
        let (log, mut writer) = TurnLog::new();
        let readers: Vec<_> = [0, 1, 500, 1_000, 1_001, 5_000]
            .map(|from| {
                let log = Arc::clone(&log);
                (from, thread::spawn(move || follow(&log, from)))
            })
            .into();
        for id in 0..TOKENS {
            writer.token(id, format!("{id} "), None);
        }
        writer.finish(FinishReason::Stop, Stats::default());
        for (from, reader) in readers {
            let seen = reader.join().unwrap();
            let expected = 1_001u64.saturating_sub(from) as usize;
            assert_eq!(seen.len(), expected, "from {from}");
            for (i, entry) in seen.iter().enumerate() {
                let seq = from + i as u64;
                assert_eq!(entry.seq, seq);
                match &entry.event {
                    Event::Token { .. } => assert_eq!(entry.event, token(seq as u32)),
                    last => assert!(last.is_terminal() && seq == 1_000),
                }
            }
        }
    }

    #[test]
    fn a_read_is_bounded_and_never_waits() {
        let (log, mut writer) = TurnLog::new();
        assert!(log.read(0).is_empty() && log.is_empty());
        for id in 0..3 * READ_MAX as u32 {
            writer.token(id, String::new(), None);
        }
        assert_eq!(log.read(0).len(), READ_MAX);
        assert_eq!(log.read(2 * READ_MAX as u64 + 10).len(), READ_MAX - 10);
        assert!(log.read(u64::MAX).is_empty());
        assert!(!log.has_ended());
    }

    #[test]
    fn a_waiting_read_ends_with_its_time() {
        let (log, _writer) = TurnLog::new();
        assert!(log.wait(0, Duration::from_millis(1)).is_empty());
        assert!(!log.wait_for_end(Duration::from_millis(1)));
    }

    #[test]
    fn a_log_ends_exactly_once_however_its_writer_goes() {
        type End = fn(TurnWriter);
        let cases: &[(&str, End, bool)] = &[
            (
                "finished",
                |w| w.finish(FinishReason::Length, Stats::default()),
                true,
            ),
            (
                "failed",
                |w| w.fail(TurnCode::Broken, String::from("x")),
                false,
            ),
            ("dropped", drop, false),
        ];
        for (what, end, finished) in cases {
            let (log, writer) = TurnLog::new();
            end(writer);
            let all = follow(&log, 0);
            assert_eq!(all.len(), 1, "{what}");
            assert_eq!(
                matches!(all[0].event, Event::Finished { .. }),
                *finished,
                "{what}"
            );
            assert!(log.has_ended() && log.wait_for_end(Duration::ZERO));
        }
    }

    #[test]
    fn a_reader_that_is_no_thread_hears_of_each_event_and_of_the_end() {
        let (log, mut writer) = TurnLog::new();
        let is_told = |from| {
            let mut waits = Box::pin(log.grown(from));
            let mut context = Context::from_waker(Waker::noop());
            move || waits.as_mut().poll(&mut context).is_ready()
        };
        let (mut first, mut second, mut far) = (is_told(0), is_told(1), is_told(9));
        assert!(!first() && !second() && !far());
        writer.token(1, String::new(), None);
        assert!(first() && !second() && !far() && is_told(0)());
        writer.finish(FinishReason::Stop, Stats::default());
        assert!(second() && far() && is_told(9)());
    }

    #[test]
    fn a_panic_of_the_writer_ends_the_log() {
        let (log, writer) = TurnLog::new();
        let writing = thread::spawn(move || {
            let _writer = writer;
            panic!("as planned");
        });
        assert!(writing.join().is_err());
        let all = follow(&log, 0);
        let broken = matches!(
            all[..],
            [Entry {
                event: Event::Failed {
                    code: TurnCode::Broken,
                    ..
                },
                ..
            }]
        );
        assert!(broken, "{all:?}");
    }

    #[test]
    fn states_are_bounded_and_tokens_are_not_lost_for_it() {
        let (log, mut writer) = TurnLog::new();
        for done in 0..STATES_MAX + 10 {
            writer.state(TurnState::Prefill { done, total: 0 });
        }
        writer.token(1, String::new(), None);
        assert_eq!(log.len(), STATES_MAX as u64 + 1);
    }
}
