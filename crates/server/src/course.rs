//! Follows one reply: from the events of its log to the parts that protocols write.

use std::sync::Arc;

use candor_app::headless::{Event, FinishReason, Logprobs, Stats, TurnCode, TurnLog};
use candor_app::service::{Part, ReplyParser, ToolCall};
use serde_json::{Map, Value};

use crate::fault::{Fault, FaultKind};

/// Why a reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// The model ended it.
    Stop,
    /// A text that the request named, by its place among those.
    StopString(usize),
    /// A limit.
    Length,
}

/// The end of a reply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct End {
    pub(crate) finish: Finish,
    pub(crate) stats: Stats,
    /// Why another device wrote it on, if so.
    pub(crate) moved: Option<String>,
    /// Whether the model called a tool.
    pub(crate) has_calls: bool,
}

/// What was heard of a reply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Heard {
    Part(Part),
    /// How likely the token was that the next part, or none yet, is made of.
    Likely(u32, Box<Logprobs>),
    Ended(Box<End>),
    Failed(Fault),
}

/// How a reply is read.
pub(crate) enum Reader {
    /// As text.
    Plain,
    /// Into text, thoughts and calls.
    Split(Box<ReplyParser>),
    /// As one JSON object that is a call; so far.
    Call(String),
    /// As JSON that may be a call.
    CallOr(Held),
}

/// JSON that is held back as long as it may be a call.
pub(crate) struct Held {
    /// Of the tools.
    names: Vec<String>,
    /// So far; none once it is no call.
    text: Option<String>,
}

impl Held {
    pub(crate) fn new(names: Vec<String>) -> Self {
        Self {
            names,
            text: Some(String::new()),
        }
    }

    /// Takes more, and gives what is no call.
    fn push(&mut self, more: String) -> String {
        let Some(text) = &mut self.text else {
            return more;
        };
        text.push_str(&more);
        let may_be = self.names.iter().any(|name| {
            // As a bound reply writes it: without white space.
            let begins = format!("{{\"name\":{},\"arguments\":{{", Value::from(name.as_str()));
            begins.starts_with(text.as_str()) || text.starts_with(&begins)
        });
        match may_be {
            true => String::new(),
            false => self.text.take().unwrap_or_default(),
        }
    }
}

/// The name and the arguments.
const CALL_FIELDS: usize = 2;

/// A call that was written as a JSON object; text, if a limit has cut it, or if it has fields that a
/// call has no place for and that would be lost.
fn call(text: String) -> Part {
    let read = || {
        let value: Map<String, Value> = serde_json::from_str(&text).ok()?;
        if value.len() != CALL_FIELDS {
            return None;
        }
        Some(ToolCall {
            name: value.get("name")?.as_str()?.to_owned(),
            arguments: value.get("arguments")?.to_string(),
        })
    };
    match read() {
        Some(call) => Part::ToolCall(call),
        None => Part::Text(text),
    }
}

/// Why the engine gave no reply.
fn failed(code: TurnCode, message: String) -> Fault {
    let kind = match code {
        TurnCode::NothingAllowed => FaultKind::Invalid,
        TurnCode::NotOffered => FaultKind::Unsupported,
        // Whoever asks again is told the same.
        TurnCode::DeviceRejected | TurnCode::DeviceNotJudged => FaultKind::Refused,
        TurnCode::NoModel
        | TurnCode::ModelChanged
        | TurnCode::Unloaded
        | TurnCode::Busy
        | TurnCode::Closed => FaultKind::Unavailable,
        _ => FaultKind::Internal,
    };
    Fault::new(kind, message)
}

/// The vector of a text, once it is there.
pub(crate) async fn vector(log: &TurnLog) -> Result<Vec<f32>, Fault> {
    let mut next = 0;
    loop {
        log.grown(next).await;
        for entry in log.read(next) {
            next = entry.seq + 1;
            match entry.event {
                Event::Embedding(vector) => return Ok(vector.to_vec()),
                Event::Failed { code, message } => return Err(failed(code, message)),
                Event::Finished { .. } => {
                    let message = "the text was stopped before it was read";
                    return Err(Fault::new(FaultKind::Unavailable, message));
                }
                _ => {}
            }
        }
    }
}

