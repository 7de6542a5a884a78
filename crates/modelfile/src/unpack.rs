//! Tensors whose bytes are not rows of whole blocks, and so have to be laid out anew before
//! anything can compute with them.

use std::ops::Range;

use candor_quant::types::q4_0::Q4_0;
use candor_quant::types::{f32, q4_0, q4_k};
use candor_quant::{Block, Half, QuantType};
use thiserror::Error;

/// Bytes of a file that are laid out between two questions whether to go on: some milliseconds.
const PIECE_BYTES: usize = 1 << 20;

/// Bytes by which the last block of a part may be longer than its values.
const ROUNDED_UP: usize = q4_k::TYPE.block_elems * 4;

/// Why tensors were not laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LayOutError {
    /// The caller said so.
    #[error("stopped")]
    Stopped,
    /// The system gives no memory for them.
    #[error("there is no memory for tensors that take {bytes_needed} bytes when laid out anew")]
    NoMemory {
        /// What one of them takes.
        bytes_needed: u64,
    },
}

/// How a tensor is laid out in memory when it is first used.
#[derive(Clone, Debug)]
pub(crate) struct Unpack {
    /// Its bytes in the file: in one place, or in one for each expert.
    pub(crate) sources: Vec<Range<u64>>,
    /// Of one place.
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) how: How,
    /// The heads that the rows are of, if their halves have to be interleaved so that rotated
    /// pairs become neighbours.
    pub(crate) interleaved_heads: Option<usize>,
}

/// What the bytes are, and what becomes of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Q4_K blocks, each row filled up with zeros to whole blocks; becomes F32.
    PaddedQ4K,
    /// Q4_K blocks over all values, across the ends of rows; becomes F32.
    FlatQ4K,
    /// Blocks of APR Q4 that lie within rows; becomes Q4_0, with no value changed.
    AprQ4Rows,
    /// Blocks of APR Q4 across the ends of rows; becomes F32.
    AprQ4Flat,
    /// A scale, then bytes; becomes F32.
    AprQ8,
    /// Rows of whole blocks, which stay as they are.
    Keep(&'static QuantType),
}

impl How {
    /// The storage type of the result.
    pub(crate) fn quant(self) -> &'static QuantType {
        match self {
            Self::AprQ4Rows => of(q4_0::TYPE.id),
            Self::Keep(quant) => quant,
            _ => of(f32::TYPE.id),
        }
    }
}

fn of(id: u32) -> &'static QuantType {
    candor_quant::by_id(id).expect("a type of the table")
}

impl Unpack {
    /// Bytes of the result; `None` if they are too many to count.
    pub(crate) fn size(&self) -> Option<u64> {
        (self.part_size()? as u64).checked_mul(self.sources.len() as u64)
    }

    fn part_size(&self) -> Option<usize> {
        let elems = self.rows.checked_mul(self.cols)?;
        self.how.quant().bytes_for(elems)
    }

    /// Whether there are two halves of whole rows for each head; always, if there are no heads.
    pub(crate) fn can_interleave(&self) -> bool {
        let Some(heads) = self.interleaved_heads else {
            return true;
        };
        let halves = heads.checked_mul(2);
        halves.is_some_and(|halves| self.rows.is_multiple_of(halves))
            && self.cols.is_multiple_of(self.how.quant().block_elems)
    }

    /// The result. After every piece `go_on` hears its bytes and may say no.
    ///
    /// # Errors
    /// It said no, or there is no memory.
    pub(crate) fn run<'a>(
        &self,
        bytes: &dyn Fn(&Range<u64>) -> &'a [u8],
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Vec<u8>, LayOutError> {
        let bytes_needed = self.size().unwrap_or(u64::MAX);
        let mut all = Vec::new();
        usize::try_from(bytes_needed)
            .ok()
            .and_then(|size| all.try_reserve_exact(size.checked_add(ROUNDED_UP)?).ok())
            .ok_or(LayOutError::NoMemory { bytes_needed })?;
        for source in &self.sources {
            let start = all.len();
            self.lay_out(bytes(source), &mut all, go_on)?;
            if let Some(heads) = self.interleaved_heads {
                let ordered = self.interleave_halves(&all[start..], heads);
                all[start..].copy_from_slice(&ordered);
            }
        }
        Ok(all)
    }

