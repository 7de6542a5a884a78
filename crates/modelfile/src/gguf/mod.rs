//! GGUF, versions 2 and 3, little-endian: the whole file out of its bytes.
//!
//! Order in the file: header (magic, version, counts), metadata entries, tensor
//! table, tensor data. Source of the facts: the format's description in ggml's
//! repository (docs/gguf.md); docs/formats/gguf.md here says what is refused and why.

mod cursor;
pub mod split;
mod tensors;
mod tokenizer;
mod value;

use std::path::Path;

use crate::assumed::Assumed;
use crate::error::{Needed, OpenError, ParseError};
use crate::index::{Format, Index, TensorInfo};
use crate::limits;
use crate::map::Map;
use crate::metadata::{Metadata, MetadataError};
use crate::segments::Segments;
use cursor::Cursor;
use split::Split;

/// How a file begins.
pub const MAGIC: &[u8] = b"GGUF";

/// Bytes of magic, version and the two counts.
pub(crate) const HEADER_BYTES: u64 = 24;

/// The alignment of tensor data where the file does not state one.
const ALIGNMENT_DEFAULT: u64 = 32;

/// Reads the description of a file that holds a whole model.
///
/// `bytes` is the file from its start; `file_len` its whole length, which tensor
/// places are held against.
///
/// # Errors
/// The file is cut short, damaged, beyond a limit, not of a kind that is read, or only a
/// part of a model.
pub fn parse(bytes: &[u8], file_len: u64) -> Result<Index, ParseError> {
    let part = read(bytes, file_len)?;
    if let Some(split) = part.split {
        return Err(ParseError::Split {
            part: split.no.saturating_add(1),
            parts: split.count,
        });
    }
    part.into_index(file_len)
}

/// Opens a model, with its other parts if it is one of several.
pub(crate) fn open(
    path: &Path,
    map: Map,
    assumed: &Assumed,
) -> Result<(Index, Segments), OpenError> {
    let (mut index, segments) = open_all(path, map)?;
    assumed.over_gguf(&mut index).map_err(|reason| OpenError {
        path: path.to_owned(),
        reason: reason.into(),
    })?;
    Ok((index, segments))
}

fn open_all(path: &Path, map: Map) -> Result<(Index, Segments), OpenError> {
    let refuse = |e: ParseError| OpenError {
        path: path.to_owned(),
        reason: e.into(),
    };
    let part = read(map.bytes(), map.len()).map_err(refuse)?;
    if let Some(split) = part.split {
        return split::open(path, map, part, split);
    }
    let index = part.into_index(map.len()).map_err(refuse)?;
    let mut segments = Segments::default();
    segments.push_file(path.to_owned(), map);
    Ok((index, segments))
}

/// What one file holds: a whole model, or a part of one.
struct Part {
    version: u32,
    metadata: Metadata,
    tensors: Vec<TensorInfo>,
    /// `None` for a whole model.
    split: Option<Split>,
}

impl Part {
    /// As a whole model in so many bytes.
    fn into_index(mut self, file_bytes: u64) -> Result<Index, ParseError> {
        let architecture = self.metadata.str("general.architecture")?.to_owned();
        let tokenizer = tokenizer::read(&mut self.metadata)?;
        let chat_template = self
            .metadata
            .find_str("tokenizer.chat_template")?
            .map(str::to_owned);
        let mut index = Index::new(architecture, self.metadata, self.tensors)?;
        index.format = Format::Gguf;
        index.version = self.version;
        index.tokenizer = tokenizer;
        index.chat_template = chat_template;
        index.file_bytes = file_bytes;
        Ok(index)
    }
}

fn read(bytes: &[u8], file_len: u64) -> Result<Part, ParseError> {
    let mut cursor = Cursor::new(bytes, file_len);
    if cursor.take(MAGIC.len() as u64)? != MAGIC {
        return Err(ParseError::NotAModel {
            looks_like: crate::sniff::looks_like(bytes),
        });
    }
    if file_len < HEADER_BYTES {
        let needed = Needed::AtLeast(HEADER_BYTES);
        return Err(ParseError::Truncated {
            found: file_len,
            needed,
        });
    }
    let version = cursor.u32()?;
    check_version(version)?;
    let n_tensors = cursor.count("tensors", limits::TENSORS_MAX)?;
    let n_entries = cursor.count("metadata entries", limits::METADATA_ENTRIES_MAX)?;

    let metadata = value::read_metadata(&mut cursor, n_entries)?;
    let split = Split::of(&metadata)?;
    let alignment = alignment(&metadata)?;
    let table = tensors::read_table(&mut cursor, n_tensors)?;
    let tensors = tensors::place(table, &cursor, alignment)?;
    Ok(Part {
        version,
        metadata,
        tensors,
        split,
    })
}

fn check_version(version: u32) -> Result<(), ParseError> {
    match version {
        2 | 3 => Ok(()),
        // A small number whose bytes are the other way round.
        _ if version != 0 && version & 0xffff == 0 => Err(ParseError::BigEndian),
        found => Err(ParseError::UnsupportedVersion { found }),
    }
}

fn alignment(metadata: &Metadata) -> Result<u64, ParseError> {
    let found = match metadata.find_u64("general.alignment") {
        Ok(found) => found.unwrap_or(ALIGNMENT_DEFAULT),
        Err(MetadataError::OutOfRange { .. }) => 0,
        Err(other) => return Err(other.into()),
    };
    if !found.is_power_of_two() || found > limits::ALIGNMENT_MAX {
        return Err(ParseError::BadAlignment { found });
    }
    Ok(found)
}
