//! The only place that maps a file into memory, and so the only one with unsafe code.
#![allow(unsafe_code)]

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use memmap2::{Mmap, UncheckedAdvice};

use crate::error::Refusal;

/// A read-only mapping of a whole, non-empty file, with the file held open.
#[derive(Debug)]
pub(crate) struct Map {
    file: File,
    bytes: Mmap,
}

impl Map {
    /// Maps an ordinary file.
    pub(crate) fn open(path: &Path) -> Result<Self, Refusal> {
        // Asked before opening: to open a pipe would wait for its other end.
        let kind = std::fs::metadata(path).map_err(Refusal::from_io)?;
        if kind.is_dir() {
            return Err(Refusal::IsDirectory);
        }
        if !kind.is_file() {
            return Err(Refusal::NotAFile);
        }
        let file = File::open(path).map_err(Refusal::from_io)?;
        if file.metadata().map_err(Refusal::from_io)?.len() == 0 {
            return Err(Refusal::Empty);
        }
        // SAFETY: the mapping is read-only and `file` outlives it. What nobody can
        // rule out is another program that changes the file meanwhile. Changed bytes
        // give wrong numbers, never an invalid value: everything handed out is `&[u8]`,
        // and the description is copied before it is used. A cut file gives SIGBUS,
        // which ends the process without touching memory that is not ours;
        // `check_length` narrows that window.
        let bytes = unsafe { Mmap::map(&file) }.map_err(Refusal::Io)?;
        Ok(Self { file, bytes })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Refuses if the file is shorter now than its mapping.
    pub(crate) fn check_length(&self) -> Result<(), Refusal> {
        let found = self.file.metadata().map_err(Refusal::from_io)?.len();
        if found < self.len() {
            return Err(Refusal::Shrunk {
                found,
                needed: self.len(),
            });
        }
        Ok(())
    }

    /// Drops pages from memory; reading them again takes them from the file.
    pub(crate) fn release(&self, range: Range<usize>) {
        assert!(
            range.start <= range.end && range.end <= self.bytes.len(),
            "a range of this file"
        );
        // SAFETY: the mapping is read-only and backed by the file, so no byte of it
        // exists in memory alone: pages dropped by DONTNEED are read back unchanged.
        let dropped = unsafe {
            self.bytes.unchecked_advise_range(
                UncheckedAdvice::DontNeed,
                range.start,
                range.end - range.start,
            )
        };
        // A hint only: where the system refuses it, the pages just stay.
        drop(dropped);
    }
}
