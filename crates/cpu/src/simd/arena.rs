//! Memory for the weights of a model, and for keys and values, in large pages where the system has
//! them.
//!
//! One core of a Zen 5 machine reads 38 GB/s from pages of 2 MiB and 30 GB/s from pages of 4 KiB,
//! and writing a reply is bound by that. Single matrices of small models are smaller than a large
//! page, so the matrices of a model share one mapping.

use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Pod;

use super::buffer::LINE_BYTES;

/// The size of a large page, to which the mapping is aligned.
const LARGE_PAGE_BYTES: usize = 2 << 20;

/// Zeroed memory that is given out piece by piece, and goes back when all pieces are gone.
pub(crate) struct Arena {
    mapping: Arc<Mapping>,
    used: usize,
}

impl Arena {
    /// Room for `bytes`; the pages come into being when they are first written to. `None` if the
    /// system has not so much.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        Some(Self {
            mapping: Arc::new(Mapping::new(bytes.max(LINE_BYTES))?),
            used: 0,
        })
    }

    /// A piece that begins on a cache line, zeroed. `None` if the room is used up.
    pub(crate) fn take(&mut self, bytes: usize) -> Option<Region> {
        let end = self.used.checked_add(bytes)?;
        if end > self.mapping.bytes {
            return None;
        }
        // SAFETY: within the mapping.
        let start = unsafe { self.mapping.start.add(self.used) };
        self.used = end.next_multiple_of(LINE_BYTES);
        Some(Region {
            start,
            bytes,
            _mapping: Arc::clone(&self.mapping),
        })
    }
}

/// A piece of an [`Arena`].
pub(crate) struct Region {
    start: NonNull<u8>,
    bytes: usize,
    /// Keeps the memory alive.
    _mapping: Arc<Mapping>,
}

// SAFETY: a region is the only one with its bytes, which any thread may use.
unsafe impl Send for Region {}
// SAFETY: as above; shared use only reads.
unsafe impl Sync for Region {}

impl Region {
    /// The contents as numbers of some plain kind.
    pub(crate) fn as_slice<T: Pod>(&self) -> &[T] {
        // SAFETY: the region lies in a live mapping, which was zeroed, and only `self` has it.
        let bytes = unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) };
        bytemuck::cast_slice(bytes)
    }

    /// The contents as numbers of some plain kind, to write.
    pub(crate) fn as_mut_slice<T: Pod>(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`, and borrowed exclusively.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) };
        bytemuck::cast_slice_mut(bytes)
    }

    /// How many bytes it holds.
    pub(crate) fn size_bytes(&self) -> usize {
        self.bytes
    }
}

/// Memory from the system.
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    /// What the system gave, which may begin earlier.
    #[cfg(target_os = "linux")]
    given: (*mut libc::c_void, usize),
}

// SAFETY: plain memory, which any thread may use and free.
unsafe impl Send for Mapping {}
// SAFETY: the mapping itself gives no access; see `Region`.
unsafe impl Sync for Mapping {}

#[cfg(target_os = "linux")]
impl Mapping {
    fn new(bytes: usize) -> Option<Self> {
        let length = bytes.checked_add(LARGE_PAGE_BYTES)?;
        // SAFETY: a new private mapping, which takes the place of nothing.
        let given = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if given == libc::MAP_FAILED {
            return None;
        }
        let before = given.align_offset(LARGE_PAGE_BYTES);
        // SAFETY: less than a large page, by which the mapping is longer.
        let start = unsafe { given.byte_add(before) };
        // SAFETY: within the mapping. Advice only: where it is refused, small pages stay.
        unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) };
        Some(Self {
            start: NonNull::new(start.cast())?,
            bytes,
            given: (given, length),
        })
    }
}

#[cfg(target_os = "linux")]
impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: what `mmap` gave; no region is left, since each holds the mapping.
        unsafe { libc::munmap(self.given.0, self.given.1) };
    }
}

#[cfg(not(target_os = "linux"))]
impl Mapping {
    fn layout(bytes: usize) -> Option<std::alloc::Layout> {
        std::alloc::Layout::from_size_align(bytes, LARGE_PAGE_BYTES).ok()
    }

    fn new(bytes: usize) -> Option<Self> {
        // SAFETY: `Arena::new` asks for one line at least.
        let start = unsafe { std::alloc::alloc_zeroed(Self::layout(bytes)?) };
        Some(Self {
            start: NonNull::new(start)?,
            bytes,
        })
    }
}

#[cfg(not(target_os = "linux"))]
impl Drop for Mapping {
    fn drop(&mut self) {
        if let Some(layout) = Self::layout(self.bytes) {
            // SAFETY: allocated with this layout; no region is left, since each holds the mapping.
            unsafe { std::alloc::dealloc(self.start.as_ptr(), layout) };
        }
    }
}