    /// Adds what lies in one place.
    fn lay_out(
        &self,
        source: &[u8],
        all: &mut Vec<u8>,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), LayOutError> {
        let start = all.len();
        // One scale stands in front of all values.
        let scale_bytes = if self.how == How::AprQ8 { 4 } else { 0 };
        let (scale, source) = source.split_at(scale_bytes);
        let unit = match self.how {
            How::PaddedQ4K => source.len() / self.rows,
            How::FlatQ4K => q4_k::TYPE.block_bytes,
            How::AprQ4Rows | How::AprQ4Flat => APR_Q4_BYTES,
            How::AprQ8 | How::Keep(_) => 1,
        };
        for piece in source.chunks(unit * (PIECE_BYTES / unit).max(1)) {
            let before = all.len();
            self.add(scale, piece, all);
            if !go_on((all.len() - before) as u64) {
                return Err(LayOutError::Stopped);
            }
        }
        // The last block may hold more than there are values.
        all.truncate(start + self.part_size().unwrap_or(usize::MAX - start));
        Ok(())
    }

    /// Adds a piece of whole blocks.
    fn add(&self, scale: &[u8], piece: &[u8], all: &mut Vec<u8>) {
        match self.how {
            How::PaddedQ4K => self.add_padded_rows(piece, all),
            How::FlatQ4K => {
                let blocks = piece.len() / q4_k::TYPE.block_bytes;
                let mut values = vec![0.0; blocks * q4_k::TYPE.block_elems];
                (q4_k::TYPE.dequantize)(piece, &mut values);
                add_values(all, values);
            }
            How::AprQ4Rows => {
                all.extend(piece.chunks_exact(APR_Q4_BYTES).flat_map(q4_0_of));
            }
            How::AprQ4Flat => {
                let blocks = piece.chunks_exact(APR_Q4_BYTES);
                add_values(all, blocks.flat_map(apr_q4_values));
            }
            How::AprQ8 => {
                let scale = f32::from_le_bytes([scale[0], scale[1], scale[2], scale[3]]);
                add_values(all, piece.iter().map(|code| f32::from(*code as i8) * scale));
            }
            How::Keep(_) => all.extend_from_slice(piece),
        }
    }

    fn add_padded_rows(&self, piece: &[u8], all: &mut Vec<u8>) {
        let mut row = vec![0.0; self.cols.next_multiple_of(q4_k::TYPE.block_elems)];
        let row_bytes = row.len() / q4_k::TYPE.block_elems * q4_k::TYPE.block_bytes;
        for bytes in piece.chunks_exact(row_bytes) {
            (q4_k::TYPE.dequantize)(bytes, &mut row);
            add_values(all, row[..self.cols].iter().copied());
        }
    }

    fn interleave_halves(&self, source: &[u8], heads: usize) -> Vec<u8> {
        let row_bytes = source.len() / self.rows;
        let mut all = Vec::with_capacity(source.len());
        for head in source.chunks_exact(source.len() / heads) {
            let (first, second) = head.split_at(head.len() / 2);
            for (a, b) in first
                .chunks_exact(row_bytes)
                .zip(second.chunks_exact(row_bytes))
            {
                all.extend_from_slice(a);
                all.extend_from_slice(b);
            }
        }
        all
    }
}

/// Values of an APR Q4 block.
pub(crate) const APR_Q4_ELEMS: usize = 32;

/// Bytes of an APR Q4 block: a half float, then 32 nibbles, neighbours in one byte, the low
/// nibble first. value = scale * (nibble - 8).
pub(crate) const APR_Q4_BYTES: usize = 18;

fn apr_q4_nibble(block: &[u8], i: usize) -> u8 {
    (block[2 + i / 2] >> (i % 2 * 4)) & 15
}

/// The same values as a block of ggml, which differs in the order of the nibbles.
fn q4_0_of(block: &[u8]) -> [u8; APR_Q4_BYTES] {
    let pair = |i: usize| apr_q4_nibble(block, i) | (apr_q4_nibble(block, i + 16) << 4);
    std::array::from_fn(|at| if at < 2 { block[at] } else { pair(at - 2) })
}

fn apr_q4_values(block: &[u8]) -> [f32; APR_Q4_ELEMS] {
    let same = Q4_0 {
        d: Half([block[0], block[1]]),
        qs: std::array::from_fn(|i| q4_0_of(block)[2 + i]),
    };
    let mut values = [0.0; APR_Q4_ELEMS];
    same.dequantize(&mut values);
    values
}

fn add_values(all: &mut Vec<u8>, values: impl IntoIterator<Item = f32>) {
    all.extend(values.into_iter().flat_map(f32::to_le_bytes));
}
