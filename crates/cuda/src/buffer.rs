//! Memory of the device: addresses, and the arenas that they point into.

use std::rc::Rc;

use crate::device::{Device, Fault};

/// An address on the device, into an arena that outlives whoever holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DevicePtr(pub(crate) u64);

impl DevicePtr {
    /// The address so many bytes further.
    pub(crate) fn plus(self, bytes: usize) -> Self {
        Self(self.0 + bytes as u64)
    }
}

/// Every part of an arena begins at a multiple of this: what the driver's own allocations do, and
/// as wide as the widest access of a warp.
pub(crate) const ALIGN: usize = 256;

/// Gives out places one after the other, before there is any memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    bytes: usize,
}

impl Layout {
    /// The offset of the next `bytes` bytes.
    pub(crate) fn place(&mut self, bytes: usize) -> usize {
        let at = self.bytes;
        self.bytes = self.bytes.saturating_add(bytes).next_multiple_of(ALIGN);
        at
    }

    /// Bytes so far.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// One allocation, given back when dropped.
pub(crate) struct Arena {
    device: Rc<Device>,
    ptr: DevicePtr,
}

impl Arena {
    /// Takes memory; what is in it is anything.
    pub(crate) fn new(device: &Rc<Device>, bytes: usize) -> Result<Self, Fault> {
        let bytes = bytes.max(ALIGN);
        Ok(Self {
            device: Rc::clone(device),
            ptr: device.allocate(bytes)?,
        })
    }

    /// Where it begins.
    pub(crate) fn ptr(&self) -> DevicePtr {
        self.ptr
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.device.free(self.ptr);
    }
}
