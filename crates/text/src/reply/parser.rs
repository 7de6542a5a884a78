//! The parser itself.

use std::mem;

use super::calls::{CallText, Offer, Progress, Tools};
use super::forms::{CALL_MARKS, CallForm, ReplyFormat, THINK_TAGS, ThinkTags};
use super::lines::Lines;
use super::{Part, Piece};

/// White space that is held back at most, because thoughts may end after it.
const SPACE_BYTES_MAX: usize = 256;

/// So many texts that began like a call and were none are looked at; each is read twice. A model
/// that writes more of them calls nothing.
const BROKEN_CALLS_MAX: usize = 16;

/// Splits one reply as it comes. Where the text is cut between two calls makes no difference.
#[derive(Debug, Clone)]
pub struct ReplyParser {
    format: ReplyFormat,
    /// None: what looks like a call is text.
    offer: Option<Offer>,
    /// Came and is not given out yet.
    pending: String,
    mode: Mode,
    lines: Lines,
    /// White space belongs to the mark before it.
    trims: bool,
    /// There were thoughts.
    has_thought: bool,
    /// Words were written since the start, or since a call after which others may follow bare.
    has_words: bool,
    broken_calls: usize,
    /// What may still follow the last call and says nothing.
    endings: &'static [&'static str],
    out: Vec<Piece>,
}

/// What is being read.
#[derive(Debug, Clone)]
enum Mode {
    Text,
    Thinking(&'static ThinkTags),
    /// And what its text is if it is no call.
    Call(Box<CallText>, Option<&'static ThinkTags>),
}

/// Whether more will come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum More {
    Maybe,
    No,
}

/// Whether there is more to read in what came.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Again,
    Wait,
}

/// What a place in the text is.
enum Found {
    Nothing,
    /// It depends on what comes.
    Perhaps,
    Opening(&'static ThinkTags),
    Closing(usize),
    Call(CallForm, usize),
}

impl ReplyParser {
    /// A reply that begins.
    pub fn new(format: &ReplyFormat, tools: Tools) -> Self {
        let offer = match tools {
            Tools::None => None,
            Tools::Offered(offer) => Some(offer),
        };
        Self {
            format: format.clone(),
            offer,
            pending: String::new(),
            mode: Mode::Text,
            lines: Lines::new(),
            trims: false,
            has_thought: false,
            has_words: false,
            broken_calls: 0,
            endings: &[],
            out: Vec::new(),
        }
    }

    /// Takes more of the reply and gives what can be told by now.
    pub fn push(&mut self, text: &str) -> Vec<Piece> {
        self.pending.push_str(text);
        self.read(More::Maybe)
    }

    /// Ends the reply: gives what was held back. The parser is as new afterwards but for what it
    /// remembers of thoughts.
    pub fn finish(&mut self) -> Vec<Piece> {
        self.read(More::No)
    }

    /// Whether what comes next belongs to thoughts.
    pub fn is_thinking(&self) -> bool {
        matches!(self.mode, Mode::Thinking(_) | Mode::Call(_, Some(_)))
    }

    fn read(&mut self, more: More) -> Vec<Piece> {
        loop {
            let step = match &self.mode {
                Mode::Text => self.read_text(more),
                Mode::Thinking(tags) => {
                    let tags = *tags;
                    self.read_thoughts(tags, more)
                }
                Mode::Call(..) => self.read_call(more),
            };
            if step == Step::Wait {
                return mem::take(&mut self.out);
            }
        }
    }

    fn read_text(&mut self, more: More) -> Step {
        if !self.endings.is_empty() && self.read_ending(more) == Step::Wait {
            return Step::Wait;
        }
        let text = mem::take(&mut self.pending);
        for (at, c) in text.char_indices() {
            let found = match c {
                '<' | '[' | '{' if !self.lines.in_code() => self.mark_at(&text[at..]),
                _ => Found::Nothing,
            };
            let bytes = match &found {
                Found::Nothing => 0,
                Found::Perhaps if more == More::No => 0,
                Found::Perhaps => {
                    self.say(&text[..at]);
                    text[at..].clone_into(&mut self.pending);
                    return Step::Wait;
                }
                Found::Opening(tags) => tags.open.len(),
                Found::Closing(bytes) | Found::Call(_, bytes) => *bytes,
            };
            let (before, mark) = (&text[..at], &text[at..at + bytes]);
            match found {
                Found::Nothing | Found::Perhaps => {
                    self.has_words |= !c.is_whitespace();
                    self.lines.push(c);
                    continue;
                }
                Found::Opening(tags) => {
                    self.say(before);
                    self.think(tags, mark);
                }
                Found::Closing(_) => {
                    self.say(before);
                    self.give(mark, Part::TextWasThinking);
                    self.answer();
                }
                Found::Call(form, _) => {
                    self.say(before);
                    self.mode = Mode::Call(Box::new(CallText::new(form, mark)), None);
                }
            }
            text[at + bytes..].clone_into(&mut self.pending);
            return Step::Again;
        }
        self.say(&text);
        Step::Wait
    }

