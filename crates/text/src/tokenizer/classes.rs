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

/// As their authors list them: letters with two cases up to Unicode 12, without those of
/// mathematics.
static DEEPSEEK_LETTERS: LazyLock<Ranges> = LazyLock::new(|| {
    Ranges::of(
        "[\
         A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-\u{293}\u{295}-\u{2af}\u{370}-\u{373}\u{376}\u{377}\
         \u{37b}-\u{37d}\u{37f}\u{386}\u{388}-\u{38a}\u{38c}\u{38e}-\u{3a1}\u{3a3}-\u{3f5}\
         \u{3f7}-\u{481}\u{48a}-\u{52f}\u{531}-\u{556}\u{10a0}-\u{10c5}\u{13a0}-\u{13f5}\
         \u{13f8}-\u{13fd}\u{1c90}-\u{1cba}\u{1cbd}-\u{1cbf}\u{1d00}-\u{1d2b}\u{1d6b}-\u{1d77}\
         \u{1d79}-\u{1d9a}\u{1e00}-\u{1f15}\u{1f18}-\u{1f1d}\u{1f20}-\u{1f45}\u{1f48}-\u{1f4d}\
         \u{1f50}-\u{1f57}\u{1f59}\u{1f5b}\u{1f5d}\u{1f5f}-\u{1f7d}\u{1f80}-\u{1fb4}\
         \u{1fb6}-\u{1fbc}\u{1fbe}\u{1fc2}-\u{1fc4}\u{1fc6}-\u{1fcc}\u{1fd0}-\u{1fd3}\
         \u{1fd6}-\u{1fdb}\u{1fe0}-\u{1fec}\u{1ff2}-\u{1ff4}\u{1ff6}-\u{1ffc}\u{2102}\u{2107}\
         \u{210a}-\u{2113}\u{2115}\u{2119}-\u{211d}\u{2124}\u{2126}\u{2128}\u{212a}-\u{212d}\
         \u{212f}-\u{2134}\u{2139}\u{213c}-\u{213f}\u{2145}-\u{2149}\u{214e}\u{2183}\u{2184}\
         \u{2c00}-\u{2c7b}\u{2c7e}-\u{2ce4}\u{2ceb}-\u{2cee}\u{2cf2}\u{2cf3}\u{a640}-\u{a66d}\
         \u{a680}-\u{a69b}\u{a722}-\u{a76f}\u{a771}-\u{a787}\u{a78b}-\u{a78e}\u{ab70}-\u{abbf}\
         \u{fb00}-\u{fb06}\u{fb13}-\u{fb17}\u{ff21}-\u{ff3a}\u{ff41}-\u{ff5a}\
         \u{10400}-\u{1044f}\u{104b0}-\u{104d3}\u{104d8}-\u{104fb}\u{10c80}-\u{10cb2}\
         \u{10cc0}-\u{10cf2}\u{118a0}-\u{118df}\u{1e900}-\u{1e943}]",
    )
});

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

/// The letters with two cases of DeepSeek's first vocabularies.
pub(super) fn is_deepseek_letter(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphabetic()
    } else {
        DEEPSEEK_LETTERS.contain(c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Class = fn(char) -> bool;

    #[test]
    fn classes_hold_what_unicode_says() {
        let classes: [(char, Class); 6] = [
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
        }
        for (c, expected) in [
            ('K', true),
            ('ǅ', true),
            ('\u{212a}', true),
            ('ß', true),
            ('ａ', true),
        ]
        .into_iter()
        .chain(['ʔ', 'ʰ', '日', '𝕳', '1', '!'].map(|c| (c, false)))
        {
            assert_eq!(is_deepseek_letter(c), expected, "{c:?}");
        }
    }
}
