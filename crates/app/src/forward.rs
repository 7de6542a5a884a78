//! From a turn to one window: several events in a batch, at most one batch a frame.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use candor_engine::{Event, TurnState};
use candor_text::reply::{Part, ReplyParser};

use crate::config::Clock;
use crate::turn::{Cursor, Heard, Turn};
use crate::wire::{TurnBatch, TurnEvent};
use crate::words::Tongue;
use crate::{parts, record};

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
pub(crate) fn forward(
    turn: &Arc<Turn>,
    from_seq: u64,
    (clock, tongue): (&Clock, Tongue),
    mut reader: TurnReader,
) {
    let mut cursor = Cursor::default();
    let mut gathered = Gathered::new();
    let mut last_sent = None;
    loop {
        let follower = Follower {
            turn,
            clock,
            tongue,
            from_seq,
        };
        let mut end = follower.listen(&mut cursor, &mut gathered, PATIENCE);
        if let (None, Some(sent), false) = (&end, last_sent, gathered.events.is_empty()) {
            let since = (clock.instant)().saturating_duration_since(sent);
            thread::sleep(FRAME.saturating_sub(since));
            for _ in 0..READS_MAX {
                let before = cursor.seq;
                end = follower.listen(&mut cursor, &mut gathered, Duration::ZERO);
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

/// What one reader follows.
struct Follower<'a> {
    turn: &'a Turn,
    clock: &'a Clock,
    /// The window's language.
    tongue: Tongue,
    /// The first event that is new to the reader.
    from_seq: u64,
}

impl Follower<'_> {
    /// Takes in what is new; gives the end once it is reached.
    fn listen(
        &self,
        cursor: &mut Cursor,
        gathered: &mut Gathered,
        timeout: Duration,
    ) -> Option<TurnEvent> {
        let seq = cursor.seq;
        match self.turn.hear(cursor, timeout) {
            Heard::Events(events) => {
                let told = Told {
                    turn: self.turn,
                    now: (self.clock.instant)(),
                    tongue: self.tongue,
                };
                for (seq, event) in (seq..).zip(events) {
                    gathered.take(event, &told, seq >= self.from_seq);
                }
                None
            }
            Heard::End(end) => Some(*end),
            Heard::Nothing => None,
        }
    }
}

/// What is known beside the events.
struct Told<'a> {
    turn: &'a Turn,
    now: Instant,
    tongue: Tongue,
}

/// Events on their way into a batch.
struct Gathered {
    events: Vec<TurnEvent>,
    tokens: u32,
    /// None before the first words: how the reply begins is known by then.
    parser: Option<ReplyParser>,
    /// When the thoughts that run began, and whether they have words.
    thinks_since: Option<Instant>,
    has_thought: bool,
    /// Thoughts that are at their end.
    thoughts: usize,
}

impl Gathered {
    fn new() -> Self {
        Self {
            events: Vec::new(),
            tokens: 0,
            parser: None,
            thinks_since: None,
            has_thought: false,
            thoughts: 0,
        }
    }

    /// Counts an event, and keeps what it tells if it is new to the reader.
    fn take(&mut self, event: Event, told: &Told<'_>, is_new: bool) {
        if matches!(event, Event::Token { .. }) {
            self.tokens = self.tokens.saturating_add(1);
        }
        let events = match event {
            Event::Token { text, .. } | Event::Tail { text } => self.words(&text, told),
            event => of_engine(event, told.tongue).into_iter().collect(),
        };
        if is_new {
            events.into_iter().for_each(|event| self.put(event));
        }
    }

    /// What more text tells. Nothing of it is kept back for long, so a reader that comes back later
    /// goes on at the same character.
    fn words(&mut self, text: &str, told: &Told<'_>) -> Vec<TurnEvent> {
        let mut parser = self.parser.take().unwrap_or_else(|| {
            let mut parser = parts::parser();
            // What was there before is in the message.
            for piece in parser.push(&told.turn.beginning()) {
                self.part(piece.part, told, &mut Vec::new());
            }
            parser
        });
        let mut events = Vec::new();
        for piece in parser.push(text) {
            self.part(piece.part, told, &mut events);
        }
        if events.is_empty() {
            let (text, tokens) = (String::new(), self.tokens);
            events.push(match parser.is_thinking() {
                true => TurnEvent::Thinking { text, tokens },
                false => TurnEvent::Text { text, tokens },
            });
        }
        self.parser = Some(parser);
        events
    }

    fn part(&mut self, part: Part, told: &Told<'_>, events: &mut Vec<TurnEvent>) {
        let tokens = self.tokens;
        match part {
            Part::Thinking(text) => {
                self.thinks_since.get_or_insert(told.now);
                self.has_thought |= !text.is_empty();
                if !text.is_empty() {
                    events.push(TurnEvent::Thinking { text, tokens });
                }
            }
            Part::Text(text) => {
                let since = self.thinks_since.take();
                if let (Some(since), true) = (since, std::mem::take(&mut self.has_thought)) {
                    // Who came late cannot have measured it; the writer has.
                    let own = told.now.saturating_duration_since(since).as_secs_f64() * 1e3;
                    let ms = told.turn.thinking_ms(self.thoughts).unwrap_or(own);
                    self.thoughts += 1;
                    events.push(TurnEvent::Thought { ms });
                }
                if !text.is_empty() {
                    events.push(TurnEvent::Text { text, tokens });
                }
            }
            Part::TextWasThinking => {
                self.thoughts += 1;
                events.push(TurnEvent::TextWasThinking);
            }
            // The chat offers no tools.
            Part::ToolCall(_) => {}
        }
    }

    /// Puts an event into the batch; several of one kind become one.
    fn put(&mut self, event: TurnEvent) {
        match (self.events.last_mut(), event) {
            (
                Some(TurnEvent::Text { text, tokens }),
                TurnEvent::Text {
                    text: more,
                    tokens: now,
                },
            )
            | (
                Some(TurnEvent::Thinking { text, tokens }),
                TurnEvent::Thinking {
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
}

/// What an event that brings no text tells the window.
fn of_engine(event: Event, tongue: Tongue) -> Option<TurnEvent> {
    let count = |tokens| u32::try_from(tokens).unwrap_or(u32::MAX);
    match event {
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
            notice: record::moved_words(&reason).to(tongue),
        }),
        Event::Repeats(repeated) => Some(TurnEvent::Repeats {
            block_tokens: count(repeated.block_tokens),
            copies: count(repeated.copies),
        }),
        // What remains is not for a window, or comes with the end.
        _ => None,
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

    /// What a reader is told who has heard the events before `from`.
    fn told(all: impl IntoIterator<Item = Event>, from: usize) -> Vec<TurnEvent> {
        let turn = Turn::new(1, 1);
        turn.thought_for(1_500.0);
        let told = Told {
            turn: &turn,
            now: Instant::now(),
            tongue: Tongue::English,
        };
        let mut gathered = Gathered::new();
        for (seq, event) in all.into_iter().enumerate() {
            gathered.take(event, &told, seq >= from);
        }
        gathered.events
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
        assert_eq!(told(all, from), want);
    }

    #[test]
    fn thoughts_are_told_apart_with_their_time_wherever_the_marks_are_cut() {
        let thinking = |text: &str, tokens| TurnEvent::Thinking {
            text: String::from(text),
            tokens,
        };
        let all = ["<th", "ink>", "h", "m", "</", "think>\n", "\nSo", "."].map(token);
        let end = TurnEvent::Thought { ms: 1_500.0 };
        let begin = text("", 1);
        let words = [begin, thinking("hm", 5), end, text("So.", 8)];
        assert_eq!(told(all.clone(), 0), words);
        assert_eq!(told(all, 6), [text("So.", 8)]);
        let unbegun = ["hm", "\n</think>", "\nSo."].map(token);
        let want = [text("hm\n", 2), TurnEvent::TextWasThinking, text("So.", 3)];
        assert_eq!(told(unbegun, 0), want);
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
