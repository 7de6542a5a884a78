//! What the bytes of a tensor are: the code and the size decide together, since writers use one
//! code for different types.

use candor_quant::QuantType;
use candor_quant::types::bf16;

use crate::error::AprError;
use crate::unpack::{APR_Q4_BYTES, APR_Q4_ELEMS, How};

use super::entries::Entry;

/// What the bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// Rows of whole blocks of a type.
    Rows(&'static QuantType),
    /// Something to be laid out anew.
    Unpack(How),
    /// A shape without bytes.
    Nothing,
}

/// Names of ggml's types by the code that a tensor of them may have.
pub const TYPES: &[(u8, &str)] = &[
    (0, "F32"),
    (1, "F16"),
    (2, "Q4_0"),
    (3, "Q4_1"),
    (6, "Q5_0"),
    (7, "Q5_1"),
    (8, "Q8_0"),
    (12, "Q4_K"),
    (13, "Q5_K"),
    (14, "Q6_K"),
    (30, "BF16"),
];

fn ggml_type(code: u8) -> Option<&'static str> {
    let found = TYPES.iter().find(|(known, _)| *known == code);
    found.map(|(_, name)| *name)
}

/// Forms of storage that only these files have, and what each becomes in memory.
pub const UNPACKED: &[(&str, &str)] = &[
    ("Q4_K, rows padded to a multiple of 256", "F32"),
    ("Q4_K across the ends of rows", "F32"),
    (
        "APR Q4",
        "Q4_0 of the same values; F32 where its blocks cross the ends of rows",
    ),
    ("APR Q8", "F32"),
];

/// The storage of a tensor, or of each of its parts, with rows of `cols` values.
pub(super) fn of(entry: &Entry, cols: usize) -> Result<Storage, AprError> {
    let (elems, size) = (entry.part_elems(), entry.size);
    let rows = elems / cols;
    let blocks = |n: usize, elems: usize, bytes: usize| n.div_ceil(elems) as u64 * bytes as u64;
    if size == 0 {
        return Ok(Storage::Nothing);
    }
    if let Some(quant) = ggml_type(entry.code).and_then(candor_quant::by_name) {
        let row_bytes = quant.bytes_for(cols).map(|bytes| bytes as u64);
        if row_bytes.and_then(|bytes| bytes.checked_mul(rows as u64)) == Some(size) {
            return Ok(Storage::Rows(quant));
        }
    }
    // One converter knows no BF16 and writes it under the code of F32.
    if entry.code == 0 && size == 2 * elems as u64 {
        let bf16 = candor_quant::by_id(bf16::TYPE.id).expect("a type of the table");
        return Ok(Storage::Rows(bf16));
    }
    let how = match entry.code {
        // 8 and 9 are the older codes of the types 128 and 129.
        8 | 128 if size == blocks(elems, APR_Q4_ELEMS, APR_Q4_BYTES) => {
            if cols.is_multiple_of(APR_Q4_ELEMS) {
                How::AprQ4Rows
            } else {
                How::AprQ4Flat
            }
        }
        9 | 129 if size == elems as u64 + 4 => How::AprQ8,
        // A single row ends within its last block either way. As a vector it is rows of one value to
        // whoever lays it out, so it must not be taken for filled-up rows.
        12 if rows > 1 && size == (rows as u64).saturating_mul(blocks(cols, 256, 144)) => {
            How::PaddedQ4K
        }
        12 if size == blocks(elems, 256, 144) => How::FlatQ4K,
        code => {
            return Err(AprError::Storage {
                tensor: entry.name.clone(),
                code,
                size,
                elems,
            });
        }
    };
    Ok(Storage::Unpack(how))
}
