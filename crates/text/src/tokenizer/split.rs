//! Cutting text into the words inside which byte-level merges happen.
//!
//! Every published vocabulary comes with a regular expression for this. The expressions use
//! look-ahead, and an engine for them gives up on long runs of spaces; these scanners read the
//! same language in one pass over the text and cannot give up. The expression of each stage
//! stands above its scanner. Which name stands for which expressions is a fact of the GGUF
//! ecosystem (the table in llama.cpp's `llama-vocab.cpp`).

use super::classes::{is_cased, is_letter, is_mark, is_punctuation};

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

#[derive(Debug)]
enum Stage {
    /// Each character of the class becomes a part of its own.
    Each(fn(char) -> bool),
    /// Each run of the class becomes a part.
    Runs(fn(char) -> bool),
    /// Each run of the class, with one white-space character before it, becomes a part.
    SpacedRuns(fn(char) -> bool),
    /// White space at the end becomes a part.
    EndSpace,
    /// Each three ASCII digits become a part.
    Triples,
    /// GPT-2's expression.
    Gpt2,
    /// The expression of Llama 3 and its relatives.
    Words(Words),
}

/// The two ways in which the relatives of Llama 3's expression differ.
#[derive(Debug, Clone, Copy)]
struct Words {
    is_letter: fn(char) -> bool,
    digits_max: usize,
}

const GPT2: &[Stage] = &[Stage::Gpt2];
const QWEN2: &[Stage] = &[Stage::Words(Words {
    is_letter,
    digits_max: 1,
})];

static SCHEMES: &[Scheme] = &[
    Scheme {
        names: &[
            "gpt-2", "phi-2", "jina-es", "jina-de", "mpt", "olmo", "jais", "gigachat",
        ],
        stages: GPT2,
        whole_words: WholeWords::Merged,
        add_bos: false,
    },
    Scheme {
        names: &[
            "smollm",
            "starcoder",
            "refact",
            "command-r",
            "codeshell",
            "exaone",
            "minerva-7b",
        ],
        stages: &[Stage::Each(char::is_numeric), Stage::Gpt2],
        whole_words: WholeWords::Merged,
        add_bos: false,
    },
    Scheme {
        names: &["llama-bpe", "llama3", "llama-v3", "falcon3"],
        stages: &[Stage::Words(Words {
            is_letter,
            digits_max: 3,
        })],
        whole_words: WholeWords::Taken,
        add_bos: true,
    },
    Scheme {
        names: &["qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan"],
        stages: QWEN2,
        whole_words: WholeWords::Merged,
        add_bos: false,
    },
    Scheme {
        names: &["qwen35"],
        stages: &[Stage::Words(Words {
            is_letter: is_letter_or_mark,
            digits_max: 1,
        })],
        whole_words: WholeWords::Merged,
        add_bos: false,
    },
    Scheme {
        names: &["deepseek-llm"],
        stages: &[
            Stage::Each(is_newline),
            Stage::SpacedRuns(is_cased),
            Stage::SpacedRuns(is_deepseek_symbol),
            Stage::EndSpace,
            Stage::Runs(is_deepseek_ideograph),
            Stage::Runs(char::is_numeric),
        ],
        whole_words: WholeWords::Merged,
        add_bos: false,
    },
    Scheme {
        names: &["default"],
        stages: &[
            Stage::Runs(is_punctuation_or_operator),
            Stage::Gpt2,
            Stage::Runs(char::is_numeric),
            Stage::Triples,
        ],
        whole_words: WholeWords::Merged,
        add_bos: false,
    },
];

