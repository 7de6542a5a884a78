//! What every format is read into.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use candor_quant::QuantType;

use crate::error::ParseError;
use crate::metadata::Metadata;
use crate::shown::{Shown, size};
use crate::tokenizer_spec::TokenizerSpec;

/// A model file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// GGUF, the format of ggml.
    Gguf,
    /// APR, the format of aprender.
    Apr,
}

impl Format {
    /// The format's name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gguf => "gguf",
            Self::Apr => "apr",
        }
    }
}

/// Something doubtful or costly about a file that can be used all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The file states another rotation than its rows are made for.
    RopeType {
        /// What it states.
        stated: u64,
    },
    /// The file states another family than its tensors are of.
    Family {
        /// What it states.
        stated: String,
        /// What its tensors are of.
        read_as: &'static str,
    },
    /// The trained context length is not in the file.
    Context {
        /// What is taken for it.
        assumed: u64,
    },
    /// Tensors that take more memory than they have bytes in the file.
    Unpacked {
        /// How many.
        tensors: usize,
        /// The memory.
        bytes: u64,
    },
    /// The rule that splits text is not in the file, so text cannot be read.
    NoSplitRule,
    /// The scores of a SentencePiece vocabulary are not in the file.
    NoScores,
    /// A converter made numbers up, and a person stated some of the true ones.
    Stamped,
    /// A fact that a person stated.
    Told {
        /// Its canonical key.
        key: &'static str,
        /// What was stated.
        value: String,
    },
    /// There is no vocabulary, neither in the file nor beside it.
    NoTokenizer,
    /// The vocabulary beside the file is damaged, or its chain of steps is not one that is read.
    SidecarUnusable,
    /// The vocabulary beside the file is not of a kind that is read.
    SidecarKind {
        /// Its kind, such as `WordPiece`.
        found: String,
    },
    /// A file beside the model, which says how text is read, was left aside.
    SidecarUnread {
        /// The file's name.
        file: String,
        /// Why it could not be read.
        reason: String,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RopeType { stated } => {
                write!(f, "the file's rope_type {stated} is wrong for its tensors and is ignored")
            }
            Self::Family { stated, read_as } => {
                let stated = Shown(stated);
                write!(f, "the file says {stated}, but its tensors are those of {read_as}")
            }
            Self::Context { assumed } => {
                write!(f, "the trained context length is not in the file; {assumed} is assumed")
            }
            Self::Unpacked { tensors, bytes } => {
                let bytes = size(*bytes);
                write!(f, "{tensors} tensors are laid out anew, which takes {bytes} of memory")
            }
            Self::NoSplitRule => f.write_str(
                "the file does not name the rule that splits text into words, so it cannot read text",
            ),
            Self::NoScores => f.write_str(
                "the scores of the vocabulary are not in the file; the order of its tokens is used",
            ),
            Self::Stamped => f.write_str(
                "the converter that made this file wrote numbers into it without knowing them; \
                 those that you did not state may be wrong",
            ),
            Self::Told { key, value } => write!(f, "{key} is {value}, told by you"),
            Self::NoTokenizer => f.write_str("there is no vocabulary, so text cannot be read"),
            Self::SidecarUnusable => {
                f.write_str("the tokenizer.json beside the file is not of a kind that is read")
            }
            Self::SidecarKind { found } => {
                let found = Shown(found);
                write!(f, "the tokenizer.json beside the file holds a {found} vocabulary, which is not read")
            }
            Self::SidecarUnread { file, reason } => {
                let (file, reason) = (Shown(file), Shown(reason));
                write!(f, "{file} beside the file was left aside: {reason}")
            }
        }
    }
}

/// How the values of a tensor lie in its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// Row after row, each of whole blocks.
    Rows,
}

/// One tensor of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorInfo {
    /// Its canonical name, which is GGUF's (`blk.0.attn_q.weight`).
    pub name: String,
    /// Its dimensions, outermost first: rows, then columns. At least one, none zero.
    pub dims: Vec<usize>,
    /// Its storage type.
    pub quant: &'static QuantType,
    /// Its bytes in the model, counted through all of its files one after the other; they
    /// lie within one of them and have the size that dimensions and type ask for.
    pub range: Range<u64>,
    /// How its values lie in these bytes.
    pub layout: Layout,
}

impl TensorInfo {
    /// How many values it has.
    pub fn elems(&self) -> usize {
        self.dims.iter().product()
    }

    /// The values in a row: the innermost dimension.
    pub fn cols(&self) -> usize {
        self.dims.last().copied().unwrap_or(1)
    }

    /// The rows, over all outer dimensions.
    pub fn rows(&self) -> usize {
        self.dims[..self.dims.len().saturating_sub(1)]
            .iter()
            .product()
    }
}

/// The description of a model: everything in a file but the weights.
#[derive(Clone, Debug)]
pub struct Index {
    /// The file's format.
    pub format: Format,
    /// The format's version.
    pub version: u32,
    /// The architecture's name as the file states it.
    pub architecture: String,
    /// All entries, in file order.
    pub metadata: Metadata,
    /// All tensors, in file order. A file with only a vocabulary has none.
    pub tensors: Vec<TensorInfo>,
    /// The vocabulary; `None` if the file has none.
    pub tokenizer: Option<TokenizerSpec>,
    /// The chat template's text; `None` if the file has none.
    pub chat_template: Option<String>,
    /// Bytes of the file, or of all parts of a split model.
    pub file_bytes: u64,
    /// Bytes of memory for tensors that have to be laid out anew; they are taken when these
    /// tensors are first used, and their places stand behind those of the file.
    pub unpacked_bytes: u64,
    /// What a person should know about this file before trusting it.
    pub notes: Vec<Note>,
    by_name: HashMap<String, usize>,
}

impl Index {
    /// An index without tokenizer and template.
    ///
    /// # Errors
    /// Two tensors have one name.
    pub fn new(
        architecture: String,
        metadata: Metadata,
        tensors: Vec<TensorInfo>,
    ) -> Result<Self, ParseError> {
        let mut by_name = HashMap::with_capacity(tensors.len());
        for (i, tensor) in tensors.iter().enumerate() {
            if by_name.insert(tensor.name.clone(), i).is_some() {
                return Err(ParseError::DuplicateTensor {
                    tensor: tensor.name.clone(),
                });
            }
        }
        Ok(Self {
            format: Format::Gguf,
            version: 3,
            architecture,
            metadata,
            file_bytes: tensors.iter().map(|t| t.range.end).max().unwrap_or(0),
            tensors,
            tokenizer: None,
            chat_template: None,
            unpacked_bytes: 0,
            notes: Vec::new(),
            by_name,
        })
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.by_name.get(name).map(|i| &self.tensors[*i])
    }
}
