//! Text to token ids and ids to bytes, from the vocabulary in the model file.

mod byte_level;
mod bytes;
mod character_level;
mod classes;
mod ends;
mod merges;
mod named;
mod pieces;
mod sentence_piece;
mod split;

use std::fmt;

use candor_modelfile::{CHARACTER_MERGES, TokenType, TokenizerSpec};
use thiserror::Error;

use crate::channels::ChannelMarks;
use crate::controls::ControlSpellings;
use crate::prompt::Prompt;

use byte_level::ByteLevel;
use character_level::CharacterLevel;
pub(crate) use ends::END_OF_TURN;
use ends::EndMarkers;
use named::{Named, NamedKind, NamedTokens, Part};
use pieces::{Pieces, Spelling};
use sentence_piece::SentencePiece;
use split::Scheme;

/// Longest text that is encoded, in bytes: far more than any context holds, and little enough
/// that the intermediate lists fit in memory.
pub const TEXT_BYTES_MAX: usize = 64 << 20;

/// Why a vocabulary cannot be used, or a text not be encoded with it.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum TokenizerError {
    /// The kind of vocabulary is not known.
    #[error("the tokenizer model {found:?} is not supported by this version")]
    UnknownModel {
        /// What the file says.
        found: String,
    },
    /// The rule for cutting text into words is not known. Guessing would give other ids.
    #[error("the pre-tokenizer {found:?} is not supported by this version")]
    UnknownPreTokenizer {
        /// What the file says.
        found: String,
    },
    /// There are no tokens.
    #[error("the vocabulary is empty")]
    Empty,
    /// The list of token types does not fit the vocabulary.
    #[error("the vocabulary has {expected} tokens but {found} token types")]
    TypeCount {
        /// Tokens in the vocabulary.
        expected: usize,
        /// Types in the file.
        found: usize,
    },
    /// A SentencePiece vocabulary merges by scores, and they are missing or too few.
    #[error("the vocabulary has {expected} tokens but {found} scores")]
    ScoreCount {
        /// Tokens in the vocabulary.
        expected: usize,
        /// Scores in the file.
        found: usize,
    },
    /// A merge is not two parts with a space between them.
    #[error("merge {index} is not two parts: {found:?}")]
    BadMerge {
        /// Its place in the list.
        index: usize,
        /// What it is.
        found: String,
    },
    /// There are too many special tokens to search for.
    #[error("the vocabulary has too many special tokens to search for: {count}")]
    TooManySpecials {
        /// How many.
        count: usize,
    },
    /// The text holds a byte for which the vocabulary has no token.
    #[error("the vocabulary has no token for the byte {byte:#04x}")]
    NoTokenForByte {
        /// The byte.
        byte: u8,
    },
    /// The text is too long.
    #[error("the text has {found} bytes; at most {TEXT_BYTES_MAX} can be encoded")]
    TextTooLong {
        /// Its length in bytes.
        found: usize,
    },
    /// The file has none.
    #[error("the file has no tokenizer")]
    Absent,
    /// The tokenizer library refused.
    #[error("the tokenizer library refused the vocabulary: {message}")]
    Library {
        /// Its words.
        message: String,
    },
}

/// Which tokens are put around an encoded text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// None.
    None,
    /// Begin and end tokens as the model file wants them.
    Model,
    /// For a rendered chat: the begin token as the model file wants it, but not a second one if
    /// the template wrote it already, and no end token.
    Chat,
}

/// Whether control tokens have a text of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// Control tokens are shown as they are spelled.
    Control,
    /// Control tokens have no text: what a reader of a reply sees.
    Text,
}

/// The kind of vocabulary of Gemma 4, by its name in GGUF files.
const GEMMA4: &str = "gemma4";

/// How text between named tokens becomes ids.
enum Merger {
    ByteLevel(Box<ByteLevel>),
    SentencePiece(Box<SentencePiece>),
    CharacterLevel(Box<CharacterLevel>),
    /// No text can be encoded, and why.
    None(TokenizerError),
}

/// A vocabulary, ready to encode and decode.
pub struct Tokenizer {
    pieces: Pieces,
    merger: Merger,
    named: NamedTokens,
    controls: ControlSpellings,
    end_ids: Vec<u32>,
    end_that_is_text: Option<u32>,
    channels: Option<ChannelMarks>,
    bos: Option<u32>,
    eos: Option<u32>,
    add_bos: bool,
    add_eos: bool,
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer")
            .field("vocab_len", &self.vocab_len())
            .finish_non_exhaustive()
    }
}

