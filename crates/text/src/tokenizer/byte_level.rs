//! Byte-level byte-pair encoding ("gpt2"): own word splitting, the library's merges.

use candor_modelfile::{TokenType, TokenizerSpec};

use super::TokenizerError;
use super::bytes::ByteLetters;
use super::merges::{self, Merges};
use super::split::{Scheme, WholeWords};

/// Byte-level merges inside the words of one scheme.
pub(super) struct ByteLevel {
    scheme: &'static Scheme,
    letters: ByteLetters,
    /// Which bytes have a token. The library drops a character without one and says nothing.
    has_token: [bool; 256],
    merges: Merges,
}

impl ByteLevel {
    /// Builds the merges of the file.
    pub(super) fn new(
        spec: &TokenizerSpec,
        scheme: &'static Scheme,
        kinds: &[TokenType],
    ) -> Result<Self, TokenizerError> {
        let letters = ByteLetters::new();
        let vocab = merges::vocab(spec, kinds);
        let mut has_token = [false; 256];
        for byte in 0..=u8::MAX {
            let letter = letters.letter(byte);
            has_token[usize::from(byte)] = vocab.contains_key(letter.encode_utf8(&mut [0; 4]));
        }
        let merges = Merges::new(vocab, &spec.merges, |library| {
            library.ignore_merges(scheme.whole_words == WholeWords::Taken)
        })?;
        Ok(Self {
            scheme,
            letters,
            has_token,
            merges,
        })
    }

    /// Whether a text gets a begin token where the file says nothing about it.
    pub(super) fn adds_bos_by_default(&self) -> bool {
        self.scheme.add_bos
    }

    /// Appends the ids of a text.
    pub(super) fn encode(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), TokenizerError> {
        let mut spelled = String::new();
        self.scheme.split(text, &mut |word| {
            spelled.clear();
            for byte in word.bytes() {
                if !self.has_token[usize::from(byte)] {
                    return Err(TokenizerError::NoTokenForByte { byte });
                }
                spelled.push(self.letters.letter(byte));
            }
            self.merges.encode(&spelled, ids)
        })
    }
}
