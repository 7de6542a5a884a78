//! The bytes of a model: mapped files, and tensors laid out anew, as one row of bytes.
//!
//! A place in a model is counted from the start of its first file, through all its files one
//! after the other; what has to be unpacked stands behind them. So a place is one range,
//! whatever it lies in.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::error::{OpenError, Refusal};
use crate::map::Map;
use crate::unpack::{LayOutError, Unpack};

/// All bytes of a model.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    /// Each with its start, in order.
    all: Vec<(u64, Segment)>,
    end: u64,
}

#[derive(Debug)]
enum Segment {
    File(PathBuf, Map),
    /// Made when it is first asked for, so that to look at a model costs nothing.
    Unpacked(Unpack, OnceLock<Vec<u8>>),
}

impl Segments {
    /// Where the next segment begins.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Adds a file at the end.
    pub(crate) fn push_file(&mut self, path: PathBuf, map: Map) {
        let len = map.len();
        self.all.push((self.end, Segment::File(path, map)));
        self.end += len;
    }

    /// Adds a tensor that will take so many bytes.
    pub(crate) fn push_unpacked(&mut self, unpack: Unpack, size: u64) {
        self.all
            .push((self.end, Segment::Unpacked(unpack, OnceLock::new())));
        self.end += size;
    }

    /// The bytes of a place, which lies in one segment.
    ///
    /// # Panics
    /// If it does not.
    pub(crate) fn bytes(&self, range: &Range<u64>) -> &[u8] {
        let (segment, range) = self.place(range);
        match segment {
            Segment::File(_, map) => &map.bytes()[range],
            Segment::Unpacked(unpack, made) => {
                let made = made.get_or_init(|| {
                    let made = self.lay_out_one(unpack, &mut |_| true);
                    made.expect("whoever needs them all has asked for the memory before")
                });
                &made[range]
            }
        }
    }

    /// Lays out all tensors that have to be; `go_on` hears the bytes of every piece.
    pub(crate) fn lay_out(&self, go_on: &mut dyn FnMut(u64) -> bool) -> Result<(), LayOutError> {
        for (_, segment) in &self.all {
            if let Segment::Unpacked(unpack, made) = segment
                && made.get().is_none()
            {
                let bytes = self.lay_out_one(unpack, go_on)?;
                // Another thread may have been faster, with the same bytes.
                let _ = made.set(bytes);
            }
        }
        Ok(())
    }

    fn lay_out_one(
        &self,
        unpack: &Unpack,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Vec<u8>, LayOutError> {
        let bytes = unpack.run(&|source| self.bytes(source), go_on)?;
        unpack
            .sources
            .iter()
            .for_each(|source| self.release(source));
        Ok(bytes)
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