    /// What begins at this place of the answer.
    fn mark_at(&self, rest: &str) -> Found {
        let mut perhaps = false;
        let mut is = |mark: &str| {
            perhaps |= mark.starts_with(rest);
            rest.starts_with(mark)
        };
        for tags in &THINK_TAGS {
            if self.lines.is_blank() && is(tags.open) {
                return Found::Opening(tags);
            }
            // One of a model that is not known to think counts at the start of a line only.
            let counts = self.lines.is_blank() || (self.format.thinks && !self.has_thought);
            if counts && is(tags.close) {
                return Found::Closing(tags.close.len());
            }
        }
        if self.offer.is_some() {
            for (form, mark) in CALL_MARKS {
                if self.format.calls.contains(&form) && is(mark) {
                    return Found::Call(form, mark.len());
                }
            }
            let bare = self.format.calls.contains(&CallForm::Bare);
            if bare && !self.has_words && rest.starts_with('{') {
                return Found::Call(CallForm::Bare, 0);
            }
        }
        match perhaps {
            true => Found::Perhaps,
            false => Found::Nothing,
        }
    }

    /// Reads what may follow a call and says nothing.
    fn read_ending(&mut self, more: More) -> Step {
        loop {
            let words = self.pending.trim_start();
            let space = self.pending.len() - words.len();
            let known = self
                .endings
                .iter()
                .position(|ending| words.starts_with(ending));
            if let Some(place) = known {
                let bytes = space + self.endings[place].len();
                let raw: String = self.pending.drain(..bytes).collect();
                self.give(&raw, Part::Text(String::new()));
                self.endings = &self.endings[place + 1..];
                continue;
            }
            let may_come = self.endings.iter().any(|ending| ending.starts_with(words));
            if more == More::Maybe && may_come && space <= SPACE_BYTES_MAX {
                return Step::Wait;
            }
            self.endings = &[];
            return Step::Again;
        }
    }

    fn read_thoughts(&mut self, tags: &'static ThinkTags, more: More) -> Step {
        let text = mem::take(&mut self.pending);
        let mut lines = self.lines.clone();
        for (at, c) in text.char_indices() {
            let rest = &text[at..];
            // An end counts in code, too: a fence that was forgotten must not take the answer.
            if matches!(c, '<' | '[') && !lines.follows_tick() {
                if let Some(after) = rest.strip_prefix(tags.close) {
                    self.say_thoughts(&text[..at], More::No);
                    self.give(tags.close, Part::Text(String::new()));
                    self.answer();
                    after.clone_into(&mut self.pending);
                    return Step::Again;
                }
                let call = self.call_in_thoughts(rest, &lines);
                if let Found::Call(form, bytes) = call {
                    self.say_thoughts(&text[..at], More::Maybe);
                    let kept = mem::take(&mut self.pending);
                    let mark = format!("{kept}{}", &rest[..bytes]);
                    self.mode = Mode::Call(Box::new(CallText::new(form, &mark)), Some(tags));
                    rest[bytes..].clone_into(&mut self.pending);
                    return Step::Again;
                }
                let perhaps = tags.close.starts_with(rest) || matches!(call, Found::Perhaps);
                if perhaps && more == More::Maybe {
                    self.say_thoughts(&text[..at], More::Maybe);
                    self.pending.push_str(rest);
                    return Step::Wait;
                }
            }
            lines.push(c);
        }
        self.say_thoughts(&text, more);
        Step::Wait
    }

    /// A call that comes before the thoughts are ended: at the start of a line only.
    fn call_in_thoughts(&self, rest: &str, lines: &Lines) -> Found {
        if self.offer.is_none() || !lines.is_blank() || lines.in_code() {
            return Found::Nothing;
        }
        let marks = CALL_MARKS.iter();
        let mut marks = marks.filter(|(form, _)| self.format.calls.contains(form));
        match marks.find(|(_, mark)| rest.starts_with(mark) || mark.starts_with(rest)) {
            Some((form, mark)) if rest.starts_with(mark) => Found::Call(*form, mark.len()),
            Some(_) => Found::Perhaps,
            None => Found::Nothing,
        }
    }

