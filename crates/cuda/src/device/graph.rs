//! Launches that were captured once and are replayed as one.

use std::rc::Rc;

use cudarc::driver::sys::{self, CUstreamCaptureMode};

use super::{Device, Fault};
use crate::card::Doing;

/// A captured sequence of launches, ready to be enqueued again and again.
pub(crate) struct Graph {
    device: Rc<Device>,
    ready: sys::CUgraphExec,
}

impl Graph {
    /// Captures what `enqueue` launches. Nothing of it runs.
    pub(crate) fn capture(
        device: &Rc<Device>,
        enqueue: impl FnOnce() -> Result<(), Fault>,
    ) -> Result<Self, Fault> {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream lives and is not the default one, which cannot be captured.
        device.asked(Doing::Readying, "cuStreamBeginCapture", || unsafe {
            sys::cuStreamBeginCapture_v2(device.stream, mode)
        })?;
        let enqueued = enqueue();
        let mut graph = std::ptr::null_mut();
        // SAFETY: the pointer is valid for one handle; the capture has to be ended whatever
        // happened in between.
        let ended = device.asked(Doing::Readying, "cuStreamEndCapture", || unsafe {
            sys::cuStreamEndCapture(device.stream, &raw mut graph)
        });
        let captured = enqueued.and(ended);
        let mut ready = std::ptr::null_mut();
        let made = captured.and_then(|()| {
            // SAFETY: the pointer is valid for one handle, and the capture gave a graph.
            device.asked(Doing::Readying, "cuGraphInstantiate", || unsafe {
                sys::cuGraphInstantiateWithFlags(&raw mut ready, graph, 0)
            })
        });
        if !graph.is_null() {
            // SAFETY: the handle is given back once; the instance does not need it.
            device.give_back(|| unsafe {
                let _ = sys::cuGraphDestroy(graph);
            });
        }
        made.map(|()| Self {
            device: Rc::clone(device),
            ready,
        })
    }

    /// Enqueues all of it.
    pub(crate) fn launch(&self) -> Result<(), Fault> {
        // SAFETY: the graph and the stream live. What the launches read and write belongs to the
        // session that holds this graph.
        self.device
            .asked(Doing::Launching, "cuGraphLaunch", || unsafe {
                sys::cuGraphLaunch(self.ready, self.device.stream)
            })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the handle is given back once; the driver waits for a launch under way.
        self.device.give_back(|| unsafe {
            let _ = sys::cuGraphExecDestroy(self.ready);
        });
    }
}
