//! Work taken into a graph instead of being run, and graphs.
//!
//! A capture holds one stream. On a card several streams can join one; here that is refused.

use std::sync::Arc;
use std::thread::ThreadId;

use super::codes::Code;
use super::work::Work;
use super::{Driver, Handle, Outcome};

/// A capture in progress.
pub(crate) struct Capture {
    pub(crate) context: Handle,
    mode: Mode,
    /// The thread that began it.
    thread: ThreadId,
    /// Something was done that it does not survive.
    pub(crate) invalid: bool,
    nodes: Vec<Work>,
}

/// `CUstreamCaptureMode`: who may not call what could wait, while a capture goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Nobody.
    Global,
    /// The thread that captures.
    ThreadLocal,
    /// Everybody may.
    Relaxed,
}

impl Mode {
    pub(crate) fn of(number: i32) -> Outcome<Self> {
        match number {
            0 => Ok(Self::Global),
            1 => Ok(Self::ThreadLocal),
            2 => Ok(Self::Relaxed),
            _ => Err(Code::INVALID_VALUE),
        }
    }
}

/// `CUstreamCaptureStatus`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Not = 0,
    Active = 1,
    Invalid = 2,
}

/// A graph as captured.
pub(crate) struct Graph {
    pub(crate) context: Handle,
    pub(crate) nodes: Arc<[Work]>,
}

/// A graph that can be launched.
pub(crate) struct GraphExec {
    pub(crate) context: Handle,
    pub(crate) nodes: Arc<[Work]>,
    pub(crate) flags: u64,
}

impl Driver {
    /// Begins to capture a stream.
    pub(crate) fn begin_capture(
        &mut self,
        context: Handle,
        stream: Handle,
        mode: Mode,
    ) -> Outcome<()> {
        if stream == self.context(context)?.legacy {
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        if self.streams.get(stream)?.capture.is_some() {
            return Err(Code::ILLEGAL_STATE);
        }
        let capture = self.captures.insert(Capture {
            context,
            mode,
            thread: std::thread::current().id(),
            invalid: false,
            nodes: Vec::new(),
        });
        self.streams.get_mut(stream)?.capture = Some(capture);
        self.counters.add("captures", 1);
        Ok(())
    }

    /// Ends the capture of a stream, whatever has become of it.
    pub(crate) fn end_capture(&mut self, stream: Handle) -> Outcome<Handle> {
        let handle = self
            .streams
            .get(stream)?
            .capture
            .ok_or(Code::ILLEGAL_STATE)?;
        let capture = self.captures.get(handle)?;
        if capture.mode != Mode::Relaxed && capture.thread != std::thread::current().id() {
            return Err(Code::STREAM_CAPTURE_WRONG_THREAD);
        }
        self.streams.get_mut(stream)?.capture = None;
        let Capture {
            context,
            invalid,
            nodes,
            ..
        } = self.captures.remove(handle)?;
        if invalid {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        let nodes = Arc::from(nodes);
        Ok(self.graphs.insert(Graph { context, nodes }))
    }

    /// Where the capture of a stream stands.
    pub(crate) fn capture_status(&self, stream: Handle) -> Outcome<Status> {
        let Some(handle) = self.streams.get(stream)?.capture else {
            return Ok(Status::Not);
        };
        let invalid = self.captures.get(handle)?.invalid;
        Ok(if invalid {
            Status::Invalid
        } else {
            Status::Active
        })
    }

    /// Takes work into a capture.
    pub(crate) fn capture_work(&mut self, handle: Handle, work: Work) -> Outcome<()> {
        let capture = self.captures.get_mut(handle)?;
        if capture.invalid {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        if let Work::Upload { .. } | Work::Free(_) = work {
            capture.invalid = true;
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        capture.nodes.push(work);
        Ok(())
    }

    /// Refuses a call that could make the captured stream wait, and with it ends the capture.
    pub(crate) fn not_while_capturing(&mut self, stream: Handle) -> Outcome<()> {
        match self.streams.get(stream)?.capture {
            Some(capture) => Err(self.spoil_capture(capture)?),
            None => Ok(()),
        }
    }

    /// Ends a capture; the code is for the call that did.
    pub(crate) fn spoil_capture(&mut self, capture: Handle) -> Outcome<Code> {
        let capture = self.captures.get_mut(capture)?;
        if std::mem::replace(&mut capture.invalid, true) {
            return Ok(Code::STREAM_CAPTURE_INVALIDATED);
        }
        Ok(Code::STREAM_CAPTURE_UNSUPPORTED)
    }

    /// Refuses a call that may wait for the device or for the legacy stream, such as an
    /// allocation, where a capture forbids it to this thread; and ends that capture.
    pub(crate) fn may_wait(&mut self) -> Outcome<()> {
        let me = std::thread::current().id();
        let forbids = |capture: &Capture| match capture.mode {
            Mode::Global => true,
            Mode::ThreadLocal => capture.thread == me,
            Mode::Relaxed => false,
        };
        let found = self.captures.iter().find(|(_, capture)| forbids(capture));
        match found.map(|(handle, _)| handle) {
            Some(capture) => Err(self.spoil_capture(capture)?),
            None => Ok(()),
        }
    }

    /// Refuses to wait for a whole context while one of its streams captures.
    pub(crate) fn none_captures(&mut self, context: Handle) -> Outcome<()> {
        let found = self
            .captures
            .iter()
            .find(|(_, capture)| capture.context == context);
        match found.map(|(handle, _)| handle) {
            Some(capture) => Err(self.spoil_capture(capture)?),
            None => Ok(()),
        }
    }

    /// Launches a graph: its kernels count as launched, and any of them may be told to fail.
    pub(crate) fn launch_graph(&mut self, exec: Handle, stream: Handle) -> Outcome<()> {
        let nodes = Arc::clone(&self.execs.get(exec)?.nodes);
        let mut failing = None;
        for (place, node) in nodes.iter().enumerate() {
            let Work::Launch(launch) = node else { continue };
            self.counters.launched(&launch.kernel.name);
            if let Some(code) = self.injected.launched(&self.settings) {
                if !code.is_sticky() {
                    return Err(code);
                }
                failing = failing.or(Some((place, code)));
            }
        }
        self.counters.add("graph_launches", 1);
        match failing {
            None => self.submit(stream, Work::Graph(nodes)),
            Some((place, code)) => {
                let before = nodes.iter().take(place).cloned();
                let nodes = before.chain([Work::Fail(code)]).collect();
                self.submit(stream, Work::Graph(nodes))
            }
        }
    }
}