impl Tokenizer {
    /// Builds the tokenizer that a model file describes.
    ///
    /// # Errors
    /// If the kind of vocabulary or its word rule is not known, or its lists do not fit together.
    pub fn from_spec(spec: &TokenizerSpec) -> Result<Self, TokenizerError> {
        if spec.tokens.is_empty() {
            return Err(TokenizerError::Empty);
        }
        let markers = EndMarkers::of(spec);
        let kinds = kinds(spec, &markers)?;
        let (merger, spelling) = Merger::new(spec, &kinds)?;
        let named = named(spec, &kinds);
        let too_many = TokenizerError::TooManySpecials { count: named.len() };
        let spellings = named
            .iter()
            .filter(|token| token.kind == NamedKind::Control)
            .map(|token| token.spelling.clone());
        let controls = ControlSpellings::new(spellings).ok_or_else(|| too_many.clone())?;
        let in_vocabulary = |id: &u32| (*id as usize) < spec.tokens.len();
        Ok(Self {
            named: NamedTokens::new(named).ok_or(too_many)?,
            controls,
            end_ids: markers.ids(spec),
            end_that_is_text: ends::named_but_text(spec),
            channels: ChannelMarks::of(spec, &kinds),
            bos: spec.bos.filter(in_vocabulary),
            eos: spec.eos.filter(in_vocabulary),
            add_bos: merger.adds_bos(spec),
            add_eos: spec.add_eos.unwrap_or(false),
            pieces: Pieces::new(spec, kinds, spelling),
            merger,
        })
    }

    /// What is left of a vocabulary for token ids alone, where [`Self::from_spec`] refuses: tokens
    /// are shown and replies end as far as the file tells, and every text is refused with `reason`.
    pub fn ids_only(spec: Option<&TokenizerSpec>, reason: TokenizerError) -> Self {
        let empty = TokenizerSpec::default();
        let spec = spec.unwrap_or(&empty);
        let spelling = match spec.model.as_str() {
            "gpt2" => Spelling::ByteLetters,
            _ => Spelling::SpaceMarks,
        };
        let markers = EndMarkers::of(spec);
        let (kinds, spec) = match kinds(spec, &markers) {
            Ok(kinds) => (kinds, spec),
            // Lists that do not fit together tell nothing.
            Err(_) => (Vec::new(), &empty),
        };
        Self {
            named: NamedTokens::default(),
            controls: ControlSpellings::default(),
            end_ids: markers.ids(spec),
            end_that_is_text: None,
            channels: None,
            bos: None,
            eos: None,
            add_bos: false,
            add_eos: false,
            pieces: Pieces::new(spec, kinds, spelling),
            merger: Merger::None(reason),
        }
    }

    /// Why no text can be encoded, if so.
    pub fn refusal(&self) -> Option<&TokenizerError> {
        match &self.merger {
            Merger::None(reason) => Some(reason),
            _ => None,
        }
    }

    /// Encodes a prompt. No control token is matched inside its literal ranges.
    ///
    /// # Errors
    /// If the text is too long, or holds a byte that the vocabulary cannot express.
    pub fn encode(&self, prompt: &Prompt, ends: Ends) -> Result<Vec<u32>, TokenizerError> {
        if let Some(reason) = self.refusal() {
            return Err(reason.clone());
        }
        if prompt.text.len() > TEXT_BYTES_MAX {
            return Err(TokenizerError::TextTooLong {
                found: prompt.text.len(),
            });
        }
        let mut ids = Vec::new();
        for part in self.named.cut(prompt) {
            match part {
                Part::Token(id) => ids.push(id),
                Part::Text(range) => self.merger.encode(&prompt.text[range], &mut ids)?,
            }
        }
        let bos = self.bos.filter(|bos| match ends {
            Ends::None => false,
            Ends::Model => self.add_bos,
            Ends::Chat => self.add_bos && ids.first() != Some(bos),
        });
        if let Some(bos) = bos {
            ids.insert(0, bos);
        }
        ids.extend(self.eos.filter(|_| ends == Ends::Model && self.add_eos));
        Ok(ids)
    }

    /// The bytes of a token, possibly only part of a character. None for an id outside the
    /// vocabulary, and for a control token unless it is asked for.
    pub fn piece(&self, id: u32, show: Show) -> &[u8] {
        self.pieces.get(id, show)
    }

    /// Number of tokens in the vocabulary.
    pub fn vocab_len(&self) -> usize {
        self.pieces.len()
    }

    /// Whether this token ends a reply.
    pub fn is_end(&self, id: u32) -> bool {
        self.end_ids.binary_search(&id).is_ok()
    }

    /// The ids that end a reply, sorted.
    pub fn end_ids(&self) -> &[u32] {
        &self.end_ids
    }