/// A reply that is being followed.
pub(crate) struct Course {
    log: Arc<TurnLog>,
    next: u64,
    reader: Reader,
    has_calls: bool,
    moved: Option<String>,
    ended: bool,
    stopped: bool,
    /// How many of the texts that end it are the template's own; those come first.
    own_stops: usize,
}

impl Course {
    pub(crate) fn new(log: Arc<TurnLog>, reader: Reader, own_stops: usize) -> Self {
        Self {
            log,
            next: 0,
            reader,
            has_calls: false,
            moved: None,
            ended: false,
            stopped: false,
            own_stops,
        }
    }

    /// Whether its end was heard.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether it has come to its own end, and was not stopped before.
    pub(crate) fn is_complete(&self) -> bool {
        self.ended && !self.stopped
    }

    /// Waits until there is more to take.
    pub(crate) async fn grown(&self) {
        self.log.grown(self.next).await;
    }

    /// What has come since the last time; at most one read of the log, so that a long reply does
    /// not keep others waiting.
    pub(crate) fn take(&mut self) -> Vec<Heard> {
        let mut heard = Vec::new();
        for entry in self.log.read(self.next) {
            self.next = entry.seq + 1;
            match entry.event {
                Event::Token { id, text, logprobs } => {
                    let likely = logprobs.map(|logprobs| Heard::Likely(id, logprobs));
                    heard.extend(likely);
                    self.text(text, &mut heard);
                }
                Event::Tail { text } => self.text(text, &mut heard),
                Event::Moved { reason, .. } => self.moved = Some(reason),
                Event::Finished { reason, stats } => {
                    self.flush(&mut heard);
                    heard.push(self.end(reason, stats));
                }
                Event::Failed { code, message } => {
                    self.ended = true;
                    heard.push(Heard::Failed(failed(code, message)));
                }
                _ => {}
            }
        }
        heard
    }

    fn end(&mut self, reason: FinishReason, stats: Stats) -> Heard {
        self.ended = true;
        let finish = match reason {
            FinishReason::Stop => Finish::Stop,
            FinishReason::StopString => {
                // A template's own end is none that the request named.
                let named = stats
                    .stopped_by
                    .and_then(|at| at.checked_sub(self.own_stops));
                named.map_or(Finish::Stop, Finish::StopString)
            }
            FinishReason::Length | FinishReason::ContextFull => Finish::Length,
            FinishReason::Cancelled => {
                self.stopped = true;
                let message = "the reply was stopped here";
                return Heard::Failed(Fault::new(FaultKind::Unavailable, message));
            }
        };
        Heard::Ended(Box::new(End {
            finish,
            stats,
            moved: self.moved.take(),
            has_calls: self.has_calls,
        }))
    }

    fn text(&mut self, text: String, heard: &mut Vec<Heard>) {
        match &mut self.reader {
            _ if text.is_empty() => {}
            Reader::Plain => heard.push(Heard::Part(Part::Text(text))),
            Reader::Call(all) => all.push_str(&text),
            Reader::CallOr(held) => {
                let words = held.push(text);
                self.tell(std::iter::once(Part::Text(words)), heard);
            }
            Reader::Split(parser) => {
                let pieces = parser.push(&text);
                self.tell(pieces.into_iter().map(|piece| piece.part), heard);
            }
        }
    }

    fn flush(&mut self, heard: &mut Vec<Heard>) {
        let parts: Vec<Part> = match &mut self.reader {
            Reader::Plain => Vec::new(),
            Reader::Split(parser) => parser
                .finish()
                .into_iter()
                .map(|piece| piece.part)
                .collect(),
            Reader::Call(all) => vec![call(std::mem::take(all))],
            Reader::CallOr(held) => held.text.take().map(call).into_iter().collect(),
        };
        self.tell(parts.into_iter(), heard);
    }

    fn tell(&mut self, parts: impl Iterator<Item = Part>, heard: &mut Vec<Heard>) {
        for part in parts {
            match &part {
                Part::Text(text) | Part::Thinking(text) if text.is_empty() => continue,
                Part::ToolCall(_) => self.has_calls = true,
                _ => {}
            }
            heard.push(Heard::Part(part));
        }
    }
}
