//! Host memory that the driver knows of: page-locked, so that copies to and from it are really
//! late.

use std::alloc::Layout;
use std::collections::BTreeMap;

use super::Outcome;
use super::codes::Code;

/// Alignment of what is given out; page-locked memory comes in whole pages.
const PAGE: usize = 4096;

/// What fresh memory holds: a NaN in every format of floating point.
const FRESH: u8 = 0xff;

/// The ranges, by their first address.
#[derive(Default)]
pub(crate) struct HostMemory(BTreeMap<usize, Range>);

/// One range.
pub(crate) struct Range {
    len: usize,
    pub(crate) flags: u32,
    /// How it was allocated; a range of the caller's own has none.
    layout: Option<Layout>,
}

impl HostMemory {
    /// Allocates page-locked memory.
    pub(crate) fn allocate(&mut self, len: usize, flags: u32) -> Outcome<usize> {
        let layout = Layout::from_size_align(len, PAGE).map_err(|_| Code::OUT_OF_MEMORY)?;
        if len == 0 {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the layout has a size, as was just checked.
        let start = unsafe { std::alloc::alloc(layout) };
        if start.is_null() {
            return Err(Code::OUT_OF_MEMORY);
        }
        // SAFETY: the allocator gave `len` bytes.
        unsafe { std::ptr::write_bytes(start, FRESH, len) };
        let address = start as usize;
        let layout = Some(layout);
        self.0.insert(address, Range { len, flags, layout });
        Ok(address)
    }

    /// Frees what [`allocate`](Self::allocate) gave.
    pub(crate) fn free(&mut self, address: usize) -> Outcome<()> {
        match self.0.get(&address) {
            Some(Range {
                layout: Some(layout),
                ..
            }) => {
                // SAFETY: it was allocated with this layout and is forgotten here, so that it is
                // freed once; the caller has run all work that could still use it.
                unsafe { std::alloc::dealloc(address as *mut u8, *layout) };
                self.0.remove(&address);
                Ok(())
            }
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// Takes memory of the caller's for page-locked.
    pub(crate) fn register(&mut self, address: usize, len: usize) -> Outcome<()> {
        let end = address.checked_add(len).ok_or(Code::INVALID_VALUE)?;
        if address == 0 || len == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let before = self.0.range(..end).next_back();
        if before.is_some_and(|(start, range)| start + range.len > address) {
            return Err(Code::HOST_MEMORY_ALREADY_REGISTERED);
        }
        let range = Range {
            len,
            flags: 0,
            layout: None,
        };
        self.0.insert(address, range);
        Ok(())
    }

    /// Forgets memory of the caller's.
    pub(crate) fn unregister(&mut self, address: usize) -> Outcome<()> {
        match self.0.get(&address) {
            Some(Range { layout: None, .. }) => {
                self.0.remove(&address);
                Ok(())
            }
            _ => Err(Code::HOST_MEMORY_NOT_REGISTERED),
        }
    }

    /// The range that begins there.
    pub(crate) fn range(&self, address: usize) -> Option<&Range> {
        self.0.get(&address)
    }

    /// Whether `len` bytes from there are page-locked.
    pub(crate) fn holds(&self, address: usize, len: usize) -> bool {
        let before = self.0.range(..=address).next_back();
        before.is_some_and(|(start, range)| {
            address
                .checked_add(len)
                .is_some_and(|end| end <= start + range.len)
        })
    }

    /// How many ranges there are, and their bytes.
    pub(crate) fn count(&self) -> (u64, u64) {
        let bytes = self.0.values().map(|range| range.len as u64).sum();
        (self.0.len() as u64, bytes)
    }
}
