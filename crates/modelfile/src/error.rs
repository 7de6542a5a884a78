//! Why a file is not opened: typed, and in words for a person.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::apr::JsonError;
use crate::assumed::AssumedError;
use crate::metadata::MetadataError;
use crate::shown::{Shown, size, sizes};
use crate::sniff::LooksLike;

/// A file was not opened.
#[derive(Debug, Error)]
#[error("{}: {reason}", self.file_name())]
pub struct OpenError {
    /// The path as it was given.
    pub path: PathBuf,
    /// What is wrong.
    #[source]
    pub reason: Refusal,
}

impl OpenError {
    /// The file's name for a message; bytes that are not text appear as `�`.
    pub fn file_name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// What a person can do about it, where there is something.
    pub fn advice(&self) -> Option<&'static str> {
        self.reason.advice()
    }
}

/// What is wrong with a file, or with the way to it.
#[derive(Debug, Error)]
pub enum Refusal {
    /// There is nothing at this path.
    #[error("there is no such file")]
    NotFound,
    /// The path names a folder.
    #[error("this is a folder, not a model file")]
    IsDirectory,
    /// The path names a pipe, a device or the like.
    #[error("this is not an ordinary file")]
    NotAFile,
    /// The system does not let us read it.
    #[error("there is no permission to read it")]
    NoPermission,
    /// The file has no bytes.
    #[error("the file is empty (0 bytes), probably an incomplete download")]
    Empty,
    /// It became shorter while it was open.
    #[error(
        "the file was made shorter while it was open: it has {} of {}",
        sizes(*.found, *.needed).0, sizes(*.found, *.needed).1
    )]
    Shrunk {
        /// Bytes now.
        found: u64,
        /// Bytes when it was opened.
        needed: u64,
    },
    /// A part of a split model is not beside the others.
    #[error(
        "this part ({part} of {parts}) of the split model is missing; \
         all {parts} parts have to be in one folder"
    )]
    PartMissing {
        /// Which part, from 1.
        part: u64,
        /// How many there are.
        parts: u64,
    },
    /// Parts of different models, or in a wrong order.
    #[error("the parts of this split model do not belong together: in `{}`, {why}", Shown(.part))]
    PartsDiffer {
        /// The name of the file that differs.
        part: String,
        /// In what.
        why: PartsDifference,
    },
    /// A part of a split model whose name does not lead to the others.
    #[error(
        "this is part {part} of {parts} of a split model, but its name does not end \
         in `-{part:05}-of-{parts:05}.gguf`, so the other parts cannot be found"
    )]
    PartName {
        /// Which part, from 1.
        part: u64,
        /// How many there are.
        parts: u64,
    },
    /// A piece of a file that was cut anywhere, to be joined before it is used.
    #[error(
        "this is a piece of a file that was cut into several; join them in their order, \
         for example with `{command}`"
    )]
    Piece {
        /// A command line that joins them.
        command: String,
    },
    /// The system failed to read it.
    #[error("the file could not be read: {0}")]
    Io(#[source] io::Error),
    /// A fact that a person stated is none of this file.
    #[error(transparent)]
    Assumed(#[from] AssumedError),
    /// Its content is not what it has to be.
    #[error(transparent)]
    Parse(#[from] ParseError),
}

impl Refusal {
    fn advice(&self) -> Option<&'static str> {
        match self {
            Self::NotFound => Some("check whether the file was moved or its drive is connected"),
            Self::IsDirectory => Some("open the .gguf file inside the folder"),
            Self::NoPermission => Some("allow your user to read the file"),
            Self::Empty | Self::Shrunk { .. } => Some("download the file again"),
            Self::Parse(error) => error.advice(),
            Self::PartMissing { .. } => Some("download the missing part into the same folder"),
            Self::PartsDiffer { .. } => Some("download all parts of one model into one folder"),
            Self::PartName { .. } => Some("give the parts their original names again"),
            Self::Piece { .. } => Some("join the pieces, then open the joined file"),
            Self::NotAFile | Self::Io(_) | Self::Assumed(_) => None,
        }
    }

    /// The refusal for a failed system call.
    pub(crate) fn from_io(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NotFound,
            io::ErrorKind::PermissionDenied => Self::NoPermission,
            io::ErrorKind::IsADirectory => Self::IsDirectory,
            _ => Self::Io(error),
        }
    }
}

