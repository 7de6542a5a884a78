//! Streams: queues of work that run as late as the interface lets them.
//!
//! Nothing runs when it is queued. A call that waits for a stream runs that stream in order, and
//! of other streams only what it has been told to wait for: a dependency that a program forgot is
//! then really missing.

use std::collections::VecDeque;
use std::thread::ThreadId;

use super::codes::Code;
use super::work::Work;
use super::{Driver, Handle, Outcome};

/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD` of `cuda.h`; null means the first too.
const LEGACY: Handle = 1;
const PER_THREAD: Handle = 2;

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;

/// Stands for "all that is queued".
pub(crate) const ALL: u64 = u64::MAX;

/// A stream of one context.
pub(crate) struct Stream {
    pub(crate) context: Handle,
    /// Whether it and the legacy stream wait for each other.
    pub(crate) blocking: bool,
    pub(crate) priority: i32,
    /// The thread whose default stream it is.
    thread: Option<ThreadId>,
    /// Destroyed, but with work that is still to run.
    gone: bool,
    queue: VecDeque<Item>,
    /// Number of the last piece that was queued.
    last: u64,
    pub(crate) capture: Option<Handle>,
}

/// A piece of work in a queue.
struct Item {
    number: u64,
    /// Pieces of other streams that run before.
    after: Vec<Mark>,
    work: Work,
}

/// A place in a stream: all up to this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) stream: Handle,
    pub(crate) number: u64,
}

impl Stream {
    pub(crate) fn new(context: Handle, blocking: bool) -> Self {
        Self {
            context,
            blocking,
            priority: 0,
            thread: None,
            gone: false,
            queue: VecDeque::new(),
            last: 0,
            capture: None,
        }
    }

    /// Whether all up to this number has run.
    fn has_run(&self, number: u64) -> bool {
        self.queue.front().is_none_or(|item| item.number > number)
    }

    /// `CU_STREAM_NON_BLOCKING` or nothing.
    pub(crate) fn flags(&self) -> u32 {
        if self.blocking { 0 } else { NON_BLOCKING }
    }
}

/// An event.
pub(crate) struct Event {
    pub(crate) context: Handle,
    pub(crate) flags: u32,
    /// Where it was last recorded.
    pub(crate) mark: Option<Mark>,
    /// How many pieces of work had run when the record did.
    pub(crate) clock: Option<u64>,
    /// The capture in which it was last recorded.
    pub(crate) capture: Option<Handle>,
}

impl Driver {
    /// Makes a stream.
    pub(crate) fn create_stream(
        &mut self,
        context: Handle,
        flags: u32,
        priority: i32,
    ) -> Outcome<Handle> {
        if flags & !NON_BLOCKING != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let mut stream = Stream::new(context, flags & NON_BLOCKING == 0);
        stream.priority = priority;
        Ok(self.streams.insert(stream))
    }

    /// Destroys a stream. Its work runs as if it were there.
    pub(crate) fn destroy_stream(&mut self, context: Handle, handle: Handle) -> Outcome<()> {
        if handle <= PER_THREAD {
            return Err(Code::INVALID_HANDLE);
        }
        let handle = self.stream(context, handle)?;
        if let Some(capture) = self.streams.get_mut(handle)?.capture.take() {
            self.captures.remove(capture)?;
        }
        self.streams.get_mut(handle)?.gone = true;
        self.forget_gone_streams();
        Ok(())
    }

    fn forget_gone_streams(&mut self) {
        self.streams
            .retain(|stream| !stream.gone || !stream.queue.is_empty());
    }

    /// The stream that is meant by a handle in this context.
    pub(crate) fn stream(&mut self, context: Handle, handle: Handle) -> Outcome<Handle> {
        match handle {
            0 | LEGACY => Ok(self.context(context)?.legacy),
            PER_THREAD => {
                let thread = std::thread::current().id();
                let mine =
                    |stream: &Stream| stream.context == context && stream.thread == Some(thread);
                if let Some((handle, _)) = self.streams.iter().find(|(_, stream)| mine(stream)) {
                    return Ok(handle);
                }
                let mut stream = Stream::new(context, true);
                stream.thread = Some(thread);
                Ok(self.streams.insert(stream))
            }
            _ => {
                let stream = self.streams.get(handle)?;
                if stream.gone || stream.context != context {
                    return Err(Code::INVALID_HANDLE);
                }
                Ok(handle)
            }
        }
    }

    /// Queues work in a stream, or takes it into the graph that the stream captures.
    pub(crate) fn submit(&mut self, stream: Handle, work: Work) -> Outcome<()> {
        if let Some(capture) = self.streams.get(stream)?.capture {
            return self.capture_work(capture, work);
        }
        let after = self.implied(stream)?;
        self.queue(stream, work, after)
    }

    /// Queues work after pieces of other streams.
    pub(crate) fn queue(&mut self, stream: Handle, work: Work, after: Vec<Mark>) -> Outcome<()> {
        self.submitted += 1;
        let number = self.submitted;
        let stream = self.streams.get_mut(stream)?;
        stream.last = number;
        stream.queue.push_back(Item {
            number,
            after,
            work,
        });
        Ok(())
    }

    /// What a piece of work waits for without having been told: the legacy stream and the blocking
    /// ones wait for each other.
    fn implied(&mut self, handle: Handle) -> Outcome<Vec<Mark>> {
        let stream = self.streams.get(handle)?;
        let context = stream.context;
        if !stream.blocking {
            return Ok(Vec::new());
        }
        let legacy = self.context(context)?.legacy;
        if handle != legacy {
            let number = self.streams.get(legacy)?.last;
            return Ok(vec![Mark {
                stream: legacy,
                number,
            }]);
        }
        let mut after = Vec::new();
        let mut captures = Vec::new();
        for (other, stream) in self.streams.iter() {
            if other != legacy && stream.blocking && stream.context == context {
                captures.extend(stream.capture);
                after.push(Mark {
                    stream: other,
                    number: stream.last,
                });
            }
        }
        if captures.is_empty() {
            return Ok(after);
        }
        for capture in captures {
            self.captures.get_mut(capture)?.invalid = true;
        }
        Err(Code::STREAM_CAPTURE_IMPLICIT)
    }

    /// Where a stream stands now, with what it waits for without having been told.
    pub(crate) fn mark(&mut self, stream: Handle) -> Outcome<Mark> {
        let number = self.streams.get(stream)?.last;
        Ok(Mark { stream, number })
    }

    /// Whether all up to a mark has run.
    pub(crate) fn has_run(&self, mark: Mark) -> bool {
        // A stream that is not there any more has run to its end.
        self.streams
            .get(mark.stream)
            .map_or(true, |stream| stream.has_run(mark.number))
    }

    /// Runs a stream up to a mark, and of the others what that waits for.
    ///
    /// # Errors
    /// The code of the fault that killed the device, now or before.
    pub(crate) fn run_to(&mut self, mark: Mark) -> Outcome<()> {
        while !self.has_run(mark) {
            self.run_one(mark.stream)?;
        }
        Ok(())
    }

    /// Runs the first piece of a stream, after what it waits for.
    pub(crate) fn run_one(&mut self, handle: Handle) -> Outcome<()> {
        let stream = self.streams.get_mut(handle)?;
        let context = stream.context;
        let Some(item) = stream.queue.front_mut() else {
            return Ok(());
        };
        for mark in std::mem::take(&mut item.after) {
            self.run_to(mark)?;
        }
        self.check_alive(context)?;
        // What it waited for may have waited for this stream in turn, but only for earlier pieces,
        // and those had run.
        let Some(item) = self.streams.get_mut(handle)?.queue.pop_front() else {
            return Ok(());
        };
        self.ran += 1;
        self.run_work(context, &item.work)
    }

    /// Waits for a stream.
    pub(crate) fn synchronize(&mut self, stream: Handle) -> Outcome<()> {
        let after = self.implied(stream)?;
        for mark in after {
            self.run_to(mark)?;
        }
        self.run_to(Mark {
            stream,
            number: ALL,
        })?;
        self.after_waiting();
        Ok(())
    }

    /// Runs all work of a context.
    pub(crate) fn run_context(&mut self, context: Handle) -> Outcome<()> {
        let mine =
            |(handle, stream): (Handle, &Stream)| (stream.context == context).then_some(handle);
        let streams: Vec<Handle> = self.streams.iter().filter_map(mine).collect();
        for stream in streams {
            self.run_to(Mark {
                stream,
                number: ALL,
            })?;
        }
        self.after_waiting();
        Ok(())
    }

    /// Runs the streams of every context, as far as their devices live.
    pub(crate) fn run_all(&mut self) -> Outcome<()> {
        let contexts: Vec<Handle> = self.contexts.iter().map(|(handle, _)| handle).collect();
        contexts
            .into_iter()
            .try_for_each(|context| self.run_context(context))
    }

    /// Waits for a mark.
    pub(crate) fn wait_for(&mut self, mark: Mark) -> Outcome<()> {
        self.run_to(mark)?;
        self.after_waiting();
        Ok(())
    }

    /// Asks whether all up to a mark has run. Each "not yet" lets one more piece run, so that a
    /// program that asks again and again comes to an end, and one that asks once does not.
    pub(crate) fn step_to(&mut self, mark: Mark) -> Outcome<()> {
        if self.has_run(mark) {
            return Ok(());
        }
        self.run_one(mark.stream)?;
        Err(Code::NOT_READY)
    }

    /// Where an event was last recorded, for a caller who asks or waits.
    pub(crate) fn event_mark(&mut self, event: Handle) -> Outcome<Option<Mark>> {
        let event = self.events.get(event)?;
        if let Some(capture) = event.capture {
            if self.captures.get(capture).is_ok() {
                self.spoil_capture(capture)?;
            }
            return Err(Code::CAPTURED_EVENT);
        }
        Ok(event.mark)
    }

    /// Makes a stream wait for an event.
    pub(crate) fn wait_event(&mut self, stream: Handle, event: Handle) -> Outcome<()> {
        let capture = self.streams.get(stream)?.capture;
        let event = self.events.get(event)?;
        let mark = match (event.capture, capture) {
            (Some(one), Some(other)) if one == other => return Ok(()),
            (Some(one), _) => {
                // On a card this stream would join the capture.
                if self.captures.get(one).is_ok() {
                    self.spoil_capture(one)?;
                }
                return Err(Code::NOT_SUPPORTED);
            }
            (None, _) => event.mark,
        };
        let Some(mark) = mark else {
            return Ok(());
        };
        if let Some(capture) = capture {
            self.spoil_capture(capture)?;
            return Err(Code::STREAM_CAPTURE_ISOLATION);
        }
        let mut after = self.implied(stream)?;
        after.push(mark);
        self.queue(stream, Work::Nothing, after)
    }

    fn after_waiting(&mut self) {
        self.forget_gone_streams();
        self.trim_pools();
    }
}
