//! The long expressions: what one word is.

use super::stages::{Class, is_newline, numerals, run};
use crate::tokenizer::classes::{
    is_letter, is_lower_only, is_mark, is_punctuation, is_unicode_symbol, is_upper_only,
};

/// Where the relatives of Llama 3's expression differ.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words {
    pub(super) contractions: Contractions,
    pub(super) letters: Letters,
    pub(super) digits_max: usize,
    pub(super) is_symbol: Class,
    /// What a run of symbols takes with it.
    pub(super) after_symbols: Class,
}

/// What becomes of the English `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll` and `'d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contractions {
    /// Nothing in particular.
    None,
    /// They are words.
    Words,
    /// They stay with the letters before them.
    Endings,
}

/// What letters make a word.
#[derive(Debug, Clone, Copy)]
pub(super) enum Letters {
    /// All that follow one another.
    Run(Class),
    /// Capitals, then small letters: a capital behind a small letter begins a word.
    Cased,
}

impl Words {
    /// `(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|`
    /// `\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
    ///
    /// Where marks count as letters, the first `\p{L}` stays as it is, the others become
    /// `[\p{L}\p{M}]`. Instead of the first two alternatives the cased relatives have those of
    /// [`cased_word`].
    pub(super) fn first(&self, text: &str) -> usize {
        if self.contractions == Contractions::Words
            && let Some(length) = contraction(text, str::eq_ignore_ascii_case)
        {
            return length;
        }
        let letters = match self.letters {
            Letters::Run(class) => letter_run(text, class),
            Letters::Cased => cased_word(text),
        };
        if letters > 0 {
            let ending = match self.contractions {
                Contractions::Endings => contraction(&text[letters..], str::eq_ignore_ascii_case),
                _ => None,
            };
            return letters + ending.unwrap_or(0);
        }
        let digits = numerals(text, self.digits_max);
        if digits > 0 {
            return digits;
        }
        let space = usize::from(text.starts_with(' '));
        let symbols = run(&text[space..], self.is_symbol);
        if symbols > 0 {
            let end = space + symbols;
            return end + run(&text[end..], self.after_symbols);
        }
        lines_or_spaces(text)
    }
}

/// `[^\r\n\p{L}\p{N}]?[class]+`
fn letter_run(text: &str, class: Class) -> usize {
    let before = leader(text);
    match run(&text[before..], class) {
        0 => run(text, class),
        letters => before + letters,
    }
}

/// `[^\r\n\p{L}\p{N}]?`
fn leader(text: &str) -> usize {
    let first = text.chars().next();
    first
        .filter(|&c| !is_newline(c) && !is_letter(c) && !c.is_numeric())
        .map_or(0, char::len_utf8)
}

/// `[^\r\n\p{L}\p{N}]?[upper]*[lower]+|[^\r\n\p{L}\p{N}]?[upper]+[lower]*`, where upper is
/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]` and lower `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
///
/// These are the classes that the models were trained with. llama.cpp (at the time of writing)
/// has ASCII's two cases instead, and no marks.
fn cased_word(text: &str) -> usize {
    let before = leader(text);
    // With the leader if that gives a word; a mark may also be part of the word itself.
    let lower = [before, 0].into_iter().find_map(|start| {
        let length = ends_lower(&text[start..])?;
        Some(start + length)
    });
    lower
        .or_else(|| {
            [before, 0].into_iter().find_map(|start| {
                let length = run(&text[start..], is_upper);
                (length > 0).then(|| start + length + run(&text[start + length..], is_lower))
            })
        })
        .unwrap_or(0)
}