/// In what parts of a split model do not belong together.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PartsDifference {
    /// One of them is no part.
    #[error("it is a whole model")]
    Whole,
    /// It has another number than its name says.
    #[error("it says that it is part {part} of {parts}")]
    Number {
        /// Which part it says that it is, from 1.
        part: u64,
        /// Of how many.
        parts: u64,
    },
    /// It is of a model with another number of tensors.
    #[error("it counts other tensors")]
    Tensors,
    /// It says something else than the first part.
    #[error("its entry `{}` is another one", Shown(.key))]
    Entry {
        /// The entry.
        key: String,
    },
    /// All together have more or fewer tensors than they say.
    #[error("they have {found} tensors together, not {expected}")]
    Count {
        /// Those that are there.
        found: u64,
        /// Those that the parts speak of.
        expected: u64,
    },
    /// Another part has the same tensor.
    #[error("it repeats the tensor `{}`", Shown(.tensor))]
    Repeats {
        /// The tensor.
        tensor: String,
    },
}

/// How many bytes a file would need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    /// The file says where it ends.
    Exactly(u64),
    /// It stops before it says so.
    AtLeast(u64),
}

impl Needed {
    fn bytes(self) -> u64 {
        match self {
            Self::Exactly(bytes) | Self::AtLeast(bytes) => bytes,
        }
    }
}

/// Why an APR file is not used.
#[derive(Debug, Error)]
pub enum AprError {
    /// Another version of the format.
    #[error("this is an APR file of version {found}; version 2 is read")]
    Version {
        /// The version in the file.
        found: u8,
    },
    /// The content is packed.
    #[error("this APR file is compressed, which is not read")]
    Compressed,
    /// The content is encrypted.
    #[error("this APR file is encrypted")]
    Encrypted,
    /// Matrices are stored column after column.
    #[error("the matrices of this APR file are stored by columns, which is not read")]
    ColumnMajor,
    /// The header was changed after it was written.
    #[error("the file is damaged: its header does not have the checksum that it states")]
    HeaderChecksum,
    /// Parts of the file overlap or are in a wrong order.
    #[error("the file is damaged: the parts that its header states do not fit together")]
    Sections,
    /// The metadata cannot be read.
    #[error("the file is damaged: {0}")]
    Json(#[from] JsonError),
    /// A code and a size that belong to no type.
    #[error(
        "the tensor `{}` has {size} bytes for {elems} values, which fits no storage type \
         with the code {code} that the file states", Shown(.tensor)
    )]
    Storage {
        /// The tensor.
        tensor: String,
        /// The code in the file.
        code: u8,
        /// Its bytes.
        size: u64,
        /// Its values.
        elems: usize,
    },
    /// A family whose parameters these files do not state.
    #[error(
        "it is a model of the family {}, of which APR files do not state all that is needed",
        Shown(.name)
    )]
    Family {
        /// The family in the file.
        name: String,
    },
    /// Something that nothing else in the file tells.
    #[error("the file does not state its {what}, and nothing else in it tells")]
    Missing {
        /// The entry.
        what: &'static str,
    },
    /// A number that the tensors contradict.
    #[error("the file says that its {what} is {stated}, which does not fit its tensors")]
    Shapes {
        /// The entry.
        what: &'static str,
        /// The number in the file.
        stated: usize,
    },
    /// A file that claims to be a qwen2.
    #[error(
        "the file says that it is a qwen2, but a qwen2 has biases on Q, K and V and this file \
         has none; what else it says cannot be trusted either"
    )]
    NotQwen2,
    /// Numbers that a converter made up.
    #[error(
        "the converter that made this file wrote head counts and other numbers into it without \
         knowing them, and nothing in the file tells the true ones"
    )]
    Stamped,
    /// Experts in tensors of their own, of which some are missing or unlike the others.
    #[error("the experts of `{}` are not all there, or not all alike", Shown(.tensor))]
    LooseExperts {
        /// The stack that they would be.
        tensor: String,
    },
    /// Rows of Q or K that would have to be reordered and cannot be.
    #[error("the rows of the tensor `{}` are in an order that is not read", Shown(.tensor))]
    Halves {
        /// The tensor.
        tensor: String,
    },
}

