//! The answer, sent while it is written or once it is whole.
//!
//! A stream has a task that reads the logs and a bounded channel to the connection. A client that
//! reads slowly fills its own channel and stops its own task; the engine writes on into the log,
//! and nobody else notices. A client that leaves drops the body, and with it the request.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use candor_app::headless::{Logprobs, Show};
use candor_app::service::{Part, join_parts};
use http_body::Frame;
use tokio::sync::mpsc;

use crate::ask::{Answering, CancelOnDrop};
use crate::course::{End, Heard};
use crate::fault::Fault;

/// Messages that wait for a slow reader; then its own task waits.
const WAITING_MAX: usize = 16;

/// How long a stream is silent before it says that it lives. A peer that is gone without a word is
/// noticed by that.
const PAUSE: Duration = Duration::from_secs(2);

/// A reader that takes nothing for so long is given up.
const STUCK_MAX: Duration = Duration::from_secs(300);

/// How a protocol writes a stream.
pub(crate) trait Shape: Send + 'static {
    /// What kind of stream it is.
    const CONTENT_TYPE: &'static str;

    /// What comes before the first part.
    fn begin(&mut self, answering: &Answering) -> String;

    /// The next part of a reply.
    fn part(&mut self, reply: usize, part: Part) -> String;

    /// How likely a token of a reply's next part was; told only where it was asked for.
    fn likely(&mut self, _reply: usize, _token: Likely) {}

    /// The end of a reply.
    fn end(&mut self, reply: usize, end: &End, answering: &Answering) -> String;

    /// The end of all of them.
    fn close(&mut self, answering: &Answering) -> String;

    /// The end, because something went wrong.
    fn failed(&mut self, fault: &Fault) -> String;

    /// A sign of life.
    fn pause(&mut self) -> String;
}

/// An answer that is sent while it is written.
pub(crate) fn stream<S: Shape>(answering: Answering, shape: S) -> Response {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let body = StreamBody {
        receiver,
        _cancel: answering.also_stopped_by(),
    };
    tokio::spawn(send(answering, shape, sender));
    let mut response = Response::new(Body::new(body));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(S::CONTENT_TYPE),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// One event of a stream of server-sent events.
pub(crate) fn event(data: &serde_json::Value) -> String {
    format!("data: {data}\n\n")
}

/// Writes the stream. Whenever this ends, the request is dropped.
async fn send<S: Shape>(mut answering: Answering, mut shape: S, sender: mpsc::Sender<Bytes>) {
    let mut text = shape.begin(&answering);
    loop {
        let mut failed = None;
        for i in 0..answering.courses.len() {
            for heard in answering.courses[i].take() {
                text.push_str(&match heard {
                    Heard::Part(part) => shape.part(i, part),
                    Heard::Likely(id, logprobs) => {
                        shape.likely(i, Likely::of(&answering, id, &logprobs));
                        String::new()
                    }
                    Heard::Ended(end) => {
                        answering.shared.metrics.finished(&end.stats);
                        shape.end(i, &end, &answering)
                    }
                    Heard::Failed(fault) => {
                        failed = Some(fault);
                        String::new()
                    }
                });
            }
        }
        let is_over = answering
            .courses
            .iter()
            .all(crate::course::Course::has_ended);
        let is_over = is_over || failed.is_some();
        match failed {
            Some(fault) => text.push_str(&shape.failed(&fault)),
            None if is_over => text.push_str(&shape.close(&answering)),
            None => {}
        }
        if !text.is_empty() {
            let bytes = Bytes::from(std::mem::take(&mut text));
            let sent = tokio::time::timeout(STUCK_MAX, sender.send(bytes)).await;
            if !matches!(sent, Ok(Ok(()))) {
                return;
            }
        }
        if is_over {
            return;
        }
        tokio::select! {
            () = answering.grown() => {}
            () = sender.closed() => return,
            () = tokio::time::sleep(PAUSE) => text = shape.pause(),
        }
    }
}

/// What the connection reads. Dropped with it, it stops the request.
struct StreamBody {
    receiver: mpsc::Receiver<Bytes>,
    _cancel: CancelOnDrop,
}

impl HttpBody for StreamBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let next = self.receiver.poll_recv(context);
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// A token with the logarithm of its probability, and those that were likely in its place.
#[derive(Clone, Debug)]
pub(crate) struct Likely {
    pub(crate) bytes: Vec<u8>,
    pub(crate) logprob: f32,
    pub(crate) top: Vec<(Vec<u8>, f32)>,
}

impl Likely {
    fn of(answering: &Answering, id: u32, logprobs: &Logprobs) -> Self {
        let tokenizer = answering.opened.tokenizer();
        let piece = |id: u32| tokenizer.piece(id, Show::Control).to_vec();
        Self {
            bytes: piece(id),
            logprob: logprobs.chosen,
            top: logprobs
                .top
                .iter()
                .map(|(id, p)| (piece(*id), *p))
                .collect(),
        }
    }
}

/// A reply that is whole.
#[derive(Clone, Debug)]
pub(crate) struct Whole {
    pub(crate) parts: Vec<Part>,
    /// How likely each token was, where that was asked for.
    pub(crate) likely: Vec<Likely>,
    pub(crate) end: End,
}

impl Whole {
    /// The words of the answer.
    pub(crate) fn text(&self) -> String {
        let text = |part: &Part| match part {
            Part::Text(text) => Some(text.clone()),
            _ => None,
        };
        self.parts.iter().filter_map(text).collect()
    }

    /// The thoughts, if there were any.
    pub(crate) fn thoughts(&self) -> Option<String> {
        let thought = |part: &Part| match part {
            Part::Thinking(text) => Some(text.clone()),
            _ => None,
        };
        let all: String = self.parts.iter().filter_map(thought).collect();
        Some(all).filter(|all| !all.is_empty())
    }
}

/// Waits for all replies to be whole. Dropped before, it stops them.
///
/// # Errors
/// One of them failed.
pub(crate) async fn whole(answering: &mut Answering) -> Result<Vec<Whole>, Fault> {
    let count = answering.courses.len();
    let mut parts: Vec<Vec<Part>> = vec![Vec::new(); count];
    let mut likely: Vec<Vec<Likely>> = vec![Vec::new(); count];
    let mut ends: Vec<Option<End>> = vec![None; count];
    loop {
        for i in 0..count {
            for heard in answering.courses[i].take() {
                match heard {
                    Heard::Part(part) => join_parts(&mut parts[i], part),
                    Heard::Likely(id, logprobs) => {
                        likely[i].push(Likely::of(answering, id, &logprobs));
                    }
                    Heard::Ended(end) => {
                        answering.shared.metrics.finished(&end.stats);
                        ends[i] = Some(*end);
                    }
                    Heard::Failed(fault) => return Err(fault),
                }
            }
        }
        if ends.iter().all(Option::is_some) {
            let all = parts
                .into_iter()
                .zip(likely)
                .zip(ends.into_iter().flatten());
            let whole = all.map(|((parts, likely), end)| Whole { parts, likely, end });
            return Ok(whole.collect());
        }
        answering.grown().await;
    }
}
