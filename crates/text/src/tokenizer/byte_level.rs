//! Byte-level byte-pair encoding ("gpt2"): own word splitting, the library's merges.

use std::collections::HashSet;

use candor_modelfile::{TokenType, TokenizerSpec};
use tokenizers::Model;
use tokenizers::models::bpe::{BPE, Vocab};

use super::TokenizerError;
use super::bytes::ByteLetters;
use super::split::{Scheme, WholeWords};

/// Byte-level merges inside the words of one scheme.
pub(super) struct ByteLevel {
    scheme: &'static Scheme,
    letters: ByteLetters,
    /// Which bytes have a token. The library drops a character without one and says nothing.
    has_token: [bool; 256],
    model: BPE,
}

impl ByteLevel {
    /// Builds the merges of the file. Control tokens take no part in them, so that no ordinary
    /// text can merge into one, whatever the file's merge list says.
    pub(super) fn new(
        spec: &TokenizerSpec,
        scheme: &'static Scheme,
        kinds: &[TokenType],
    ) -> Result<Self, TokenizerError> {
        let letters = ByteLetters::new();
        let vocab: Vocab = (0..)
            .zip(&spec.tokens)
            .zip(kinds)
            .filter(|(_, kind)| !matches!(kind, TokenType::Control | TokenType::Unknown))
            .map(|((id, token), _)| (token.clone(), id))
            .collect();
        let mut has_token = [false; 256];
        for byte in 0..=u8::MAX {
            let letter = letters.letter(byte);
            has_token[usize::from(byte)] = vocab.contains_key(letter.encode_utf8(&mut [0; 4]));
        }
        let merges = merges_within(&spec.merges, &vocab)?;
        let model = BPE::builder()
            .vocab_and_merges(vocab, merges)
            // The library's cache belongs to the thread, outlives the model and is never freed.
            .cache_capacity(0)
            .ignore_merges(scheme.whole_words == WholeWords::Taken)
            .build()
            .map_err(|error| TokenizerError::Library {
                message: error.to_string(),
            })?;
        Ok(Self {
            scheme,
            letters,
            has_token,
            model,
        })
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
            let tokens =
                self.model
                    .tokenize(&spelled)
                    .map_err(|error| TokenizerError::Library {
                        message: error.to_string(),
                    })?;
            ids.extend(tokens.iter().map(|token| token.id));
            Ok(())
        })
    }
}

/// The merges whose parts and result are in the vocabulary, each once, at its first (strongest)
/// place. The library would refuse or crash on the others; they can never apply.
fn merges_within(
    merges: &[String],
    vocab: &Vocab,
) -> Result<Vec<(String, String)>, TokenizerError> {
    let mut seen = HashSet::with_capacity(merges.len());
    let mut within = Vec::with_capacity(merges.len());
    let mut joined = String::new();
    for (index, merge) in merges.iter().enumerate() {
        // A part is never empty but may itself be a space in odd vocabularies: look from 1 on.
        let space = merge
            .char_indices()
            .skip(1)
            .find(|&(_, c)| c == ' ')
            .map(|(at, _)| at);
        let Some((left, right)) = space.map(|at| (&merge[..at], &merge[at + 1..])) else {
            return Err(TokenizerError::BadMerge {
                index,
                found: merge.clone(),
            });
        };
        joined.clear();
        joined.push_str(left);
        joined.push_str(right);
        let known = [left, right, joined.as_str()]
            .iter()
            .all(|part| vocab.contains_key(*part));
        if known && seen.insert((left, right)) {
            within.push((left.to_owned(), right.to_owned()));
        }
    }
    Ok(within)
}
