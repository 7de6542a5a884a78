//! Memory of the host that the card reads and writes by itself.

use std::ffi::c_void;
use std::ops::Range;
use std::rc::Rc;

use cudarc::driver::sys;

use super::{Device, Fault};
use crate::card::Doing;

/// Memory of the host that does not move. The card may read or write it until the stream has
/// passed the copy; whoever holds it keeps to that.
pub(crate) struct Pinned {
    device: Rc<Device>,
    ptr: *mut c_void,
    bytes: usize,
}

impl Pinned {
    /// Takes memory, filled with zeros.
    pub(crate) fn new(device: &Rc<Device>, bytes: usize) -> Result<Self, Fault> {
        let bytes = bytes.max(1);
        let mut ptr = std::ptr::null_mut();
        // SAFETY: the pointer is valid for one address, and the context is current.
        device.asked(Doing::GivingMemory, "cuMemHostAlloc", || unsafe {
            sys::cuMemHostAlloc(&raw mut ptr, bytes, 0)
        })?;
        // SAFETY: the driver just gave so many bytes, which nobody else knows of.
        unsafe { ptr.cast::<u8>().write_bytes(0, bytes) };
        Ok(Self {
            device: Rc::clone(device),
            ptr,
            bytes,
        })
    }

    /// The card that knows of it.
    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// What is in it. The stream has to have passed every copy into it.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: so many bytes, filled since `new`, that live as long as this value. The card
        // writes them only between a `copy_out` and the wait for it, and callers read after it.
        unsafe { std::slice::from_raw_parts(self.ptr.cast(), self.bytes) }
    }

    /// The same to be written. The stream has to have passed every copy out of it.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and this value is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.cast(), self.bytes) }
    }

    /// Where these bytes lie.
    pub(super) fn address(&self, bytes: Range<usize>) -> *mut c_void {
        assert!(
            bytes.start <= bytes.end && bytes.end <= self.bytes,
            "bytes of this memory"
        );
        self.ptr.wrapping_byte_add(bytes.start)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: given back once; its holder has waited for the copies that use it.
        self.device.give_back(|| unsafe {
            let _ = sys::cuCtxSetCurrent(self.device.context);
            let _ = sys::cuMemFreeHost(self.ptr);
        });
    }
}
