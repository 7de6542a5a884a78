//! Cutting text into the words inside which byte-level merges happen.
//!
//! Every published vocabulary comes with regular expressions for this. They use look-ahead, and
//! an engine for them gives up on long runs of spaces; these scanners read the same language in
//! one pass over the text and cannot give up. The expression of each stage stands above its
//! scanner.

mod schemes;
mod stages;
mod words;

use schemes::SCHEMES;
use stages::Stage;

/// How one family of vocabularies cuts text.
#[derive(Debug)]
pub(super) struct Scheme {
    /// Values of `tokenizer.ggml.pre` that mean this scheme.
    names: &'static [&'static str],
    /// Applied one after the other, each to the parts that the one before left.
    stages: &'static [Stage],
    /// Whether a word that is a token as a whole is taken without merging.
    pub(super) whole_words: WholeWords,
    /// Whether a begin-of-sequence token is added where the file says nothing about it.
    pub(super) add_bos: bool,
}

/// What happens to a word that is in the vocabulary as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WholeWords {
    /// Merges decide, as for any other word.
    Merged,
    /// It is that token.
    Taken,
}

impl Scheme {
    /// The scheme that a file's pre-tokenizer name stands for. Without a name, or with an
    /// empty one, it is "default".
    pub(super) fn by_name(name: Option<&str>) -> Option<&'static Self> {
        let name = name.filter(|name| !name.is_empty()).unwrap_or("default");
        SCHEMES.iter().find(|scheme| scheme.names.contains(&name))
    }

    /// Calls `word` for every word of the text, in order; joined they are the text.
    pub(super) fn split<'t, E>(
        &self,
        text: &'t str,
        word: &mut dyn FnMut(&'t str) -> Result<(), E>,
    ) -> Result<(), E> {
        split_by(self.stages, text, word)
    }
}

fn split_by<'t, E>(
    stages: &[Stage],
    text: &'t str,
    word: &mut dyn FnMut(&'t str) -> Result<(), E>,
) -> Result<(), E> {
    let Some((stage, later)) = stages.split_first() else {
        return word(text);
    };
    let mut rest = text;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(stage.first_part(rest));
        split_by(later, part, word)?;
        rest = after;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
