//! The tensor index: names, shapes and places, as the file has them.

use crate::error::{Needed, ParseError};
use crate::limits;

use super::header::Header;

/// Tensors and the checksum at the end start at multiples of this.
const ALIGNMENT: u64 = 64;

/// Bytes of the checksum at the end, where there is one.
const FOOTER_BYTES: u64 = 4;

/// Bytes of the smallest entry: an empty name and no dimensions.
const ENTRY_BYTES_MIN: u64 = 20;

/// One entry. Its place is in the file, unless it has no bytes.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) code: u8,
    /// At least one, none zero, with a product that can be counted; of one part.
    pub(super) dims: Vec<usize>,
    /// From the start of the file: one, or one for each expert of a stack.
    pub(super) starts: Vec<u64>,
    /// Of one part.
    pub(super) size: u64,
}

impl Entry {
    /// Values of one part.
    pub(super) fn part_elems(&self) -> usize {
        self.dims.iter().product()
    }

    /// Values of all parts. Each has a byte in the file, so they can be counted.
    pub(super) fn elems(&self) -> usize {
        self.part_elems().saturating_mul(self.starts.len())
    }

    /// Where the first part begins.
    fn start(&self) -> u64 {
        self.starts[0]
    }
}

/// Reads the index and holds the places against the file.
pub(super) fn read(header: &Header, bytes: &[u8], file_len: u64) -> Result<Vec<Entry>, ParseError> {
    let index = bytes.get(header.index_at as usize..header.data_at as usize);
    let truncated = || ParseError::Truncated {
        found: file_len,
        needed: Needed::AtLeast(header.data_at),
    };
    let mut rest = index.ok_or_else(truncated)?;
    let room = header.data_at - header.index_at;
    limits::check(
        "tensors in this index",
        header.n_tensors,
        room / ENTRY_BYTES_MIN,
    )?;
    let entries: Vec<Entry> = (0..header.n_tensors)
        .map(|_| read_entry(&mut rest, header.data_at))
        .collect::<Result<_, _>>()?;
    check_places(&entries, file_len)?;
    Ok(entries)
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], ParseError> {
    let overrun = ParseError::Apr(crate::error::AprError::Sections);
    let (taken, left) = rest.split_at_checked(len).ok_or(overrun)?;
    *rest = left;
    Ok(taken)
}

fn number(rest: &mut &[u8], len: usize) -> Result<u64, ParseError> {
    let mut bytes = [0; 8];
    bytes[..len].copy_from_slice(take(rest, len)?);
    Ok(u64::from_le_bytes(bytes))
}

fn read_entry(rest: &mut &[u8], data_at: u64) -> Result<Entry, ParseError> {
    let name_len = number(rest, 2)?;
    limits::check(
        "bytes in a tensor name",
        name_len,
        limits::TENSOR_NAME_BYTES_MAX,
    )?;
    let name = std::str::from_utf8(take(rest, name_len as usize)?);
    let not_text = |_| ParseError::NotText {
        what: "a tensor name",
        at: data_at - rest.len() as u64,
    };
    let name = name.map_err(not_text)?.to_owned();
    let code = number(rest, 1)? as u8;
    let n_dims = number(rest, 1)?;
    limits::check(
        "dimensions of a tensor",
        n_dims,
        u64::from(limits::DIMENSIONS_MAX),
    )?;
    let dims: Vec<u64> = (0..n_dims)
        .map(|_| number(rest, 8))
        .collect::<Result<_, _>>()?;
    let (offset, size) = (number(rest, 8)?, number(rest, 8)?);
    let elems = dims.iter().try_fold(1usize, |all, dim| {
        all.checked_mul(usize::try_from(*dim).ok()?)
    });
    if dims.is_empty() || !elems.is_some_and(|elems| (1..usize::MAX / 16).contains(&elems)) {
        return Err(ParseError::BadShape { tensor: name, dims });
    }
    Ok(Entry {
        name,
        code,
        dims: dims.into_iter().map(|dim| dim as usize).collect(),
        starts: vec![data_at.saturating_add(offset)],
        size,
    })
}

/// As for GGUF: where the tensors follow each other, a file that ends too early was cut; behind
/// a gap, the place is what is wrong.
fn check_places(entries: &[Entry], file_len: u64) -> Result<(), ParseError> {
    let mut sorted: Vec<&Entry> = entries.iter().filter(|entry| entry.size > 0).collect();
    sorted.sort_by_key(|entry| entry.start());
    let mut last: Option<(&Entry, u64)> = None;
    let mut has_gap = false;
    for entry in sorted {
        let end = entry.start().checked_add(entry.size);
        let end = end.filter(|end| *end < u64::MAX - ALIGNMENT);
        if let Some((before, before_end)) = last {
            if before_end > entry.start() {
                let (first, second) = (before.name.clone(), entry.name.clone());
                return Err(ParseError::Overlap { first, second });
            }
            has_gap |= entry.start() - before_end >= ALIGNMENT;
        }
        match end {
            Some(end) if end <= file_len || !has_gap => last = Some((entry, end)),
            _ => {
                return Err(ParseError::OutOfRange {
                    tensor: entry.name.clone(),
                    end: end.unwrap_or(u64::MAX),
                    found: file_len,
                });
            }
        }
    }
    let padded = last.map_or(0, |(_, end)| end.next_multiple_of(ALIGNMENT));
    if file_len == padded || file_len >= padded + FOOTER_BYTES {
        return Ok(());
    }
    // Cut within the checksum, or before: then nobody knows whether there was one.
    let needed = if file_len > padded {
        padded + FOOTER_BYTES
    } else {
        padded
    };
    Err(ParseError::Truncated {
        found: file_len,
        needed: Needed::Exactly(needed),
    })
}
