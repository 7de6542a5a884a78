//! Model files: from a path to a validated index over mapped bytes.
//!
//! [`ModelFile::open`] maps a file and reads its description into one [`Index`]:
//! metadata, tensors with their places, tokenizer, chat template. Nothing in it is
//! trusted: each count, length and place is held against a named limit in
//! [`limits`] and against the file's length before it is used, so whoever holds an
//! `Index` may slice without checking again.
//!
//! This crate deliberately computes nothing with weights, does not know any
//! architecture, and reads no formats other than those in its table; it refuses others
//! by name.
//!
//! Start with [`ModelFile`], then the pure reader [`gguf::parse`].
#![deny(unsafe_code)] // The one exception is `map.rs`.

pub mod apr;
mod assumed;
mod error;
pub mod gguf;
mod index;
pub mod limits;
mod map;
mod metadata;
mod pieces;
mod purpose;
mod segments;
pub mod shown;
mod sniff;
mod tokenizer_spec;
mod unpack;

use std::path::{Path, PathBuf};

pub use assumed::{Assumed, AssumedError};
pub use error::{AprError, Needed, OpenError, ParseError, PartsDifference, Refusal};
pub use index::{Format, Index, Layout, Note, TensorInfo};
pub use metadata::{Metadata, MetadataError, Value, ValueKind};
pub use purpose::Purpose;
pub use sniff::LooksLike;
pub use tokenizer_spec::{CHARACTER_MERGES, TokenType, TokenizerSpec};
pub use unpack::LayOutError;

use map::Map;
use segments::Segments;

/// An open model file: its description, and its bytes as a read-only mapping.
///
/// The file stays open while this value lives, so renaming or deleting it does no
/// harm. Cutting it short in place does: the kernel answers a read behind the new
/// end with SIGBUS, which no program can turn into an error safely. Only another
/// program that writes into the model can cause this; [`ModelFile::check_length`]
/// finds it before a long computation starts.
#[derive(Debug)]
pub struct ModelFile {
    path: PathBuf,
    index: Index,
    segments: Segments,
}

impl ModelFile {
    /// Opens a model of any format in the table, at any path that the system takes. Of a
    /// split model any part may be named; the others are found beside it.
    ///
    /// # Errors
    /// A file cannot be read, is not a model file, is incomplete or damaged, or is of a kind
    /// that this version does not read; the message says which.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_as(path, &Assumed::default())
    }

    /// Opens a model of which a person states facts that go before what the file says.
    ///
    /// # Errors
    /// As [`ModelFile::open`]; or the format does not take a fact.
    pub fn open_as(path: &Path, assumed: &Assumed) -> Result<Self, OpenError> {
        let refuse = |reason: Refusal| OpenError {
            path: path.to_owned(),
            reason,
        };
        let map = Map::open(path).map_err(refuse)?;
        let format = format_of(map.bytes(), map.len());
        let opened = format
            .map_err(|e| refuse(e.into()))
            .and_then(|f| (f.open)(path, map, assumed));
        let (index, segments) = opened.map_err(|error| match pieces::refusal(path, &error) {
            Some(reason) => refuse(reason),
            None => error,
        })?;
        // The lengths that the index was held against must still be true: a download
        // may be running.
        segments.check_lengths()?;
        Ok(Self {
            path: path.to_owned(),
            index,
            segments,
        })
    }

    /// What the file says about itself.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes of a tensor.
    ///
    /// # Panics
    /// If the tensor is of another file and lies behind this one's end.
    pub fn bytes(&self, tensor: &TensorInfo) -> &[u8] {
        self.segments.bytes(&tensor.range)
    }

    /// Lays out anew all tensors that need it, [`Index::unpacked_bytes`] in all; without this each
    /// is laid out when its bytes are first asked for. After every piece `go_on` hears how many
    /// bytes are ready, and stops it with `false`.
    ///
    /// # Errors
    /// It was stopped, or the system gives no memory.
    pub fn lay_out(&self, go_on: &mut dyn FnMut(u64) -> bool) -> Result<(), LayOutError> {
        let mut ready = 0;
        self.segments.lay_out(&mut |bytes| {
            ready += bytes;
            go_on(ready)
        })
    }

    /// Tells the system that a tensor's pages in memory are not needed now; they
    /// are read from the file again when touched.
    pub fn release(&self, tensor: &TensorInfo) {
        self.segments.release(&tensor.range);
    }

    /// The same for some bytes of a tensor, and for the rest of the pages that they are in.
    ///
    /// # Panics
    /// If the tensor has not so many bytes.
    pub fn release_part(&self, tensor: &TensorInfo, part: std::ops::Range<usize>) {
        let start = tensor.range.start + part.start as u64;
        let end = tensor.range.start + part.end as u64;
        assert!(
            start <= end && end <= tensor.range.end,
            "bytes of the tensor"
        );
        self.segments.release(&(start..end));
    }

    /// Asks again for the lengths of the files.
    ///
    /// # Errors
    /// One has been made shorter since it was opened.
    pub fn check_length(&self) -> Result<(), OpenError> {
        self.segments.check_lengths()
    }
}

/// Reads the description of a model, of which this file is open, and opens what else it needs.
type OpenFn = fn(&Path, Map, &Assumed) -> Result<(Index, Segments), OpenError>;

/// A model file format: how it begins and how it is opened.
struct FormatEntry {
    magic: &'static [u8],
    header_bytes: u64,
    open: OpenFn,
}

/// All formats that this version reads.
const FORMATS: &[FormatEntry] = &[
    FormatEntry {
        magic: gguf::MAGIC,
        header_bytes: gguf::HEADER_BYTES,
        open: gguf::open,
    },
    FormatEntry {
        magic: apr::MAGIC,
        header_bytes: apr::HEADER_BYTES,
        open: apr::open,
    },
];

/// The format of a file, by how it begins.
fn format_of(bytes: &[u8], file_len: u64) -> Result<&'static FormatEntry, ParseError> {
    for format in FORMATS {
        if bytes.starts_with(format.magic) {
            return Ok(format);
        }
        if format.magic.starts_with(bytes) {
            let needed = Needed::AtLeast(format.header_bytes);
            return Err(ParseError::Truncated {
                found: file_len,
                needed,
            });
        }
    }
    Err(ParseError::NotAModel {
        looks_like: sniff::looks_like(bytes),
    })
}
