//! The bytes that each token stands for.

use candor_modelfile::{TokenType, TokenizerSpec};

use super::Show;
use super::bytes::ByteLetters;
use super::sentence_piece::{SPACE, byte_of};

/// How ordinary tokens are spelled in the vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// One letter for each byte.
    ByteLetters,
    /// Text with a mark for the space.
    SpaceMarks,
}

/// Bytes and kind of every token, in one buffer.
pub(super) struct Pieces {
    bytes: Vec<u8>,
    /// Where each token's bytes end.
    ends: Vec<usize>,
    kinds: Vec<TokenType>,
}

impl Pieces {
    pub(super) fn new(spec: &TokenizerSpec, kinds: Vec<TokenType>, spelling: Spelling) -> Self {
        let letters = ByteLetters::new();
        let mut bytes = Vec::new();
        let mut ends = Vec::with_capacity(spec.tokens.len());
        for (token, kind) in spec.tokens.iter().zip(&kinds) {
            match (kind, spelling) {
                (TokenType::Control | TokenType::Unknown | TokenType::UserDefined, _) => {
                    bytes.extend_from_slice(token.as_bytes());
                }
                (TokenType::Unused, _) => {}
                (TokenType::Byte, _) => bytes.extend(byte_of(token)),
                (_, Spelling::ByteLetters) => push_letters(token, &letters, &mut bytes),
                (_, Spelling::SpaceMarks) => {
                    bytes.extend_from_slice(token.replace(SPACE, " ").as_bytes());
                }
            }
            ends.push(bytes.len());
        }
        Self { bytes, ends, kinds }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn kind(&self, id: u32) -> Option<TokenType> {
        self.kinds.get(id as usize).copied()
    }

    /// The bytes of a token; none for an id that is not in the vocabulary.
    pub(super) fn get(&self, id: u32, show: Show) -> &[u8] {
        let hidden = match self.kind(id) {
            None => true,
            Some(TokenType::Control | TokenType::Unknown) => show == Show::Text,
            Some(_) => false,
        };
        if hidden {
            return &[];
        }
        let index = id as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }
}

/// A letter that stands for no byte stands for itself.
fn push_letters(token: &str, letters: &ByteLetters, bytes: &mut Vec<u8>) {
    for letter in token.chars() {
        match letters.byte(letter) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}
