//! The card's memory.

use cudarc::driver::sys::{self, CUresult};

use super::{Device, Fault, Pinned};
use crate::buffer::DevicePtr;
use crate::card::Doing;

/// What a card has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryInfo {
    pub(crate) free_bytes: u64,
    pub(crate) total_bytes: u64,
}

impl Device {
    /// What the card has now.
    pub(crate) fn memory(&self) -> Result<MemoryInfo, Fault> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both pointers are valid for one size, and the context is current.
        self.asked(Doing::GivingMemory, "cuMemGetInfo", || unsafe {
            sys::cuMemGetInfo_v2(&raw mut free, &raw mut total)
        })?;
        Ok(MemoryInfo {
            free_bytes: free as u64,
            total_bytes: total as u64,
        })
    }

    /// Refuses what does not fit, before anything of it is taken.
    pub(crate) fn check_memory(&self, needed_bytes: u64) -> Result<(), Fault> {
        let available_bytes = self.memory()?.free_bytes;
        if needed_bytes <= available_bytes {
            return Ok(());
        }
        Err(Fault::OutOfMemory {
            needed_bytes,
            available_bytes,
        })
    }

    /// Takes memory. Who takes it has to give it back; see [`crate::buffer::Arena`].
    pub(crate) fn allocate(&self, bytes: usize) -> Result<DevicePtr, Fault> {
        let mut ptr = 0;
        // SAFETY: the pointer is valid for one address, and the context is current.
        let code = self.code_of(Doing::GivingMemory, || unsafe {
            sys::cuMemAlloc_v2(&raw mut ptr, bytes)
        })?;
        match code {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => Err(Fault::OutOfMemory {
                needed_bytes: bytes as u64,
                available_bytes: self.memory()?.free_bytes,
            }),
            code => self.checked("cuMemAlloc", code).map(|()| DevicePtr(ptr)),
        }
    }

    /// Gives memory back.
    pub(crate) fn free(&self, ptr: DevicePtr) {
        // SAFETY: the context is retained; the address came from `allocate` and is given back
        // once, by the arena that owns it. The driver waits for work that still uses it.
        self.give_back(|| unsafe {
            let _ = sys::cuCtxSetCurrent(self.context);
            let _ = sys::cuMemFree_v2(ptr.0);
        });
    }

    /// Enqueues a copy from pinned memory, which has to stay as it is until the stream has passed.
    pub(crate) fn copy_in(
        &self,
        to: DevicePtr,
        from: &Pinned,
        bytes: std::ops::Range<usize>,
    ) -> Result<(), Fault> {
        let len = bytes.len();
        let from = from.address(bytes);
        // SAFETY: the source holds so many bytes and lives as long as its session, which waits for
        // the stream before it drops it. The target is a place in an arena of at least that size.
        self.asked(Doing::Copying, "cuMemcpyHtoD", || unsafe {
            sys::cuMemcpyHtoDAsync_v2(to.0, from, len, self.stream)
        })
    }

    /// Enqueues a copy to pinned memory, which is not to be read until the stream has passed.
    pub(crate) fn copy_out(
        &self,
        to: &Pinned,
        bytes: std::ops::Range<usize>,
        from: DevicePtr,
    ) -> Result<(), Fault> {
        let len = bytes.len();
        let to = to.address(bytes);
        // SAFETY: as in `copy_in`, the other way round.
        self.asked(Doing::Copying, "cuMemcpyDtoH", || unsafe {
            sys::cuMemcpyDtoHAsync_v2(to, from.0, len, self.stream)
        })
    }

    /// Enqueues a copy from one place of the device to another.
    pub(crate) fn copy(&self, to: DevicePtr, from: DevicePtr, bytes: usize) -> Result<(), Fault> {
        // SAFETY: both are places in arenas that hold so many bytes there and do not overlap.
        self.asked(Doing::Copying, "cuMemcpyDtoD", || unsafe {
            sys::cuMemcpyDtoDAsync_v2(to.0, from.0, bytes, self.stream)
        })
    }

    /// Enqueues the filling of memory with zeros.
    pub(crate) fn clear(&self, ptr: DevicePtr, bytes: usize) -> Result<(), Fault> {
        // SAFETY: a place in an arena that holds so many bytes there.
        self.asked(Doing::Copying, "cuMemsetD8", || unsafe {
            sys::cuMemsetD8Async(ptr.0, 0, bytes, self.stream)
        })
    }
}
