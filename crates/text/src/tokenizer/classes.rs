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
static SYMBOLS: LazyLock<Ranges> = LazyLock::new(|| Ranges::of(r"\p{S}"));
static UPPER: LazyLock<Ranges> = LazyLock::new(|| Ranges::of(r"[\p{Lu}\p{Lt}]"));
static LOWER: LazyLock<Ranges> = LazyLock::new(|| Ranges::of(r"\p{Ll}"));

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

/// `\p{S}`. (`char` knows the ASCII ones, mixed with punctuation.)
pub(super) fn is_unicode_symbol(c: char) -> bool {
    SYMBOLS.contain(c)
}

/// Capitals and title letters: `[\p{Lu}\p{Lt}]`. (`char::is_uppercase` is another class.)
pub(super) fn is_upper_only(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_uppercase()
    } else {
        UPPER.contain(c)
    }
}

/// Small letters: `\p{Ll}`. (`char::is_lowercase` is a wider class.)
pub(super) fn is_lower_only(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_lowercase()
    } else {
        LOWER.contain(c)
    }
}

/// Letters of scripts with upper and lower case.
pub(super) fn is_cased(c: char) -> bool {
    is_upper_only(c) || is_lower_only(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_unicode_says() {
        let classes: [(char, fn(char) -> bool); 6] = [
            ('L', is_letter),
            ('M', is_mark),
            ('P', is_punctuation),
            ('S', is_unicode_symbol),
            ('u', is_upper_only),
            ('l', is_lower_only),
        ];
        for (c, expected) in [
            ('a', "Ll"),
            ('A', "Lu"),
            ('é', "Ll"),
            ('É', "Lu"),
            ('ǅ', "Lu"),
            ('ª', "L"),
            ('日', "L"),
            ('\u{301}', "M"),
            ('ि', "M"),
            ('Ⅳ', ""),
            ('ⓐ', "S"),
            ('$', "S"),
            ('!', "P"),
            ('。', "P"),
            (' ', ""),
            ('\u{10ffff}', ""),
        ] {
            let of = classes.iter().filter(|(_, class)| class(c));
            let found: String = of.map(|(name, _)| *name).collect();
            assert_eq!(found, expected, "{c:?}");
            let cased = expected.contains(['u', 'l']);
            assert_eq!(is_cased(c), cased, "{c:?}");
        }
    }
}
