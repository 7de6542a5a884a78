//! Text on its way to the tokenizer, with the places where control tokens are not allowed.

use std::ops::Range;

/// Text for [`crate::Tokenizer::encode`] and the byte ranges in which it must not find a control
/// token.
///
/// A control token that overlaps a literal range in any byte is read as ordinary text. The ranges
/// do not cut the text: merges run across their borders, so a literal spelling gets the ids it
/// would have in a text without control tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prompt {
    /// The text.
    pub text: String,
    /// Byte ranges of `text`, sorted and not overlapping.
    pub literals: Vec<Range<usize>>,
}

impl Prompt {
    /// Text that a person typed: nothing in it is a control token.
    pub fn typed(text: impl Into<String>) -> Self {
        let mut prompt = Self::markup(text);
        prompt.add_literal(0..prompt.text.len());
        prompt
    }

    /// Text in which control tokens are recognised everywhere.
    pub fn markup(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            literals: Vec::new(),
        }
    }

    /// Appends text in which control tokens are recognised.
    pub fn push_markup(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Appends text that a person typed.
    pub fn push_typed(&mut self, text: &str) {
        let start = self.text.len();
        self.text.push_str(text);
        self.add_literal(start..self.text.len());
    }

    /// Makes a byte range literal; it may begin no earlier than the last one did.
    pub(crate) fn add_literal(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        match self.literals.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => self.literals.push(range),
        }
    }

    /// Whether any byte of the range is literal.
    pub fn is_literal(&self, range: &Range<usize>) -> bool {
        let next = self
            .literals
            .partition_point(|literal| literal.end <= range.start);
        self.literals
            .get(next)
            .is_some_and(|literal| literal.start < range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one_and_overlap_is_seen_at_every_edge() {
        let mut prompt = Prompt::markup("ab");
        prompt.push_typed("cd");
        prompt.push_typed("");
        prompt.push_typed("ef");
        prompt.push_markup("gh");
        prompt.push_typed("i");
        assert_eq!(prompt.text, "abcdefghi");
        assert_eq!(prompt.literals, vec![2..6, 8..9]);
        let cases = [
            (0..2, false),
            (0..3, true),
            (5..8, true),
            (6..8, false),
            (7..9, true),
        ];
        for (range, expected) in cases {
            assert_eq!(prompt.is_literal(&range), expected, "{range:?}");
        }
        assert_eq!(Prompt::typed("").literals, Vec::<Range<usize>>::new());
        assert!(Prompt::typed("x").is_literal(&(0..1)));
        assert!(!Prompt::markup("x").is_literal(&(0..1)));
    }
}