    fn read_call(&mut self, more: More) -> Step {
        let Mode::Call(call, home) = &mut self.mode else {
            return Step::Again;
        };
        let (home, offer) = (*home, self.offer.clone().unwrap_or_default());
        let progress = call.push(&mem::take(&mut self.pending), &offer);
        if progress == Progress::More && more == More::Maybe {
            return Step::Wait;
        }
        let Mode::Call(call, _) = mem::replace(&mut self.mode, Mode::Text) else {
            return Step::Again;
        };
        match progress {
            Progress::Done { calls, bytes } => {
                let mut raw = &call.raw[..bytes];
                for call in calls {
                    self.give(mem::take(&mut raw), Part::ToolCall(call));
                }
                self.has_thought |= home.is_some();
                self.answer();
                self.endings = call.form.endings();
                self.has_words = !matches!(call.form, CallForm::PythonTag | CallForm::Bare);
                call.raw[bytes..].clone_into(&mut self.pending);
            }
            Progress::More | Progress::Broken => {
                // Only the mark is settled: there may be others in what follows.
                let first = call.raw.chars().next().map_or(0, char::len_utf8);
                let (mark, rest) = call.raw.split_at(call.mark_bytes.max(first));
                if let Some(tags) = home {
                    self.mode = Mode::Thinking(tags);
                    self.say_thoughts(mark, More::No);
                } else {
                    mark.chars().for_each(|c| self.lines.push(c));
                    self.has_words = true;
                    self.say(mark);
                }
                rest.clone_into(&mut self.pending);
                self.broken_calls += 1;
                if self.broken_calls == BROKEN_CALLS_MAX {
                    self.offer = None;
                }
            }
        }
        match self.pending.is_empty() && more == More::Maybe {
            true => Step::Wait,
            false => Step::Again,
        }
    }

    /// The thoughts begin.
    fn think(&mut self, tags: &'static ThinkTags, mark: &str) {
        self.give(mark, Part::Thinking(String::new()));
        self.mode = Mode::Thinking(tags);
        self.lines = Lines::new();
        self.trims = true;
        self.has_thought = true;
    }

    /// The answer begins, or goes on.
    fn answer(&mut self) {
        self.mode = Mode::Text;
        self.lines = Lines::new();
        self.trims = true;
        self.has_thought = true;
        self.has_words = false;
    }

    /// Gives words of the answer.
    fn say(&mut self, raw: &str) {
        let words = self.trimmed(raw).to_owned();
        self.give(raw, Part::Text(words));
    }

    /// Gives thoughts, but for the white space at their end if they may go on: that is pending.
    fn say_thoughts(&mut self, raw: &str, more: More) {
        let words = raw.trim_end();
        let space = &raw[words.len()..];
        let (told, shown) = match more {
            More::Maybe if space.len() <= SPACE_BYTES_MAX => {
                space.clone_into(&mut self.pending);
                (words, words)
            }
            More::Maybe => (raw, raw),
            More::No => (raw, words),
        };
        told.chars().for_each(|c| self.lines.push(c));
        let shown = self.trimmed(shown).to_owned();
        self.give(told, Part::Thinking(shown));
    }

    /// Without the white space that belongs to the mark before.
    fn trimmed<'t>(&mut self, raw: &'t str) -> &'t str {
        if !self.trims {
            return raw;
        }
        let words = raw.trim_start();
        self.trims = words.is_empty();
        words
    }

    fn give(&mut self, raw: &str, part: Part) {
        if raw.is_empty() && matches!(&part, Part::Text(_) | Part::Thinking(_)) {
            return;
        }
        let last = self.out.last_mut();
        match (last, part) {
            (
                Some(Piece {
                    raw: before,
                    part: Part::Text(text),
                }),
                Part::Text(more),
            )
            | (
                Some(Piece {
                    raw: before,
                    part: Part::Thinking(text),
                }),
                Part::Thinking(more),
            ) => {
                before.push_str(raw);
                text.push_str(&more);
            }
            (_, part) => self.out.push(Piece {
                raw: raw.to_owned(),
                part,
            }),
        }
    }
}
