//! Where control tokens are spelled out in a text.

use std::ops::Range;

use aho_corasick::AhoCorasick;

/// The spellings of a vocabulary's control tokens, ready to be searched for.
#[derive(Debug, Clone, Default)]
pub struct ControlSpellings {
    spellings: Vec<String>,
    /// Absent when there are no spellings.
    finder: Option<AhoCorasick>,
}

impl ControlSpellings {
    /// Spellings to look for; empty ones are left out.
    ///
    /// Returns `None` if together they are too many to be searched for.
    pub fn new(spellings: impl IntoIterator<Item = String>) -> Option<Self> {
        let spellings: Vec<String> = spellings
            .into_iter()
            .filter(|spelling| !spelling.is_empty())
            .collect();
        if spellings.is_empty() {
            return Some(Self::default());
        }
        let finder = AhoCorasick::new(&spellings).ok()?;
        Some(Self {
            spellings,
            finder: Some(finder),
        })
    }

    /// Whether a token is spelled like this.
    pub fn contains(&self, spelling: &str) -> bool {
        self.spellings.iter().any(|known| known == spelling)
    }

    /// Every place where a spelling occurs, overlapping ones too, in the order of their ends.
    pub(crate) fn find<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Found> + 't {
        self.finder.iter().flat_map(move |finder| {
            finder.find_overlapping_iter(text).map(|hit| Found {
                spelling: hit.pattern().as_usize(),
                range: hit.range(),
            })
        })
    }

    /// Whether the text ends with a beginning of some spelling (but not with all of it).
    pub(crate) fn may_begin_at_end_of(&self, text: &str) -> bool {
        self.spellings
            .iter()
            .any(|spelling| boundaries(spelling).any(|at| text.ends_with(&spelling[..at])))
    }

    /// Whether the text begins with an end of some spelling (but not with all of it).
    pub(crate) fn may_end_at_start_of(&self, text: &str) -> bool {
        self.spellings
            .iter()
            .any(|spelling| boundaries(spelling).any(|at| text.starts_with(&spelling[at..])))
    }
}

/// The character borders inside a spelling.
fn boundaries(spelling: &str) -> impl Iterator<Item = usize> + '_ {
    spelling.char_indices().map(|(at, _)| at).skip(1)
}

/// One place where a spelling occurs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Place of the spelling in the list.
    pub(crate) spelling: usize,
    /// Byte range in the text.
    pub(crate) range: Range<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_spellings_and_broken_ends_are_found() {
        let names = ["<a>", "a><b>", "", "é"].map(String::from);
        let controls = ControlSpellings::new(names).unwrap();
        let ranges: Vec<_> = controls.find("x<a><b>é").map(|found| found.range).collect();
        assert_eq!(ranges, vec![1..4, 2..7, 7..9]);
        assert!(controls.contains("é") && !controls.contains(""));
        let ends = [
            ("x<", true),
            ("x<a", true),
            ("x<a>b", false),
            ("a><", true),
            ("", false),
        ];
        for (text, expected) in ends {
            assert_eq!(controls.may_begin_at_end_of(text), expected, "{text:?}");
        }
        let starts = [
            (">", true),
            ("a>x", true),
            ("<a>", false),
            ("b>", true),
            ("x", false),
        ];
        for (text, expected) in starts {
            assert_eq!(controls.may_end_at_start_of(text), expected, "{text:?}");
        }
        let none = ControlSpellings::new([]).unwrap();
        assert_eq!(none.find("<a>").count(), 0);
    }
}
