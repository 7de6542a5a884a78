//! The tensor table, and where each tensor lies in the file.

use candor_quant::QuantType;

use crate::error::{Needed, ParseError};
use crate::index::{Layout, TensorInfo};
use crate::limits;

use super::cursor::{Cursor, TENSOR_NAME};

/// A row of the table, checked but for its place.
pub(super) struct Row {
    name: String,
    /// Outermost first.
    dims: Vec<usize>,
    quant: &'static QuantType,
    bytes: u64,
    /// From the start of the data.
    offset: u64,
}

/// Reads the table.
pub(super) fn read_table(cursor: &mut Cursor<'_>, count: u64) -> Result<Vec<Row>, ParseError> {
    // Name length, dimension count, one dimension, type and offset.
    const ROW_BYTES_MIN: u64 = 8 + 4 + 8 + 4 + 8;
    cursor.need(count * ROW_BYTES_MIN)?;
    (0..count).map(|_| read_row(cursor)).collect()
}

fn read_row(cursor: &mut Cursor<'_>) -> Result<Row, ParseError> {
    let name = cursor.text(TENSOR_NAME, limits::TENSOR_NAME_BYTES_MAX)?;
    let n_dims = cursor.u32()?;
    if n_dims > limits::DIMENSIONS_MAX {
        return Err(ParseError::LimitExceeded {
            what: "dimensions of a tensor",
            found: u64::from(n_dims),
            limit: u64::from(limits::DIMENSIONS_MAX),
        });
    }
    let dims = (0..n_dims)
        .map(|_| cursor.u64())
        .collect::<Result<Vec<u64>, _>>()?;
    let id = cursor.u32()?;
    let offset = cursor.u64()?;
    let Some(quant) = candor_quant::by_id(id) else {
        let name_of_type = candor_quant::name_of(id);
        return Err(ParseError::UnsupportedType {
            tensor: name,
            id,
            name: name_of_type,
        });
    };
    let bytes = size(&name, &dims, quant)?;
    let dims = dims.iter().rev().map(|d| *d as usize).collect();
    Ok(Row {
        name,
        dims,
        quant,
        bytes,
        offset,
    })
}

/// The bytes of a tensor; its dimensions are as in the file, innermost first.
fn size(tensor: &str, dims: &[u64], quant: &QuantType) -> Result<u64, ParseError> {
    let bad_shape = || ParseError::BadShape {
        tensor: tensor.to_owned(),
        dims: dims.to_vec(),
    };
    let row = *dims.first().ok_or_else(bad_shape)?;
    let product = dims
        .iter()
        .try_fold(1u64, |all, d| all.checked_mul(*d))
        .filter(|n| *n > 0);
    let elems = product
        .and_then(|n| usize::try_from(n).ok())
        .ok_or_else(bad_shape)?;
    if !row.is_multiple_of(quant.block_elems as u64) {
        return Err(ParseError::PartialBlock {
            tensor: tensor.to_owned(),
            quant: quant.name,
            row,
            block_elems: quant.block_elems,
        });
    }
    quant
        .bytes_for(elems)
        .map(|bytes| bytes as u64)
        .ok_or_else(bad_shape)
}

/// Gives each tensor its place in the file, which has to hold all of them.
pub(super) fn place(
    table: Vec<Row>,
    cursor: &Cursor<'_>,
    alignment: u64,
) -> Result<Vec<TensorInfo>, ParseError> {
    if table.is_empty() {
        return Ok(Vec::new());
    }
    // At most `DESCRIPTION_BYTES_MAX` plus an alignment: no overflow.
    let data_at = cursor.at().next_multiple_of(alignment);
    check_places(&table, cursor.file_len(), data_at, alignment)?;
    let info = |row: Row| TensorInfo {
        name: row.name,
        dims: row.dims,
        quant: row.quant,
        range: data_at + row.offset..data_at + row.offset + row.bytes,
        layout: Layout::Rows,
    };
    Ok(table.into_iter().map(info).collect())
}

fn check_places(
    table: &[Row],
    file_len: u64,
    data_at: u64,
    alignment: u64,
) -> Result<(), ParseError> {
    let mut rows: Vec<&Row> = table.iter().collect();
    rows.sort_by_key(|row| row.offset);
    let mut last: Option<(&Row, u64)> = None;
    let mut has_gap = false;
    for row in rows {
        if row.offset % alignment != 0 {
            let (tensor, offset) = (row.name.clone(), row.offset);
            return Err(ParseError::Misaligned {
                tensor,
                offset,
                alignment,
            });
        }
        let last_end = last.map_or(0, |(_, end)| end);
        if let Some((first, _)) = last.filter(|(_, end)| *end > row.offset) {
            let (first, second) = (first.name.clone(), row.name.clone());
            return Err(ParseError::Overlap { first, second });
        }
        has_gap |= row.offset - last_end >= alignment;
        let end = row.offset.checked_add(row.bytes);
        let in_file = end.and_then(|end| {
            end.checked_add(data_at)?
                .checked_next_multiple_of(alignment)
        });
        let (Some(end), Some(padded)) = (end, in_file) else {
            return Err(out_of_range(row, u64::MAX, file_len));
        };
        // Where tensors follow each other without gaps, a file that is too short was
        // cut. A tensor behind a gap may be anywhere, so its place is what is wrong.
        if has_gap && data_at + end > file_len {
            return Err(out_of_range(row, data_at + end, file_len));
        }
        debug_assert!(padded >= data_at + end);
        last = Some((row, end));
    }
    last.map_or(Ok(()), |(_, end)| {
        check_end(data_at + end, file_len, alignment)
    })
}

/// The data ends with the last tensor, or with its padding. An end in between
/// shows that the file was cut, though nothing but padding is missing.
fn check_end(end: u64, file_len: u64, alignment: u64) -> Result<(), ParseError> {
    let padded = end.next_multiple_of(alignment);
    if file_len == end || file_len >= padded {
        return Ok(());
    }
    Err(ParseError::Truncated {
        found: file_len,
        needed: Needed::Exactly(padded),
    })
}

fn out_of_range(row: &Row, end: u64, found: u64) -> ParseError {
    ParseError::OutOfRange {
        tensor: row.name.clone(),
        end,
        found,
    }
}