    /// What the file names as an end although it is a word of ordinary text, if it does. It ends
    /// no reply.
    pub fn end_that_is_text(&self) -> Option<u32> {
        self.end_that_is_text
    }

    /// Whether this is a control token: one that typed text never becomes.
    pub fn is_control(&self, id: u32) -> bool {
        matches!(
            self.pieces.kind(id),
            Some(TokenType::Control | TokenType::Unknown)
        )
    }

    /// The begin-of-sequence token, if the file names one.
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// The end-of-sequence token, if the file names one.
    pub fn eos(&self) -> Option<u32> {
        self.eos
    }

    /// Whether the model wants a begin-of-sequence token in front of every text.
    pub fn adds_bos(&self) -> bool {
        self.add_bos
    }

    /// The tokens around the messages of a reply, if it has several.
    pub(crate) fn channel_marks(&self) -> Option<&ChannelMarks> {
        self.channels.as_ref()
    }

    /// How the control tokens are spelled; a chat template needs it to keep typed text apart.
    pub fn controls(&self) -> &ControlSpellings {
        &self.controls
    }

    /// How a token is spelled in a template, such as `<|im_end|>`; empty without the token.
    pub fn spelling(&self, id: Option<u32>) -> String {
        let bytes = id.map_or(&[][..], |id| self.piece(id, Show::Control));
        String::from_utf8_lossy(bytes).into_owned()
    }
}

impl Merger {
    fn new(spec: &TokenizerSpec, kinds: &[TokenType]) -> Result<(Self, Spelling), TokenizerError> {
        Ok(match spec.model.as_str() {
            "gpt2" => {
                let scheme = Scheme::by_name(spec.pre.as_deref()).ok_or_else(|| {
                    let found = spec.pre.clone().unwrap_or_default();
                    TokenizerError::UnknownPreTokenizer { found }
                })?;
                let merger = Box::new(ByteLevel::new(spec, scheme, kinds)?);
                (Self::ByteLevel(merger), Spelling::ByteLetters)
            }
            "llama" => {
                let merger = Box::new(SentencePiece::new(spec, kinds)?);
                (Self::SentencePiece(merger), Spelling::SpaceMarks)
            }
            GEMMA4 | CHARACTER_MERGES => {
                let merger = Box::new(CharacterLevel::new(spec, kinds)?);
                (Self::CharacterLevel(merger), Spelling::SpaceMarks)
            }
            other => {
                return Err(TokenizerError::UnknownModel {
                    found: other.to_owned(),
                });
            }
        })
    }

    /// Whether a text gets a begin token, by what the file says or does not say about it.
    fn adds_bos(&self, spec: &TokenizerSpec) -> bool {
        match self {
            // Early files of this family say no, and are wrong.
            Self::CharacterLevel(_) if spec.model == GEMMA4 => true,
            Self::CharacterLevel(_) => spec.add_bos.unwrap_or(false),
            Self::ByteLevel(merger) => spec.add_bos.unwrap_or(merger.adds_bos_by_default()),
            Self::SentencePiece(_) => spec.add_bos.unwrap_or(true),
            Self::None(_) => false,
        }
    }

    fn encode(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), TokenizerError> {
        match self {
            Self::ByteLevel(merger) => merger.encode(text, ids),
            Self::SentencePiece(merger) => merger.encode(text, ids),
            Self::CharacterLevel(merger) => merger.encode(text, ids),
            Self::None(reason) => Err(reason.clone()),
        }
    }
}

/// The type of every token: the file's, except that a known end-of-turn marker is always a
/// control token. Without types all others are ordinary.
fn kinds(spec: &TokenizerSpec, markers: &EndMarkers) -> Result<Vec<TokenType>, TokenizerError> {
    let (expected, found) = (spec.tokens.len(), spec.types.len());
    if found != 0 && found != expected {
        return Err(TokenizerError::TypeCount { expected, found });
    }
    let kind = |(index, token): (usize, &String)| match spec.types.get(index) {
        _ if markers.contain(token) => TokenType::Control,
        Some(&kind) => kind,
        None => TokenType::Normal,
    };
    Ok(spec.tokens.iter().enumerate().map(kind).collect())
}

/// The tokens that are matched by their spelling.
fn named(spec: &TokenizerSpec, kinds: &[TokenType]) -> Vec<Named> {
    let tokens = (0..).zip(&spec.tokens).zip(kinds);
    tokens
        .filter_map(|((id, token), kind)| {
            let kind = match kind {
                TokenType::Control | TokenType::Unknown => NamedKind::Control,
                TokenType::UserDefined => NamedKind::Text,
                _ => return None,
            };
            Some(Named {
                id,
                spelling: token.clone(),
                kind,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