/// `[upper]*[lower]+`
fn ends_lower(text: &str) -> Option<usize> {
    let upper = run(text, is_upper);
    let lower = run(&text[upper..], is_lower);
    if lower > 0 {
        return Some(upper + lower);
    }
    // The first part gives back characters up to one that the second can take.
    let (at, last) = text[..upper].char_indices().rfind(|&(_, c)| is_lower(c))?;
    Some(at + last.len_utf8())
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
fn is_upper(c: char) -> bool {
    is_letter_or_mark(c) && !is_lower_only(c)
}

/// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
fn is_lower(c: char) -> bool {
    is_letter_or_mark(c) && !is_upper_only(c)
}

/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
pub(super) fn gpt2_word(text: &str) -> usize {
    if let Some(length) = contraction(text, |ending, found| ending == found) {
        return length;
    }
    let space = usize::from(text.starts_with(' '));
    let rest = &text[space..];
    let length = match rest.chars().next() {
        Some(c) if is_letter(c) => run(rest, is_letter),
        Some(c) if c.is_numeric() => run(rest, char::is_numeric),
        Some(c) if !c.is_whitespace() => run(rest, is_symbol),
        _ => return white_space(text),
    };
    space + length
}

/// ``[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|``
/// `` ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+``, or everything before the first place
/// where that matches.
pub(super) fn deepseek3_word(text: &str) -> usize {
    match deepseek3_match(text) {
        // What matches nothing (a control character, say) is told from its successor alone, so
        // that looking for the next match takes one pass.
        0 => text
            .char_indices()
            .skip(1)
            .map(|(at, _)| at)
            .find(|&at| deepseek3_match(&text[at..]) > 0)
            .unwrap_or(text.len()),
        length => length,
    }
}

fn deepseek3_match(text: &str) -> usize {
    let Some(first) = text.chars().next() else {
        return 0;
    };
    if first.is_ascii_punctuation() {
        let letters = run(&text[1..], |c| c.is_ascii_alphabetic());
        if letters > 0 {
            return 1 + letters;
        }
    }
    if !is_newline(first) && !is_letter(first) && !is_punctuation_or_symbol(first) {
        let letters = run(&text[first.len_utf8()..], is_letter_or_mark);
        if letters > 0 {
            return first.len_utf8() + letters;
        }
    }
    let letters = run(text, is_letter_or_mark);
    if letters > 0 {
        return letters;
    }
    let space = usize::from(first == ' ');
    let symbols = run(&text[space..], is_punctuation_or_symbol);
    if symbols > 0 {
        let end = space + symbols;
        return end + run(&text[end..], is_newline);
    }
    lines_or_spaces(text)
}

/// `'s|'t|'re|'ve|'m|'ll|'d`, the letters compared by `same`.
fn contraction(text: &str, same: fn(&str, &str) -> bool) -> Option<usize> {
    let rest = text.strip_prefix('\'')?;
    ["s", "t", "re", "ve", "m", "ll", "d"]
        .into_iter()
        .find(|ending| {
            rest.get(..ending.len())
                .is_some_and(|found| same(ending, found))
        })
        .map(|ending| 1 + ending.len())
}

/// `\s*[\r\n]+|\s+(?!\S)|\s+`
fn lines_or_spaces(text: &str) -> usize {
    let spaces = run(text, char::is_whitespace);
    match text[..spaces].rfind(is_newline) {
        Some(last_newline) => last_newline + 1,
        None => white_space(text),
    }
}

/// `\s+(?!\S)|\s+`: white space, without its last character if a word follows.
fn white_space(text: &str) -> usize {
    let spaces = run(text, char::is_whitespace);
    if spaces == text.len() {
        return spaces;
    }
    let last = text[..spaces].chars().next_back().map_or(0, char::len_utf8);
    if spaces > last { spaces - last } else { spaces }
}

/// `[^\s\p{L}\p{N}]`
pub(super) fn is_symbol(c: char) -> bool {
    !c.is_whitespace() && !is_letter(c) && !c.is_numeric()
}

/// `[^\s\p{L}\p{M}\p{N}]`
pub(super) fn is_symbol_no_mark(c: char) -> bool {
    is_symbol(c) && !is_mark(c)
}

/// `[\p{L}\p{M}]`
pub(super) fn is_letter_or_mark(c: char) -> bool {
    is_letter(c) || is_mark(c)
}

/// `[\p{P}\p{S}]`
fn is_punctuation_or_symbol(c: char) -> bool {
    is_punctuation(c) || is_unicode_symbol(c)
}
