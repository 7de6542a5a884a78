//! APR, version 2: the whole file out of its bytes.
//!
//! Order in the file: header, metadata (a JSON object), tensor index, tensor data, and often a
//! checksum. Several programs write it, each with its own mistakes; docs/formats/apr.md says
//! what is believed, what is derived instead, and what is refused.

mod checksum;
mod entries;
mod experts;
mod header;
mod json;
mod model;
mod names;
mod numbers;
mod sidecar;
mod storage;
mod tokenizer;

use std::path::Path;

use crate::assumed::Assumed;
use crate::error::{OpenError, ParseError};
use crate::index::{Format, Index};
use crate::map::Map;
use crate::segments::Segments;
use crate::unpack::Unpack;

pub use json::JsonError;
pub use model::FAMILIES;
pub use storage::{TYPES, UNPACKED};

/// How a file begins; the byte behind it tells old versions.
pub const MAGIC: &[u8] = b"APR";

/// Bytes of the header.
pub(crate) const HEADER_BYTES: u64 = 64;

/// Reads the description of a file.
///
/// `bytes` is the file from its start; `file_len` its whole length, which tensor places are
/// held against. Tensors that have to be laid out anew get places behind the file, in the
/// first [`Index::unpacked_bytes`] bytes there.
///
/// # Errors
/// The file is cut short, damaged, beyond a limit, not of a kind that is read, or says too
/// little or too much that is false to be computed with.
pub fn parse(bytes: &[u8], file_len: u64) -> Result<Index, ParseError> {
    read(bytes, file_len, &Assumed::default()).map(|(index, _)| index)
}

fn read(
    bytes: &[u8],
    file_len: u64,
    assumed: &Assumed,
) -> Result<(Index, Vec<Unpack>), ParseError> {
    let header = header::Header::read(bytes, file_len)?;
    let mut metadata = json::read(header.metadata(bytes, file_len)?)?;
    header.refuse_compressed()?;
    let entries = entries::read(&header, bytes, file_len)?;
    assumed.over_apr(&mut metadata);
    let trust = match assumed.is_empty() {
        true => model::Trust::Nobody,
        false => model::Trust::Person,
    };
    let mut model = model::Model::new(&metadata, entries, trust)?;
    model.notes.extend(assumed.notes());
    let tokenizer = tokenizer::read(&mut metadata, &mut model)?;
    let chat_template = tokenizer::chat_template(&metadata)?;
    let unpacks = model.place(file_len)?;
    let mut index = Index::new(model.architecture, model.metadata, model.tensors)?;
    index.format = Format::Apr;
    index.version = 2;
    index.tokenizer = tokenizer;
    index.chat_template = chat_template;
    index.file_bytes = file_len;
    index.notes = model.notes;
    index.unpacked_bytes = unpacks.iter().filter_map(Unpack::size).sum();
    Ok((index, unpacks))
}

/// Opens a model, with the tokenizer beside it if it has none inside.
pub(crate) fn open(
    path: &Path,
    map: Map,
    assumed: &Assumed,
) -> Result<(Index, Segments), OpenError> {
    let refuse = |e: ParseError| OpenError {
        path: path.to_owned(),
        reason: e.into(),
    };
    let (mut index, unpacks) = read(map.bytes(), map.len(), assumed).map_err(refuse)?;
    sidecar::complete(&mut index, path);
    let mut segments = Segments::default();
    segments.push_file(path.to_owned(), map);
    for unpack in unpacks {
        let size = unpack.size().expect("it was counted when it got its place");
        segments.push_unpacked(unpack, size);
    }
    Ok((index, segments))
}
