//! Device memory: real bytes behind device addresses.
//!
//! Addresses are never given out twice and allocations never touch, so that every use after a
//! free and every step past an end is found. Fresh memory is all ones: a NaN in every float type.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::fault::{Fault, FaultKind, Nearest};

/// What `cuMemAlloc` promises of an address.
pub const ALIGNMENT: u64 = 256;

/// Left free behind every allocation; larger than one row of what our kernels handle, so that a
/// row too many is reported with the allocation it belongs to.
const GAP: u64 = 1 << 20;

/// The memory of one device.
#[derive(Debug)]
pub struct Memory {
    next: u64,
    total: u64,
    used: u64,
    allocations: BTreeMap<u64, Allocation>,
}

#[derive(Debug)]
struct Allocation {
    bytes: u64,
    words: Box<[AtomicU64]>,
}

/// More asked for than there is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{needed} bytes needed, {available} available")]
pub struct OutOfMemory {
    /// Asked for.
    pub needed: u64,
    /// Free.
    pub available: u64,
}

/// An address that no allocation begins at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no allocation begins at {address:#x}")]
pub struct NotAllocated {
    /// The address.
    pub address: u64,
}

impl Memory {
    /// A device with `total` bytes, whose first allocation lies at `first_address`.
    #[must_use]
    pub fn new(first_address: u64, total: u64) -> Self {
        Self {
            next: first_address.next_multiple_of(ALIGNMENT),
            total,
            used: 0,
            allocations: BTreeMap::new(),
        }
    }

    /// Bytes in use.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Bytes there are.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// New memory, all ones.
    ///
    /// # Errors
    /// When the device has not that much left.
    pub fn alloc(&mut self, bytes: u64) -> Result<u64, OutOfMemory> {
        let available = self.total - self.used;
        let taken = bytes.max(1).next_multiple_of(ALIGNMENT);
        if taken > available {
            return Err(OutOfMemory {
                needed: bytes,
                available,
            });
        }
        let base = self.next;
        let words = (0..bytes.div_ceil(8)).map(|_| AtomicU64::new(u64::MAX));
        let allocation = Allocation {
            bytes,
            words: words.collect(),
        };
        self.allocations.insert(base, allocation);
        self.next = base + taken + GAP;
        self.used += taken;
        Ok(base)
    }

    /// Gives an allocation back.
    ///
    /// # Errors
    /// When no allocation begins there.
    pub fn free(&mut self, address: u64) -> Result<(), NotAllocated> {
        match self.allocations.remove(&address) {
            Some(gone) => {
                self.used -= gone.bytes.max(1).next_multiple_of(ALIGNMENT);
                Ok(())
            }
            None => Err(NotAllocated { address }),
        }
    }

