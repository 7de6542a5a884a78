//! Unicode character classes that splitting rules name and the standard library lacks.

use std::sync::LazyLock;

use regex_syntax::hir::{Class, HirKind};

/// Sorted, inclusive ranges of characters.
struct Ranges(Vec<(char, char)>);

impl Ranges {
    /// The ranges of one class, written as in a regular expression.
    fn of(pattern: &str) -> Self {
        let hir = regex_syntax::parse(pattern).expect("the pattern is one of the constants below");
        match hir.kind() {
            HirKind::Class(Class::Unicode(class)) => Self(
                class
                    .iter()
                    .map(|range| (range.start(), range.end()))
                    .collect(),
            ),
            kind => unreachable!("a Unicode property is a class, not {kind:?}"),
        }
    }

    fn contain(&self, c: char) -> bool {
        let next = self.0.partition_point(|&(_, end)| end < c);
        self.0.get(next).is_some_and(|&(start, _)| start <= c)
    }
}

static LETTERS: LazyLock<Ranges> = LazyLock::new(|| Ranges::of(r"\p{L}"));
static MARKS: LazyLock<Ranges> = LazyLock::new(|| Ranges::of(r"\p{M}"));
static PUNCTUATION: LazyLock<Ranges> = LazyLock::new(|| Ranges::of(r"\p{P}"));
static CASED: LazyLock<Ranges> = LazyLock::new(|| Ranges::of(r"[\p{Lu}\p{Ll}\p{Lt}]"));

/// `\p{L}`. (`char::is_alphabetic` is a wider class.)
pub(super) fn is_letter(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphabetic()
    } else {
        LETTERS.contain(c)
    }
}

/// `\p{M}`.
pub(super) fn is_mark(c: char) -> bool {
    !c.is_ascii() && MARKS.contain(c)
}

/// `\p{P}`. (ASCII punctuation also has symbols, which are another class.)
pub(super) fn is_punctuation(c: char) -> bool {
    PUNCTUATION.contain(c)
}

/// Letters of scripts with upper and lower case.
pub(super) fn is_cased(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphabetic()
    } else {
        CASED.contain(c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_unicode_says() {
        for (c, letter, mark, punctuation, cased) in [
            ('a', true, false, false, true),
            ('é', true, false, false, true),
            ('日', true, false, false, false),
            ('\u{301}', false, true, false, false),
            ('ि', false, true, false, false),
            ('Ⅳ', false, false, false, false),
            ('$', false, false, false, false),
            ('!', false, false, true, false),
            ('。', false, false, true, false),
            (' ', false, false, false, false),
            ('\u{10ffff}', false, false, false, false),
        ] {
            assert_eq!(is_letter(c), letter, "{c:?}");
            assert_eq!(is_mark(c), mark, "{c:?}");
            assert_eq!(is_punctuation(c), punctuation, "{c:?}");
            assert_eq!(is_cased(c), cased, "{c:?}");
        }
    }
}
