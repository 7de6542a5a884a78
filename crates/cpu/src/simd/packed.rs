//! A weight matrix in its interleaved form.

use std::ops::Range;

use candor_quant::QuantType;

use super::arena::{Arena, Region};
use super::format::{FORMATS, Format, GROUP_ROWS, format_idx};

/// The weights of one matrix, interleaved by groups of [`GROUP_ROWS`] output rows.
pub(crate) struct Packed {
    pub(super) format_idx: usize,
    rows: usize,
    cols: usize,
    group_bytes: usize,
    bytes: Region,
}

impl Packed {
    /// Room for a matrix of `rows` output rows of `cols` elements in an arena, all zero until
    /// [`Packed::parts`] are filled. `None` if the kernels do not take the type, if `cols` is
    /// not whole blocks of it, or if the arena is used up.
    pub(crate) fn new_in(
        arena: &mut Arena,
        quant: &QuantType,
        rows: usize,
        cols: usize,
    ) -> Option<Self> {
        let bytes = Self::bytes_for(quant, rows, cols)?;
        let format_idx = format_idx(quant)?;
        Some(Self {
            format_idx,
            rows,
            cols,
            group_bytes: FORMATS[format_idx].group_bytes(cols),
            bytes: arena.take(bytes)?,
        })
    }

    /// The same in memory of its own.
    pub(crate) fn new(quant: &QuantType, rows: usize, cols: usize) -> Option<Self> {
        let bytes = Self::bytes_for(quant, rows, cols)?;
        Self::new_in(&mut Arena::new(bytes)?, quant, rows, cols)
    }

    /// The memory that such a matrix takes, whole cache lines.
    pub(crate) fn bytes_for(quant: &QuantType, rows: usize, cols: usize) -> Option<usize> {
        let format = &FORMATS[format_idx(quant)?];
        quant.bytes_for(cols)?;
        rows.div_ceil(GROUP_ROWS)
            .checked_mul(format.group_bytes(cols))
    }

    /// Output rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Elements of a row.
    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    /// Bytes of memory.
    pub(crate) fn size_bytes(&self) -> usize {
        self.bytes.size_bytes()
    }

    /// Whether its input is quantised activations (a [`super::Panel`]) or floats.
    pub(crate) fn input(&self) -> InputKind {
        if self.format().quant.dot.is_some() {
            InputKind::Codes
        } else {
            InputKind::Floats
        }
    }

    /// The parts of `groups_per_part` groups, each to be filled once, by any thread.
    pub(crate) fn parts(&mut self, groups_per_part: usize) -> impl Iterator<Item = Part<'_>> {
        let format = &FORMATS[self.format_idx];
        let (rows, cols, group_bytes) = (self.rows, self.cols, self.group_bytes);
        let used = &mut self.bytes.as_mut_slice::<u8>()[..rows.div_ceil(GROUP_ROWS) * group_bytes];
        used.chunks_mut(groups_per_part * group_bytes)
            .enumerate()
            .map(move |(part_idx, bytes)| Part {
                format,
                first_row: part_idx * groups_per_part * GROUP_ROWS,
                rows,
                cols,
                group_bytes,
                bytes,
            })
    }

    pub(super) fn format(&self) -> &'static Format {
        &FORMATS[self.format_idx]
    }

    pub(super) fn group_bytes(&self) -> usize {
        self.group_bytes
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.as_slice()
    }
}

/// What a matrix is multiplied with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputKind {
    /// 8-bit activations.
    Codes,
    /// float32 activations.
    Floats,
}

/// Some consecutive groups of a matrix on their way into the interleaved form.
pub(crate) struct Part<'a> {
    format: &'static Format,
    first_row: usize,
    rows: usize,
    cols: usize,
    group_bytes: usize,
    bytes: &'a mut [u8],
}

impl Part<'_> {
    /// The rows of the matrix that it holds.
    pub(crate) fn rows(&self) -> Range<usize> {
        let groups = self.bytes.len() / self.group_bytes;
        self.first_row..(self.first_row + groups * GROUP_ROWS).min(self.rows)
    }

    /// The bytes of the file that it needs: those of its rows.
    pub(crate) fn file_range(&self) -> Range<usize> {
        let row_bytes = self.row_bytes();
        let rows = self.rows();
        rows.start * row_bytes..rows.end * row_bytes
    }

    /// Fills it. `tensor` is the tensor's bytes as they are in the file, all rows of it.
    pub(crate) fn fill(self, tensor: &[u8]) {
        let row_bytes = self.row_bytes();
        let file_rows = tensor[self.file_range()].chunks_exact(row_bytes);
        for (i, row) in file_rows.enumerate() {
            let group = &mut self.bytes[i / GROUP_ROWS * self.group_bytes..][..self.group_bytes];
            (self.format.pack)(row, group, i % GROUP_ROWS);
        }
    }

    fn row_bytes(&self) -> usize {
        self.cols / self.format.quant.block_elems * self.format.quant.block_bytes
    }
}
