//! The bytes of a model: mapped files, and memory of our own, as one row of bytes.
//!
//! A place in a model is counted from the start of its first file, through all its files one
//! after the other; what had to be unpacked at load stands behind them. So a place is one
//! range, whatever it lies in.

use std::ops::Range;
use std::path::PathBuf;

use crate::error::{OpenError, Refusal};
use crate::map::Map;

/// All bytes of a model.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    /// Each with its start, in order.
    all: Vec<(u64, Segment)>,
}

#[derive(Debug)]
enum Segment {
    File(PathBuf, Map),
    Memory(Vec<u8>),
}

impl Segment {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::File(_, map) => map.bytes(),
            Self::Memory(bytes) => bytes,
        }
    }
}

impl Segments {
    /// Where the next segment begins.
    pub(crate) fn end(&self) -> u64 {
        let last = self.all.last();
        last.map_or(0, |(start, segment)| start + segment.bytes().len() as u64)
    }

    /// Adds a file at the end.
    pub(crate) fn push_file(&mut self, path: PathBuf, map: Map) {
        self.all.push((self.end(), Segment::File(path, map)));
    }

    #[expect(dead_code, reason = "for what is unpacked at load")]
    /// Adds bytes at the end, and says where they are.
    pub(crate) fn push_memory(&mut self, bytes: Vec<u8>) -> Range<u64> {
        let start = self.end();
        let end = start + bytes.len() as u64;
        self.all.push((start, Segment::Memory(bytes)));
        start..end
    }

    /// The bytes of a place, which lies in one segment.
    ///
    /// # Panics
    /// If it does not.
    pub(crate) fn bytes(&self, range: &Range<u64>) -> &[u8] {
        let (segment, range) = self.place(range);
        &segment.bytes()[range]
    }

    /// Lets go of the pages of a place in memory, if they can be read again.
    pub(crate) fn release(&self, range: &Range<u64>) {
        if let (Segment::File(_, map), range) = self.place(range) {
            map.release(range);
        }
    }

    /// Asks for the lengths of all files again.
    pub(crate) fn check_lengths(&self) -> Result<(), OpenError> {
        for (_, segment) in &self.all {
            if let Segment::File(path, map) = segment {
                let refuse = |reason: Refusal| OpenError {
                    path: path.clone(),
                    reason,
                };
                map.check_length().map_err(refuse)?;
            }
        }
        Ok(())
    }

    fn place(&self, range: &Range<u64>) -> (&Segment, Range<usize>) {
        let behind = self.all.partition_point(|(start, _)| *start <= range.start);
        let (start, segment) = &self.all[behind - 1];
        // Within a mapped file or a list, so it fits the address space.
        (
            segment,
            (range.start - start) as usize..(range.end - start) as usize,
        )
    }
}
