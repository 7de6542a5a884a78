//! GGUF, versions 2 and 3, little-endian: the whole file out of its bytes.
//!
//! Order in the file: header (magic, version, counts), metadata entries, tensor
//! table, tensor data. Source of the facts: the format's description in ggml's
//! repository (docs/gguf.md); docs/formats/gguf.md here says what is refused and why.

mod cursor;
mod tensors;
mod tokenizer;
mod value;

use crate::error::{Needed, ParseError};
use crate::index::{Format, Index};
use crate::limits;
use crate::metadata::{Metadata, MetadataError};
use cursor::Cursor;

/// How a file begins.
pub const MAGIC: &[u8] = b"GGUF";

/// Bytes of magic, version and the two counts.
pub(crate) const HEADER_BYTES: u64 = 24;

/// The alignment of tensor data where the file does not state one.
const ALIGNMENT_DEFAULT: u64 = 32;

/// Reads the description of a file.
///
/// `bytes` is the file from its start; `file_len` its whole length, which tensor
/// places are held against.
///
/// # Errors
/// The file is cut short, damaged, beyond a limit, or not of a kind that is read.
pub fn parse(bytes: &[u8], file_len: u64) -> Result<Index, ParseError> {
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

    let mut metadata = value::read_metadata(&mut cursor, n_entries)?;
    refuse_part_of_split(&metadata)?;
    let alignment = alignment(&metadata)?;
    let table = tensors::read_table(&mut cursor, n_tensors)?;
    let tensors = tensors::place(table, &cursor, alignment)?;

    let architecture = metadata.str("general.architecture")?.to_owned();
    let tokenizer = tokenizer::read(&mut metadata)?;
    let chat_template = metadata
        .find_str("tokenizer.chat_template")?
        .map(str::to_owned);
    let mut index = Index::new(architecture, metadata, tensors)?;
    index.format = Format::Gguf;
    index.version = version;
    index.tokenizer = tokenizer;
    index.chat_template = chat_template;
    index.file_bytes = file_len;
    Ok(index)
}

fn check_version(version: u32) -> Result<(), ParseError> {
    match version {
        2 | 3 => Ok(()),
        // A small number whose bytes are the other way round.
        _ if version != 0 && version & 0xffff == 0 => Err(ParseError::BigEndian),
        found => Err(ParseError::UnsupportedVersion { found }),
    }
}

fn refuse_part_of_split(metadata: &Metadata) -> Result<(), ParseError> {
    let parts = metadata.find_u64("split.count")?.unwrap_or(1);
    if parts > 1 {
        let part = metadata
            .find_u64("split.no")?
            .unwrap_or(0)
            .saturating_add(1);
        return Err(ParseError::Split { part, parts });
    }
    Ok(())
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
