//! Marks in the stream.

use std::ffi::c_uint;
use std::rc::Rc;

use cudarc::driver::sys::{self, CUevent_flags};

use super::{Device, Fault};
use crate::card::Doing;

/// A mark that can be waited for.
pub(crate) struct Event {
    device: Rc<Device>,
    event: sys::CUevent,
}

impl Event {
    pub(crate) fn new(device: &Rc<Device>) -> Result<Self, Fault> {
        // A waiting thread sleeps.
        let flags = CUevent_flags::CU_EVENT_BLOCKING_SYNC as c_uint
            | CUevent_flags::CU_EVENT_DISABLE_TIMING as c_uint;
        let mut event = std::ptr::null_mut();
        // SAFETY: the pointer is valid for one handle, and the device's context is current.
        device.asked(Doing::GivingMemory, "cuEventCreate", || unsafe {
            sys::cuEventCreate(&raw mut event, flags)
        })?;
        Ok(Self {
            device: Rc::clone(device),
            event,
        })
    }

    /// Sets the mark behind everything that was enqueued so far.
    pub(crate) fn record(&self) -> Result<(), Fault> {
        // SAFETY: event and stream live, and are of one context.
        self.device
            .asked(Doing::Launching, "cuEventRecord", || unsafe {
                sys::cuEventRecord(self.event, self.device.stream)
            })
    }

    /// Waits until the stream has passed the mark.
    pub(crate) fn wait(&self) -> Result<(), Fault> {
        // SAFETY: the event lives.
        self.device
            .asked(Doing::Computing, "cuEventSynchronize", || unsafe {
                sys::cuEventSynchronize(self.event)
            })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the handle is given back once. The driver keeps what a pending mark needs.
        self.device.give_back(|| unsafe {
            let _ = sys::cuEventDestroy_v2(self.event);
        });
    }
}
