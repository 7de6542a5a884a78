//! Cuts PTX text into words, numbers and signs.

use super::{PtxError, PtxFault};

/// One piece of the text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    pub(super) line: u32,
}

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name, an opcode or a directive with its dots, as `add.s32`, `.reg`, `%tid.x`.
    Word,
    /// A number as it stands, without its sign.
    Number,
    /// A text between quotes.
    Quoted,
    /// One character.
    Sign,
}

impl Token<'_> {
    /// Whether it is that sign.
    pub(super) fn is(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }
}

/// All pieces of a text.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, PtxError> {
    let bytes = text.as_bytes();
    let mut list = Vec::with_capacity(bytes.len() / 4);
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let start = at;
        let kind = match bytes[at] {
            b'\n' => {
                line += 1;
                at += 1;
                continue;
            }
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            // The driver is given a text that ends in a zero.
            0 => break,
            b'/' if bytes[at..].starts_with(b"//") => {
                at += find(&bytes[at..], b"\n");
                continue;
            }
            b'/' if bytes[at..].starts_with(b"/*") => {
                let len = find(&bytes[at..], b"*/");
                line += count_lines(&bytes[at..at + len]);
                at = (at + len + 2).min(bytes.len());
                continue;
            }
            b'"' => {
                at += 1 + find(&bytes[at + 1..], b"\"");
                at = (at + 1).min(bytes.len());
                Kind::Quoted
            }
            byte if byte.is_ascii_digit() => {
                at += run(&bytes[at..], |b| b.is_ascii_alphanumeric() || b == b'.');
                Kind::Number
            }
            byte if starts_word(byte) => {
                at += word(&bytes[at..]);
                Kind::Word
            }
            byte if byte.is_ascii_punctuation() => {
                at += 1;
                Kind::Sign
            }
            _ => {
                return Err(PtxError {
                    line,
                    what: PtxFault::Syntax,
                    text: text[at..].chars().take(1).collect(),
                });
            }
        };
        list.push(Token {
            kind,
            text: &text[start..at],
            line,
        });
    }
    Ok(list)
}

fn starts_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'.' | b'_' | b'$' | b'%')
}

/// The length of a word; `L2::128B` is part of one.
fn word(bytes: &[u8]) -> usize {
    let mut at = 1;
    loop {
        at += run(&bytes[at..], |b| starts_word(b) || b.is_ascii_digit());
        let joined = bytes[at..].starts_with(b"::")
            && bytes.get(at + 2).is_some_and(u8::is_ascii_alphanumeric);
        if !joined {
            return at;
        }
        at += 2;
    }
}

fn run(bytes: &[u8], fits: impl Fn(u8) -> bool) -> usize {
    bytes
        .iter()
        .position(|byte| !fits(*byte))
        .unwrap_or(bytes.len())
}

fn find(bytes: &[u8], what: &[u8]) -> usize {
    bytes
        .windows(what.len())
        .position(|window| window == what)
        .unwrap_or(bytes.len())
}

fn count_lines(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u32
}
