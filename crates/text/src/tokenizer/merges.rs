//! The library's merges, from the lists of the file.

use std::collections::HashSet;

use candor_modelfile::{TokenType, TokenizerSpec};
use tokenizers::Model;
use tokenizers::models::bpe::{BPE, BpeBuilder, Vocab};

use super::TokenizerError;

/// The tokens that ordinary text can become. Control tokens are not among them, so that no text
/// can merge into one, whatever the file's merge list says.
pub(super) fn vocab(spec: &TokenizerSpec, kinds: &[TokenType]) -> Vocab {
    (0..)
        .zip(&spec.tokens)
        .zip(kinds)
        .filter(|(_, kind)| !matches!(kind, TokenType::Control | TokenType::Unknown))
        .map(|((id, token), _)| (token.clone(), id))
        .collect()
}

/// Merging by the ranks of the file's list.
pub(super) struct Merges(BPE);

impl Merges {
    /// Merges within a vocabulary, with further choices of the library.
    pub(super) fn new(
        vocab: Vocab,
        merges: &[String],
        choices: impl FnOnce(BpeBuilder) -> BpeBuilder,
    ) -> Result<Self, TokenizerError> {
        let merges = merges_within(merges, &vocab)?;
        // The library's cache belongs to the thread, outlives the model and is never freed.
        let builder = BPE::builder()
            .vocab_and_merges(vocab, merges)
            .cache_capacity(0);
        choices(builder).build().map(Self).map_err(refused)
    }

    /// The id of a token, if it is one that text can become.
    pub(super) fn id(&self, token: &str) -> Option<u32> {
        self.0.token_to_id(token)
    }

    /// Appends the ids of a word, as it is spelled in the vocabulary.
    pub(super) fn encode(&self, word: &str, ids: &mut Vec<u32>) -> Result<(), TokenizerError> {
        let tokens = self.0.tokenize(word).map_err(refused)?;
        ids.extend(tokens.iter().map(|token| token.id));
        Ok(())
    }
}

fn refused(error: tokenizers::Error) -> TokenizerError {
    TokenizerError::Library {
        message: error.to_string(),
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