/// Why bytes are not the description of a model.
#[derive(Debug, Error)]
pub enum ParseError {
    /// They are something else.
    #[error("this is not a GGUF or APR model file: {looks_like}")]
    NotAModel {
        /// What they seem to be.
        looks_like: LooksLike,
    },
    /// The file ends too early.
    #[error("{}", truncated(*.found, *.needed))]
    Truncated {
        /// Bytes that the file has.
        found: u64,
        /// Bytes that it needs.
        needed: Needed,
    },
    /// Numbers are stored in the byte order of other machines.
    #[error(
        "this is a big-endian GGUF file, made for another kind of machine; \
         only little-endian files are read"
    )]
    BigEndian,
    /// A version of the format that is too old or too new.
    #[error("this is GGUF version {found}; versions 2 and 3 are read")]
    UnsupportedVersion {
        /// The version in the file.
        found: u32,
    },
    /// A number is beyond anything that a real file holds.
    #[error("the file is damaged: it states {found} {what}, more than the limit of {limit}")]
    LimitExceeded {
        /// What is counted.
        what: &'static str,
        /// The number in the file.
        found: u64,
        /// The largest number that is accepted.
        limit: u64,
    },
    /// One part of a model that was split into several files, where a whole one is needed.
    #[error("this is only part {part} of {parts} of a split model")]
    Split {
        /// Which part, from 1.
        part: u64,
        /// How many there are.
        parts: u64,
    },
    /// An APR file that is not used.
    #[error(transparent)]
    Apr(#[from] AprError),
    /// A metadata entry is missing, or not what it has to be.
    #[error("its description is not usable: {0}")]
    Metadata(#[from] MetadataError),
    /// A value type that the format does not have.
    #[error("the file is damaged: the entry `{}` has the unknown value type {found}", Shown(.key))]
    UnknownValueType {
        /// The entry.
        key: String,
        /// The type number in the file.
        found: u32,
    },
    /// An array of arrays.
    #[error("the entry `{}` is an array of arrays, which is not read", Shown(.key))]
    NestedArray {
        /// The entry.
        key: String,
    },
    /// Bytes that have to be text and are not UTF-8.
    #[error("the file is damaged: {what} is not valid text (at byte {at})")]
    NotText {
        /// What the bytes belong to.
        what: &'static str,
        /// Where they begin in the file.
        at: u64,
    },
    /// Two metadata entries of one name.
    #[error("the file is damaged: the entry `{}` is there twice", Shown(.key))]
    DuplicateKey {
        /// The entry.
        key: String,
    },
    /// Two tensors of one name.
    #[error("the file is damaged: the tensor `{}` is there twice", Shown(.tensor))]
    DuplicateTensor {
        /// The tensor.
        tensor: String,
    },
    /// An alignment that is no power of two, or too large.
    #[error(
        "the file is damaged: it states an alignment of {found}, \
         which is not a sensible power of two"
    )]
    BadAlignment {
        /// The alignment in the file.
        found: u64,
    },
    /// A shape with no or too many elements.
    #[error("the file is damaged: the tensor `{}` has the shape {dims:?}", Shown(.tensor))]
    BadShape {
        /// The tensor.
        tensor: String,
        /// Its dimensions as the file has them.
        dims: Vec<u64>,
    },
    /// A storage type that this version cannot compute with.
    #[error(
        "the tensor `{}` is stored as {}, which is not supported by this version",
        Shown(.tensor), type_name(*.name, *.id)
    )]
    UnsupportedType {
        /// The tensor.
        tensor: String,
        /// The type number in the file.
        id: u32,
        /// The type's name, if it is a known one.
        name: Option<&'static str>,
    },
    /// Rows that do not consist of whole blocks.
    #[error(
        "the file is damaged: the rows of the tensor `{}` have {row} values, \
         which is no multiple of the {block_elems} of a {quant} block", Shown(.tensor)
    )]
    PartialBlock {
        /// The tensor.
        tensor: String,
        /// The storage type.
        quant: &'static str,
        /// Values in a row.
        row: u64,
        /// Values in a block.
        block_elems: usize,
    },
    /// A tensor that does not start at a multiple of the alignment.
    #[error("the file is damaged: the tensor `{}` starts at {offset}, \
         off the alignment of {alignment}", Shown(.tensor))]
    Misaligned {
        /// The tensor.
        tensor: String,
        /// Its place in the data.
        offset: u64,
        /// The file's alignment.
        alignment: u64,
    },
    /// Two tensors in one place.
    #[error("the file is damaged: the tensors `{}` and `{}` \
         overlap", Shown(.first), Shown(.second))]
    Overlap {
        /// The one that starts first.
        first: String,
        /// The one that starts before the first ends.
        second: String,
    },
    /// A tensor that lies behind the end, in a file that is not just cut short.
    #[error(
        "the file is damaged: the tensor `{}` would end at byte {end}, \
         behind the end of the file ({})",
        Shown(.tensor), size(*.found)
    )]
    OutOfRange {
        /// The tensor.
        tensor: String,
        /// Where it would end.
        end: u64,
        /// Bytes that the file has.
        found: u64,
    },
}

