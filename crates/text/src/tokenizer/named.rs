//! Tokens that are found in a text by their spelling: control tokens and user-defined pieces.

use std::ops::Range;

use aho_corasick::AhoCorasick;

use crate::Prompt;

/// A token that is matched as a whole, before any merging.
#[derive(Debug, Clone)]
pub(super) struct Named {
    pub(super) id: u32,
    pub(super) spelling: String,
    pub(super) kind: NamedKind,
}

/// Where a named token may be matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamedKind {
    /// Only outside literal ranges.
    Control,
    /// Everywhere: it is text, of which the vocabulary has a whole piece.
    Text,
}

/// Part of a prompt after matching.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Token(u32),
    Text(Range<usize>),
}

/// All named tokens of a vocabulary, the longest first.
#[derive(Debug, Default)]
pub(super) struct NamedTokens {
    tokens: Vec<Named>,
    /// Tells in one pass which of possibly thousands occur. Absent when there are none.
    finder: Option<AhoCorasick>,
}

impl NamedTokens {
    /// Returns `None` if the spellings are too many to be searched for.
    pub(super) fn new(mut tokens: Vec<Named>) -> Option<Self> {
        tokens.retain(|token| !token.spelling.is_empty());
        // Stable: of two tokens with one spelling the first keeps it.
        tokens.sort_by_key(|token| std::cmp::Reverse(token.spelling.len()));
        if tokens.is_empty() {
            return Some(Self::default());
        }
        let finder = AhoCorasick::new(tokens.iter().map(|token| &token.spelling)).ok()?;
        Some(Self {
            tokens,
            finder: Some(finder),
        })
    }

    /// Cuts a prompt at its named tokens. Longer spellings win over shorter ones wherever they
    /// stand, and of one spelling the leftmost (the reference's order of matching).
    pub(super) fn cut(&self, prompt: &Prompt) -> Vec<Part> {
        if prompt.text.is_empty() {
            return Vec::new();
        }
        let mut parts = vec![Part::Text(0..prompt.text.len())];
        for token in self.occurring(&prompt.text) {
            let mut cut = Vec::with_capacity(parts.len());
            for part in parts {
                match part {
                    Part::Text(range) => token.cut(prompt, range, &mut cut),
                    Part::Token(_) => cut.push(part),
                }
            }
            parts = cut;
        }
        parts
    }

    fn occurring(&self, text: &str) -> impl Iterator<Item = &Named> {
        let mut occurs = vec![false; self.tokens.len()];
        if let Some(finder) = &self.finder {
            for hit in finder.find_overlapping_iter(text) {
                occurs[hit.pattern().as_usize()] = true;
            }
        }
        self.tokens
            .iter()
            .zip(occurs)
            .filter_map(|(token, occurs)| occurs.then_some(token))
    }
}

impl Named {
    /// Appends the parts of one range of text.
    fn cut(&self, prompt: &Prompt, range: Range<usize>, parts: &mut Vec<Part>) {
        let mut text_start = range.start;
        let mut at = range.start;
        while let Some(offset) = prompt.text[at..range.end].find(&self.spelling) {
            let start = at + offset;
            let end = start + self.spelling.len();
            if self.kind == NamedKind::Control && prompt.is_literal(&(start..end)) {
                at = start
                    + prompt.text[start..]
                        .chars()
                        .next()
                        .map_or(1, char::len_utf8);
                continue;
            }
            if text_start < start {
                parts.push(Part::Text(text_start..start));
            }
            parts.push(Part::Token(self.id));
            (text_start, at) = (end, end);
        }
        if text_start < range.end {
            parts.push(Part::Text(text_start..range.end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named() -> NamedTokens {
        let token = |id, spelling: &str, kind| Named {
            id,
            spelling: spelling.into(),
            kind,
        };
        NamedTokens::new(vec![
            token(1, "<e>", NamedKind::Control),
            token(2, "<e><e>", NamedKind::Control),
            token(3, "é", NamedKind::Control),
            token(4, "  ", NamedKind::Text),
            token(5, "", NamedKind::Control),
        ])
        .unwrap()
    }

    fn check(prompt: &Prompt, expected: &[Part]) {
        assert_eq!(named().cut(prompt), expected, "{prompt:?}");
    }

    #[test]
    fn control_tokens_are_found_outside_literal_ranges_only() {
        use Part::{Text, Token};
        check(&Prompt::markup(""), &[]);
        check(
            &Prompt::markup("a<e>b"),
            &[Text(0..1), Token(1), Text(4..5)],
        );
        check(&Prompt::markup("<e><e><e>"), &[Token(2), Token(1)]);
        check(
            &Prompt::typed("a<e>  é"),
            &[Text(0..4), Token(4), Text(6..8)],
        );
        let mut mixed = Prompt::markup("<e>");
        mixed.push_typed("<e>é");
        mixed.push_markup("<e>é");
        check(&mixed, &[Token(1), Text(3..8), Token(1), Token(3)]);
        let mut border = Prompt::markup("<");
        border.push_typed("e>");
        border.push_markup("<e>");
        check(&border, &[Text(0..3), Token(1)]);
    }
}
