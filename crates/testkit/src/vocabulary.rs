//! A small byte-level BPE vocabulary.

use crate::gguf::Value;

/// Words that get a token each, and so the merges that lead there.
const WORDS: &[&str] = &[
    " the",
    " and",
    " of",
    " to",
    " in",
    " is",
    " you",
    " that",
    " it",
    " was",
    " for",
    " on",
    " are",
    " as",
    " with",
    " his",
    " they",
    " a",
    " be",
    " at",
    " one",
    " have",
    " this",
    " from",
    "ing",
    "ion",
    "The",
    " answer",
    " question",
    " small",
    " engine",
    " reads",
    " file",
    " word",
    "user",
    "assistant",
    "system",
    "Hello",
    " world",
    "\n\n",
];

/// The control tokens, at the end of the vocabulary.
const CONTROL: [&str; 3] = [END_OF_TEXT, TURN_START, TURN_END];

/// Begins and ends a text.
pub const END_OF_TEXT: &str = "<|endoftext|>";
/// Begins a turn.
pub const TURN_START: &str = "<|im_start|>";
/// Ends a turn; the models' end-of-sequence token.
pub const TURN_END: &str = "<|im_end|>";

/// Token types as numbers of the format.
const NORMAL: i32 = 1;
const CONTROL_TYPE: i32 = 3;
const UNUSED: i32 = 5;

/// Tokens, their types, and the merges.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Vocabulary {
    pub(crate) tokens: Vec<String>,
    pub(crate) types: Vec<i32>,
    pub(crate) merges: Vec<String>,
}

impl Vocabulary {
    /// The 256 bytes, some words, and the control tokens; filled up with unused
    /// tokens to `len_min`.
    pub(crate) fn new(len_min: usize) -> Self {
        let mut tokens: Vec<String> = (0..=255).map(|b| letter(b).to_string()).collect();
        let mut merges = Vec::new();
        for word in WORDS {
            let mut left = String::new();
            for byte in word.bytes() {
                let right = letter(byte).to_string();
                let both = format!("{left}{right}");
                if !left.is_empty() && !tokens.contains(&both) {
                    merges.push(format!("{left} {right}"));
                    tokens.push(both.clone());
                }
                left = both;
            }
        }
        let mut types = vec![NORMAL; tokens.len()];
        while tokens.len() + CONTROL.len() < len_min {
            tokens.push(format!("[unused{}]", tokens.len()));
            types.push(UNUSED);
        }
        tokens.extend(CONTROL.map(str::to_owned));
        types.extend([CONTROL_TYPE; CONTROL.len()]);
        Self {
            tokens,
            types,
            merges,
        }
    }

    pub(crate) fn id(&self, spelling: &str) -> Option<u32> {
        self.tokens
            .iter()
            .position(|token| token == spelling)
            .map(|id| id as u32)
    }

    /// The lists as metadata entries.
    pub(crate) fn entries(&self) -> [(String, Value); 3] {
        [
            (
                "tokenizer.ggml.tokens".into(),
                Value::Texts(self.tokens.clone()),
            ),
            (
                "tokenizer.ggml.token_type".into(),
                Value::Ints(self.types.clone()),
            ),
            (
                "tokenizer.ggml.merges".into(),
                Value::Texts(self.merges.clone()),
            ),
        ]
    }
}

/// The character that stands for a byte in byte-level vocabularies: itself where
/// it is printable in Latin-1, else the next free one from U+0100 on (GPT-2's rule).
fn letter(byte: u8) -> char {
    let printable = |b: u8| matches!(b, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    if printable(byte) {
        return char::from(byte);
    }
    let rank = (0..byte).filter(|b| !printable(*b)).count() as u32;
    char::from_u32(0x100 + rank).expect("ranks stay below 256")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_a_letter_and_each_merge_makes_a_token() {
        let vocabulary = Vocabulary::new(0);
        let mut seen = vocabulary.tokens.clone();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), vocabulary.tokens.len());
        assert_eq!((letter(b' '), letter(b'\n'), letter(b'a')), ('Ġ', 'Ċ', 'a'));
        for merge in &vocabulary.merges {
            let (left, right) = merge.split_once(' ').unwrap();
            for part in [left, right, &merge.replace(' ', "")] {
                assert!(vocabulary.id(part).is_some(), "{merge}");
            }
        }
        assert_eq!(Vocabulary::new(1000).tokens.len(), 1000);
    }
}