impl ParseError {
    fn advice(&self) -> Option<&'static str> {
        match self {
            Self::NotAModel { looks_like } => Some(looks_like.advice()),
            Self::Truncated { .. } => Some("download the file again"),
            Self::Apr(AprError::HeaderChecksum | AprError::Json(_) | AprError::Sections) => {
                Some("download the file again")
            }
            Self::Apr(_) => Some("get the model as a GGUF file"),
            Self::BigEndian | Self::UnsupportedVersion { found: 0..=1 } => {
                Some("get a newly converted GGUF file of the model")
            }
            Self::UnsupportedVersion { .. } => Some("look for a newer version of Candor"),
            Self::Split { .. } => Some("open the model with all its parts in one folder"),
            Self::UnsupportedType { .. } => {
                Some("get the model in another storage type, such as Q4_K_M or Q8_0")
            }
            _ => {
                Some("the file is not what its maker meant; download it again, or get another one")
            }
        }
    }
}

impl From<JsonError> for ParseError {
    fn from(error: JsonError) -> Self {
        Self::Apr(AprError::Json(error))
    }
}

fn type_name(name: Option<&'static str>, id: u32) -> String {
    match name {
        Some(name) => format!("{name} (type {id})"),
        None => format!("an unknown type ({id})"),
    }
}

fn truncated(found: u64, needed: Needed) -> String {
    let (has, of) = sizes(found, needed.bytes());
    let least = match needed {
        Needed::Exactly(_) => "",
        Needed::AtLeast(_) => "at least ",
    };
    format!("the file is incomplete: it has {has} of {least}{of}, probably an incomplete download")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_become_plain_refusals() {
        let check = |kind: io::ErrorKind, words: &str| {
            let refusal = Refusal::from_io(kind.into());
            assert!(refusal.to_string().contains(words), "{refusal}");
        };
        check(io::ErrorKind::NotFound, "no such file");
        check(io::ErrorKind::PermissionDenied, "no permission");
        check(io::ErrorKind::IsADirectory, "a folder");
        check(io::ErrorKind::TimedOut, "could not be read: timed out");
    }
}