    /// First address and size of the allocation that an address lies in.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<(u64, u64)> {
        let (base, found) = self.allocations.range(..=address).next_back()?;
        (address < base + found.bytes.max(1)).then_some((*base, found.bytes))
    }

    /// First address and size of every allocation, lowest first.
    pub fn allocations(&self) -> impl Iterator<Item = (u64, u64)> {
        self.allocations.iter().map(|(base, a)| (*base, a.bytes))
    }

    /// Copies to the host.
    ///
    /// # Errors
    /// When a byte belongs to no allocation.
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Fault> {
        let from = self.bytes(address, to.len() as u64)?;
        for (to, from) in to.iter_mut().zip(from) {
            *to = from.load(Ordering::Relaxed);
        }
        Ok(())
    }

    /// Copies from the host.
    ///
    /// # Errors
    /// When a byte belongs to no allocation.
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), Fault> {
        let to = self.bytes(address, from.len() as u64)?;
        for (to, from) in to.iter().zip(from) {
            to.store(*from, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Sets every byte of a range.
    ///
    /// # Errors
    /// When a byte belongs to no allocation.
    pub fn fill(&self, address: u64, bytes: u64, value: u8) -> Result<(), Fault> {
        for to in self.bytes(address, bytes)? {
            to.store(value, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Copies within the device.
    ///
    /// # Errors
    /// When a byte belongs to no allocation.
    pub fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Fault> {
        let from = self.bytes(from, bytes)?;
        let to = self.bytes(to, bytes)?;
        for (to, from) in to.iter().zip(from) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        Ok(())
    }

    /// What kernels see: a table of all allocations.
    pub(crate) fn regions(&self) -> Regions<'_> {
        let list = self.allocations.iter().map(|(base, allocation)| Region {
            base: *base,
            bytes: Bytes::of(allocation),
        });
        Regions {
            list: list.collect(),
        }
    }

    fn bytes(&self, address: u64, bytes: u64) -> Result<&[AtomicU8], Fault> {
        if bytes == 0 {
            return Ok(&[]);
        }
        let below = self.allocations.range(..=address).next_back();
        let nearest = below.map(|(base, a)| (*base, Bytes::of(a)));
        match nearest {
            Some((base, all)) if inside(address - base, bytes, all.len()) => {
                let start = (address - base) as usize;
                Ok(&all.as_slice()[start..start + bytes as usize])
            }
            other => Err(Fault::of_host(out_of_bounds(
                address,
                bytes,
                other.map(|(base, all)| (base, all.len())),
            ))),
        }
    }
}

fn inside(offset: u64, bytes: u64, len: u64) -> bool {
    offset.checked_add(bytes).is_some_and(|end| end <= len)
}

fn out_of_bounds(address: u64, bytes: u64, below: Option<(u64, u64)>) -> FaultKind {
    FaultKind::OutOfBounds {
        address,
        bytes,
        nearest: below.map(|(base, len)| Nearest {
            base,
            bytes: len,
            past: address.saturating_add(bytes) - (base + len).min(address + 1),
        }),
    }
}

/// All allocations of a device while kernels run.
#[derive(Debug)]
pub(crate) struct Regions<'a> {
    list: Vec<Region<'a>>,
}

/// One allocation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Region<'a> {
    pub(crate) base: u64,
    pub(crate) bytes: Bytes<'a>,
}

impl<'a> Regions<'a> {
    /// The allocation that holds all of a range.
    pub(crate) fn find(&self, address: u64, bytes: u64) -> Result<Region<'a>, FaultKind> {
        let after = self.list.partition_point(|r| r.base <= address);
        match after.checked_sub(1).map(|below| self.list[below]) {
            Some(found) if found.holds(address, bytes) => Ok(found),
            other => Err(out_of_bounds(
                address,
                bytes,
                other.map(|r| (r.base, r.bytes.len())),
            )),
        }
    }
}

impl Region<'_> {
    /// Whether all of a range lies in it.
    #[inline]
    pub(crate) fn holds(&self, address: u64, bytes: u64) -> bool {
        address >= self.base && inside(address - self.base, bytes, self.bytes.len())
    }
}

/// Bytes that several threads may read and write at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes<'a> {
    words: &'a [AtomicU64],
    len: u64,
}

macro_rules! sized {
    ($load:ident, $store:ident, $atomic:ident, $cell:ty, $value:ty) => {
        /// Reads at an offset that is inside and aligned.
        #[inline]
        pub(crate) fn $load(self, offset: u64) -> $value {
            self.$atomic(offset).load(Ordering::Relaxed)
        }

        /// Writes at an offset that is inside and aligned.
        #[inline]
        pub(crate) fn $store(self, offset: u64, value: $value) {
            self.$atomic(offset).store(value, Ordering::Relaxed);
        }

        /// The cell at an offset that is inside and aligned.
        #[inline]
        pub(crate) fn $atomic(self, offset: u64) -> &'a $cell {
            const SIZE: u64 = size_of::<$value>() as u64;
            assert!(
                offset.is_multiple_of(SIZE) && inside(offset, SIZE, self.len),
                "accesses are checked before"
            );
            // SAFETY: the words live for 'a, the assertion keeps the cell inside of them and
            // aligned, and all access to them goes through atomic cells.
            unsafe { &*self.words.as_ptr().cast::<u8>().add(offset as usize).cast() }
        }
    };
}

impl<'a> Bytes<'a> {
    fn of(allocation: &'a Allocation) -> Self {
        Self {
            words: &allocation.words,
            len: allocation.bytes,
        }
    }

    /// Number of bytes.
    #[inline]
    pub(crate) fn len(self) -> u64 {
        self.len
    }

    fn as_slice(self) -> &'a [AtomicU8] {
        // SAFETY: `len` bytes lie within the words, which live for 'a; all access to them goes
        // through atomic cells.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.len as usize) }
    }

    sized!(load8, store8, cell8, AtomicU8, u8);
    sized!(load16, store16, cell16, AtomicU16, u16);
    sized!(load32, store32, cell32, AtomicU32, u32);
    sized!(load64, store64, cell64, AtomicU64, u64);
}
