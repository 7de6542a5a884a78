//! Model files: from a path to a validated index over mapped bytes.
//!
//! [`ModelFile::open`] maps a file and reads its description into one [`Index`]:
//! metadata, tensors with their places, tokenizer, chat template. Nothing in it is
//! trusted: each count, length and place is held against a named limit in
//! [`limits`] and against the file's length before it is used, so whoever holds an
//! `Index` may slice without checking again.
//!
//! This crate deliberately computes nothing with weights, does not know any
//! architecture, and does not join split files or read formats other than GGUF;
//! those it refuses by name.
//!
//! Start with [`ModelFile`], then the pure reader [`gguf::parse`].
#![deny(unsafe_code)] // The one exception is `map.rs`.

mod error;
pub mod gguf;
mod index;
pub mod limits;
mod map;
mod metadata;
mod shown;
mod sniff;
mod tokenizer_spec;

use std::path::{Path, PathBuf};

pub use error::{Needed, OpenError, ParseError, Refusal};
pub use index::{Format, Index, Layout, TensorInfo};
pub use metadata::{Metadata, MetadataError, Value, ValueKind};
pub use sniff::LooksLike;
pub use tokenizer_spec::{TokenType, TokenizerSpec};

use map::Map;

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
    map: Map,
}

impl ModelFile {
    /// Opens a model file of any format in the table, at any path that the system takes.
    ///
    /// # Errors
    /// The file cannot be read, is not a model file, is incomplete or damaged, or
    /// is of a kind that this version does not read; the message says which.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let refuse = |reason: Refusal| OpenError {
            path: path.to_owned(),
            reason,
        };
        let map = Map::open(path).map_err(refuse)?;
        let index = parse(map.bytes(), map.len()).map_err(|e| refuse(e.into()))?;
        // The length that the index was held against must still be true: a download
        // may be running.
        map.check_length().map_err(refuse)?;
        Ok(Self {
            path: path.to_owned(),
            index,
            map,
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
        &self.map.bytes()[tensor.byte_range()]
    }

    /// Tells the system that a tensor's pages in memory are not needed now; they
    /// are read from the file again when touched.
    pub fn release(&self, tensor: &TensorInfo) {
        self.map.release(tensor.byte_range());
    }

    /// Asks again for the length of the file.
    ///
    /// # Errors
    /// The file has been made shorter since it was opened.
    pub fn check_length(&self) -> Result<(), OpenError> {
        let refuse = |reason| OpenError {
            path: self.path.clone(),
            reason,
        };
        self.map.check_length().map_err(refuse)
    }
}

/// A model file format: how it begins and how it is read.
struct FormatEntry {
    magic: &'static [u8],
    parse: fn(&[u8], u64) -> Result<Index, ParseError>,
}

/// All formats that this version reads.
const FORMATS: &[FormatEntry] = &[FormatEntry {
    magic: gguf::MAGIC,
    parse: gguf::parse,
}];

/// Reads the description out of the bytes of a whole file, in whichever format.
fn parse(bytes: &[u8], file_len: u64) -> Result<Index, ParseError> {
    for format in FORMATS {
        if bytes.starts_with(format.magic) {
            return (format.parse)(bytes, file_len);
        }
        if format.magic.starts_with(bytes) && !bytes.is_empty() {
            let needed = Needed::AtLeast(gguf::HEADER_BYTES);
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
