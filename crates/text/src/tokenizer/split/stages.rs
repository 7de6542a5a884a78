//! One step of cutting: where the first part of a text ends.

use super::words::{Words, deepseek3_word, gpt2_word};
use crate::tokenizer::classes::is_punctuation;

/// A class of characters.
pub(super) type Class = fn(char) -> bool;

#[derive(Debug)]
pub(super) enum Stage {
    /// Each character of the class becomes a part of its own.
    Each(Class),
    /// Each run of the class becomes a part.
    Runs(Class),
    /// Each run of the second class, with one character of the first before it, becomes a part.
    SpacedRuns(Class, Class),
    /// White space at the end becomes a part.
    EndSpace,
    /// Each three ASCII digits become a part.
    Triples,
    /// Numerals become parts of at most so many.
    Numbers(usize),
    /// GPT-2's expression.
    Gpt2,
    /// The last expression of DeepSeek V3.
    DeepSeek3,
    /// The expression of Llama 3 and its relatives.
    Words(Words),
}

impl Stage {
    /// Length of the first part of a text that is not empty.
    pub(super) fn first_part(&self, text: &str) -> usize {
        match self {
            Self::Each(class) => match text.chars().next() {
                Some(c) if class(c) => c.len_utf8(),
                _ => run(text, |c| !class(c)),
            },
            Self::Runs(class) => match run(text, class) {
                0 => run(text, |c| !class(c)),
                length => length,
            },
            Self::SpacedRuns(space, class) => spaced_run(text, *space, *class),
            Self::EndSpace => match text.trim_end().len() {
                0 => text.len(),
                length => length,
            },
            Self::Triples => match digit_triple(text) {
                Some(length) => length,
                None => (1..text.len())
                    .find(|&at| text.is_char_boundary(at) && digit_triple(&text[at..]).is_some())
                    .unwrap_or(text.len()),
            },
            Self::Numbers(max) => match numerals(text, *max) {
                0 => run(text, |c| !c.is_numeric()),
                length => length,
            },
            Self::Gpt2 => gpt2_word(text),
            Self::DeepSeek3 => deepseek3_word(text),
            Self::Words(words) => words.first(text),
        }
    }
}

/// Bytes of the longest beginning whose characters are all of the class.
pub(super) fn run(text: &str, class: impl Fn(char) -> bool) -> usize {
    text.find(|c| !class(c)).unwrap_or(text.len())
}

/// Bytes of the numerals at the beginning, at most `max` of them.
pub(super) fn numerals(text: &str, max: usize) -> usize {
    let digits = text.chars().take(max).take_while(|c| c.is_numeric());
    digits.map(char::len_utf8).sum()
}

/// `[space]?[class]+`, or everything before the first place where that matches.
fn spaced_run(text: &str, space: Class, class: Class) -> usize {
    let length_at = |at: usize| {
        let rest = &text[at..];
        let spaces = rest
            .chars()
            .next()
            .filter(|&c| space(c))
            .map_or(0, char::len_utf8);
        match run(&rest[spaces..], class) {
            0 => run(rest, class),
            length => spaces + length,
        }
    };
    match length_at(0) {
        // A run can begin only where the class or the space before it does, so the first hit of
        // the class is at most one character past the start of the match.
        0 => {
            let Some(hit) = text.find(class) else {
                return text.len();
            };
            let before = text[..hit].chars().next_back();
            hit - before.filter(|&c| space(c)).map_or(0, char::len_utf8)
        }
        length => length,
    }
}

/// `[0-9][0-9][0-9]`
fn digit_triple(text: &str) -> Option<usize> {
    let start = text.as_bytes().get(..3)?;
    start.iter().all(u8::is_ascii_digit).then_some(3)
}

pub(super) fn is_space(c: char) -> bool {
    c == ' '
}

pub(super) fn is_newline(c: char) -> bool {
    matches!(c, '\r' | '\n')
}

/// `[\p{P}\$\+<=>\^~\|]`
pub(super) fn is_punctuation_or_operator(c: char) -> bool {
    is_punctuation(c) || matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '~' | '|')
}

/// The class above and `` ` ``.
pub(super) fn is_falcon_symbol(c: char) -> bool {
    is_punctuation_or_operator(c) || c == '`'
}

/// `[!-/:-~！-／：-～‘-‟　-。]`
pub(super) fn is_deepseek_symbol(c: char) -> bool {
    matches!(c, '!'..='/' | ':'..='~' | '！'..='／' | '：'..='～' | '‘'..='‟' | '\u{3000}'..='。')
}

/// `[一-龥ࠀ-一가-퟿]`
pub(super) fn is_deepseek_ideograph(c: char) -> bool {
    matches!(c, '\u{800}'..='龥' | '가'..='\u{d7ff}')
}

/// `[一-龥぀-ゟ゠-ヿ]`
pub(super) fn is_ideograph_or_kana(c: char) -> bool {
    matches!(c, '一'..='龥' | '\u{3040}'..='\u{30ff}')
}

/// `[^(\s|.,!?…。，、।۔،)]`
pub(super) fn is_bloom_word(c: char) -> bool {
    let ends = matches!(
        c,
        '(' | '|' | '.' | ',' | '!' | '?' | '…' | '。' | '，' | '、' | '।' | '۔' | '،' | ')'
    );
    !ends && !c.is_whitespace()
}