impl Scheme {
    /// The scheme that a file's pre-tokenizer name stands for. Without a name it is "default".
    pub(super) fn by_name(name: Option<&str>) -> Option<&'static Self> {
        let name = name.unwrap_or("default");
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

impl Stage {
    /// Length of the first part of a text that is not empty.
    fn first_part(&self, text: &str) -> usize {
        match self {
            Self::Each(class) => match text.chars().next() {
                Some(c) if class(c) => c.len_utf8(),
                _ => run(text, |c| !class(c)),
            },
            Self::Runs(class) => match run(text, class) {
                0 => run(text, |c| !class(c)),
                length => length,
            },
            Self::SpacedRuns(class) => spaced_run(text, *class),
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
            Self::Gpt2 => gpt2_word(text),
            Self::Words(words) => words.first(text),
        }
    }
}

/// Bytes of the longest beginning whose characters are all of the class.
fn run(text: &str, class: impl Fn(char) -> bool) -> usize {
    text.find(|c| !class(c)).unwrap_or(text.len())
}

/// `\s?[class]+`, or everything before the first place where that matches.
fn spaced_run(text: &str, class: fn(char) -> bool) -> usize {
    let length_at = |at: usize| {
        let rest = &text[at..];
        let space = rest
            .chars()
            .next()
            .filter(|c| c.is_whitespace())
            .map_or(0, char::len_utf8);
        match run(&rest[space..], class) {
            0 => run(rest, class),
            length => space + length,
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
            hit - before
                .filter(|c| c.is_whitespace())
                .map_or(0, char::len_utf8)
        }
        length => length,
    }
}

/// `[0-9][0-9][0-9]`
fn digit_triple(text: &str) -> Option<usize> {
    let start = text.as_bytes().get(..3)?;
    start.iter().all(u8::is_ascii_digit).then_some(3)
}

/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
fn gpt2_word(text: &str) -> usize {
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

impl Words {
    /// `(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|`
    /// `\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
    ///
    /// Where marks count as letters, the first `\p{L}` stays as it is, the others become
    /// `[\p{L}\p{M}]`.
    fn first(&self, text: &str) -> usize {
        if let Some(length) = contraction(text, str::eq_ignore_ascii_case) {
            return length;
        }
        let Some(first) = text.chars().next() else {
            return 0;
        };
        if !is_newline(first) && !is_letter(first) && !first.is_numeric() {
            let letters = run(&text[first.len_utf8()..], self.is_letter);
            if letters > 0 {
                return first.len_utf8() + letters;
            }
        }
        if (self.is_letter)(first) {
            return run(text, self.is_letter);
        }
        if first.is_numeric() {
            let digits = text
                .chars()
                .take(self.digits_max)
                .take_while(|c| c.is_numeric());
            return digits.map(char::len_utf8).sum();
        }
        let space = usize::from(first == ' ');
        let symbols = run(&text[space..], |c| is_symbol(c) && !(self.is_letter)(c));
        if symbols > 0 {
            let end = space + symbols;
            return end + run(&text[end..], is_newline);
        }
        let spaces = run(text, char::is_whitespace);
        match text[..spaces].rfind(is_newline) {
            Some(last_newline) => last_newline + 1,
            None => white_space(text),
        }
    }
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
fn is_symbol(c: char) -> bool {
    !c.is_whitespace() && !is_letter(c) && !c.is_numeric()
}

fn is_newline(c: char) -> bool {
    matches!(c, '\r' | '\n')
}

fn is_letter_or_mark(c: char) -> bool {
    is_letter(c) || is_mark(c)
}

/// `[\p{P}\$\+<=>\^~\|]`
fn is_punctuation_or_operator(c: char) -> bool {
    is_punctuation(c) || matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '~' | '|')
}

/// `[!-/:-~！-／：-～‘-‟　-。]`
fn is_deepseek_symbol(c: char) -> bool {
    matches!(c, '!'..='/' | ':'..='~' | '！'..='／' | '：'..='～' | '‘'..='‟' | '\u{3000}'..='。')
}

/// `[一-龥ࠀ-一가-퟿]`
fn is_deepseek_ideograph(c: char) -> bool {
    matches!(c, '\u{800}'..='龥' | '가'..='\u{d7ff}')
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn words<'t>(name: &str, text: &'t str) -> Vec<&'t str> {
        let scheme = Scheme::by_name(Some(name)).unwrap();
        let mut words = Vec::new();
        let Ok(()) = scheme.split::<Infallible>(text, &mut |word| {
            words.push(word);
            Ok(())
        });
        words
    }

    #[test]
    fn words_are_cut_as_the_expressions_say() {
        let cases: &[(&str, &str, &[&str])] = &[
            (
                "gpt-2",
                "I'll go  to 123 é!?\n\n x ",
                &[
                    "I", "'ll", " go", " ", " to", " 123", " é", "!?", "\n\n", " x", " ",
                ],
            ),
            ("gpt-2", "don'T '", &["don", "'", "T", " '"]),
            ("smollm", "a 12\t", &["a", " ", "1", "2", "\t"]),
            (
                "llama-bpe",
                "I'LL (x) 12345  y",
                &["I", "'LL", " (", "x", ")", " ", "123", "45", " ", " y"],
            ),
            ("llama-bpe", "a.\r\n \n b", &["a", ".\r\n", " \n", " b"]),
            ("qwen2", "x= 12", &["x", "=", " ", "1", "2"]),
            ("qwen2", "e\u{301}a", &["e", "\u{301}a"]),
            ("qwen35", "e\u{301}a \u{301}", &["e\u{301}a", " \u{301}"]),
            (
                "deepseek-llm",
                "ab 12, x\n日本 ",
                &["ab", " ", "12", ",", " x", "\n", "日本", " "],
            ),
            ("default", "a1234=b", &["a", "123", "4", "=", "b"]),
        ];
        for (name, text, expected) in cases {
            assert_eq!(&words(name, text), expected, "{name}: {text:?}");
        }
    }

    #[test]
    fn words_joined_are_the_text_and_none_is_empty() {
        let parts = [
            "a", "É", "1", "²", " ", "\u{a0}", "\n", "\r", "'", "s", "!", "日", "\u{301}",
        ];
        let mut state = 7_u32;
        for _ in 0..3_000 {
            let mut text = String::new();
            for _ in 0..state % 12 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                text.push_str(parts[(state >> 16) as usize % parts.len()]);
            }
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) >> 1;
            for name in SCHEMES.iter().flat_map(|scheme| scheme.names) {
                let words = words(name, &text);
                assert_eq!(words.concat(), text, "{name}");
                assert!(
                    words.iter().all(|word| !word.is_empty()),
                    "{name}: {text:?}"
                );
            }
        }
    }
}
