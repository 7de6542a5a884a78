//! Tensors whose bytes are not rows of whole blocks, and so have to be laid out anew before
//! anything can compute with them.

use std::ops::Range;

use candor_quant::types::q4_0::Q4_0;
use candor_quant::types::{f32, q4_0, q4_k};
use candor_quant::{Block, Half, QuantType};

/// How a tensor is laid out in memory when it is first used.
#[derive(Clone, Debug)]
pub(crate) struct Unpack {
    /// Its bytes in the file.
    pub(crate) source: Range<u64>,
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
        let elems = self.rows.checked_mul(self.cols)?;
        self.how.quant().bytes_for(elems).map(|bytes| bytes as u64)
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

    /// The result.
    pub(crate) fn run(&self, source: &[u8]) -> Vec<u8> {
        let values = self.lay_out(source);
        match self.interleaved_heads {
            Some(heads) => self.interleave_halves(&values, heads),
            None => values,
        }
    }

    fn lay_out(&self, source: &[u8]) -> Vec<u8> {
        let n_values = self.rows * self.cols;
        match self.how {
            How::PaddedQ4K => self.padded_rows(source),
            How::FlatQ4K => {
                let mut values = vec![0.0; n_values.next_multiple_of(q4_k::TYPE.block_elems)];
                (q4_k::TYPE.dequantize)(source, &mut values);
                bytes_of(&values[..n_values])
            }
            How::AprQ4Rows => source
                .chunks_exact(APR_Q4_BYTES)
                .flat_map(q4_0_of)
                .collect(),
            How::AprQ4Flat => {
                let values = source.chunks_exact(APR_Q4_BYTES).flat_map(apr_q4_values);
                bytes_of(&values.take(n_values).collect::<Vec<_>>())
            }
            How::AprQ8 => {
                let (scale, codes) = source.split_at(4);
                let scale = f32::from_le_bytes([scale[0], scale[1], scale[2], scale[3]]);
                let values = codes.iter().map(|code| f32::from(*code as i8) * scale);
                bytes_of(&values.collect::<Vec<_>>())
            }
            How::Keep(_) => source.to_vec(),
        }
    }

    fn padded_rows(&self, source: &[u8]) -> Vec<u8> {
        let mut row = vec![0.0; self.cols.next_multiple_of(q4_k::TYPE.block_elems)];
        let mut all = Vec::with_capacity(self.rows * self.cols * 4);
        for bytes in source.chunks_exact(source.len() / self.rows) {
            (q4_k::TYPE.dequantize)(bytes, &mut row);
            all.extend(
                row[..self.cols]
                    .iter()
                    .flat_map(|value| value.to_le_bytes()),
            );
        }
        all
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

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}
