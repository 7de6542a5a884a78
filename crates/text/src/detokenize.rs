//! Token bytes to text as they arrive, in whole characters only.

use std::str;

/// Joins the bytes of tokens into text and gives out whole characters only.
///
/// A character whose bytes are spread over several tokens appears with its last byte. Bytes that
/// cannot become a character any more appear as one replacement sign (U+FFFD) for each longest
/// broken part, exactly where `String::from_utf8_lossy` puts them; a replacement sign that was
/// given out is therefore final.
#[derive(Debug, Clone, Default)]
pub struct Detokenizer {
    /// The beginning of a character: at most three bytes between calls.
    pending: Vec<u8>,
    ready: String,
}

impl Detokenizer {
    /// A detokenizer with nothing pending.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the bytes of the next token and returns the characters that are complete now.
    pub fn push(&mut self, piece: &[u8]) -> &str {
        self.ready.clear();
        self.pending.extend_from_slice(piece);
        let mut done = 0;
        loop {
            let rest = &self.pending[done..];
            match str::from_utf8(rest) {
                Ok(text) => {
                    self.ready.push_str(text);
                    done = self.pending.len();
                    break;
                }
                Err(error) => {
                    let valid = error.valid_up_to();
                    if let Ok(text) = str::from_utf8(&rest[..valid]) {
                        self.ready.push_str(text);
                    }
                    done += valid;
                    match error.error_len() {
                        Some(broken) => {
                            self.ready.push(char::REPLACEMENT_CHARACTER);
                            done += broken;
                        }
                        None => break,
                    }
                }
            }
        }
        self.pending.drain(..done);
        &self.ready
    }

    /// Ends the text: half a character becomes one replacement sign. The detokenizer is empty
    /// afterwards, so a second call returns nothing.
    pub fn finish(&mut self) -> &str {
        self.ready.clear();
        if !self.pending.is_empty() {
            self.pending.clear();
            self.ready.push(char::REPLACEMENT_CHARACTER);
        }
        &self.ready
    }

    /// Whether the beginning of a character is held back.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the pieces, checks that what is shown only ever grows towards the final text, and
    /// compares it.
    fn check(name: &str, pieces: &[&[u8]], expected: &str) {
        let mut detokenizer = Detokenizer::new();
        let mut shown = String::new();
        for piece in pieces {
            shown.push_str(detokenizer.push(piece));
            assert!(expected.starts_with(&shown), "{name}: showed {shown:?}");
        }
        shown.push_str(detokenizer.finish());
        assert_eq!(shown, expected, "{name}");
        assert_eq!(
            detokenizer.finish(),
            "",
            "{name}: a second finish adds nothing"
        );
        let joined: Vec<u8> = pieces.concat();
        if str::from_utf8(&joined).is_ok() {
            assert_eq!(
                shown.as_bytes(),
                joined,
                "{name}: valid bytes come out as they are"
            );
        }
        assert_eq!(
            shown,
            String::from_utf8_lossy(&joined),
            "{name}: lossy rule"
        );
    }

    #[test]
    fn characters_cut_between_tokens_are_shown_whole() {
        let emoji = "😁".as_bytes();
        check("1+3", &[&emoji[..1], &emoji[1..]], "😁");
        check("2+2", &[&emoji[..2], &emoji[2..]], "😁");
        check("3+1", &[&emoji[..3], &emoji[3..]], "😁");
        check(
            "1+1+1+1",
            &[&emoji[..1], &emoji[1..2], &emoji[2..3], &emoji[3..]],
            "😁",
        );
        check(
            "with neighbours",
            &[b"a\xf0", b"\x9f\x98", b"\x81b"],
            "a😁b",
        );
        check(
            "empty pieces between",
            &[&emoji[..2], b"", &emoji[2..]],
            "😁",
        );
        let texts = [
            "👨‍👩‍👧‍👦",
            "🇩🇪🇯🇵",
            "हिन्दी में लिखा",
            "日本語のテキスト",
            "👍🏽 e\u{301} \u{fffd} \u{0}",
        ];
        for text in texts {
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            check(text, &bytes, text);
            for size in [2, 3, 5] {
                let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
                check(text, &chunks, text);
            }
        }
    }

    #[test]
    fn bytes_that_are_never_valid_become_replacement_signs_once_that_is_certain() {
        check("lone continuation", &[b"a", b"\x80", b"b"], "a\u{fffd}b");
        check("never valid", &[b"\xff\xfe"], "\u{fffd}\u{fffd}");
        check("overlong", &[b"\xc0", b"\xaf"], "\u{fffd}\u{fffd}");
        check(
            "surrogate",
            &[b"\xed", b"\xa0", b"\x80"],
            "\u{fffd}\u{fffd}\u{fffd}",
        );
        check(
            "above the last plane",
            &[b"\xf4\x90\x80\x80"],
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
        );
        check("cut by a letter", &[b"\xf0\x9f", b"x"], "\u{fffd}x");
        check(
            "cut by another start",
            &[b"\xf0\x9f", b"\xc3", b"\xa9"],
            "\u{fffd}é",
        );
    }

    #[test]
    fn a_reply_that_ends_inside_a_character_gets_one_replacement_sign() {
        for cut in 1..4 {
            check(
                "dangling",
                &[b"ok ", &"😁".as_bytes()[..cut]],
                "ok \u{fffd}",
            );
        }
        let mut detokenizer = Detokenizer::new();
        assert_eq!(detokenizer.push(b"\xf0\x9f"), "");
        assert!(detokenizer.is_pending());
        assert_eq!(detokenizer.finish(), "\u{fffd}");
        assert_eq!(
            detokenizer.push(b"\x98\x81"),
            "\u{fffd}\u{fffd}",
            "nothing was kept"
        );
    }

    #[test]
    fn random_bytes_in_random_pieces_agree_with_the_lossy_rule_and_hold_at_most_three_bytes() {
        let mut state = 0x9e37_79b9_u32;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state
        };
        for _ in 0..2_000 {
            let bytes: Vec<u8> = (0..next() % 40)
                .map(|_| match next() % 3 {
                    0 => 0x80 | (next() % 64) as u8,
                    1 => 0xc0 | (next() % 64) as u8,
                    _ => next() as u8,
                })
                .collect();
            let mut detokenizer = Detokenizer::new();
            let mut shown = String::new();
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let take = (next() as usize % 5).min(rest.len());
                shown.push_str(detokenizer.push(&rest[..take]));
                assert!(detokenizer.pending.len() <= 3);
                rest = &rest[take..];
            }
            shown.push_str(detokenizer.finish());
            assert_eq!(shown, String::from_utf8_lossy(&bytes));
        }
    }
}
