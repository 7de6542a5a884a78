//! Byte-pair encoding over characters ("gemma4"): marks for spaces, the library's merges, bytes
//! for characters without a token.
//!
//! It has SentencePiece's spelling but the ranks of a merge list, as the tokenizer files of Llama 2
//! and Gemma have. Text is not cut into words; only runs of newlines stand apart from what is
//! around them, and one that is a token is that token (the rule of llama.cpp's `llama-vocab.cpp`).

use candor_modelfile::{TokenType, TokenizerSpec};

use super::TokenizerError;
use super::merges::{self, Merges};
use super::sentence_piece::SpacePrefix;

/// Merges over the characters of whole lines.
pub(super) struct CharacterLevel {
    merges: Merges,
    space_prefix: SpacePrefix,
}

impl CharacterLevel {
    /// Builds the merges of the file.
    ///
    /// A byte without a token is an error here: the library would drop the characters that need
    /// it and say nothing.
    pub(super) fn new(spec: &TokenizerSpec, kinds: &[TokenType]) -> Result<Self, TokenizerError> {
        let vocab = merges::vocab(spec, kinds);
        let has_token = |byte: &u8| vocab.contains_key(&format!("<0x{byte:02X}>"));
        if let Some(byte) = (0..=u8::MAX).find(|byte| !has_token(byte)) {
            return Err(TokenizerError::NoTokenForByte { byte });
        }
        let merges = Merges::new(vocab, &spec.merges, |library| library.byte_fallback(true))?;
        let space_prefix = match spec.add_space_prefix {
            Some(true) => SpacePrefix::Added,
            Some(false) | None => SpacePrefix::NotAdded,
        };
        Ok(Self {
            merges,
            space_prefix,
        })
    }

    /// Appends the ids of a text that begins the prompt or follows a token.
    pub(super) fn encode(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), TokenizerError> {
        let marked = self.space_prefix.mark(text);
        let mut rest = marked.as_str();
        while let Some(first) = rest.chars().next() {
            let newlines = first == '\n';
            let length = rest.find(|c| (c == '\n') != newlines).unwrap_or(rest.len());
            let (run, after) = rest.split_at(length);
            match self.merges.id(run).filter(|_| newlines) {
                Some(id) => ids.push(id),
                None => self.merges.encode(run, ids)?,
            }
            rest = after;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::tokenizer::Ends;
    use crate::{Prompt, Show, Tokenizer};
    use candor_modelfile::{TokenType, TokenizerSpec};

    /// Bytes, some characters, and what merges make of them.
    fn spec(merges: &[&str], characters: &str) -> TokenizerSpec {
        let mut spec = TokenizerSpec {
            model: "gemma4".into(),
            ..TokenizerSpec::default()
        };
        for byte in 0..=u8::MAX {
            spec.tokens.push(format!("<0x{byte:02X}>"));
            spec.types.push(TokenType::Byte);
        }
        let merged = merges.iter().map(|merge| merge.replacen(' ', "", 1));
        for token in characters.chars().map(String::from).chain(merged) {
            spec.tokens.push(token);
            spec.types.push(TokenType::Normal);
        }
        spec.merges = merges.iter().map(|merge| (*merge).to_owned()).collect();
        spec
    }

    fn check(spec: &TokenizerSpec, text: &str, expected: &[&str]) {
        let tokenizer = Tokenizer::from_spec(spec).unwrap();
        let ids = tokenizer.encode(&Prompt::typed(text), Ends::None).unwrap();
        let spelled: Vec<&str> = ids
            .iter()
            .map(|&id| spec.tokens[id as usize].as_str())
            .collect();
        assert_eq!(spelled, expected, "{text:?}");
        let bytes: Vec<u8> = ids
            .iter()
            .flat_map(|&id| tokenizer.piece(id, Show::Text))
            .copied()
            .collect();
        // A typed mark cannot be told from a space.
        let back = text.replace('▁', " ");
        assert!(
            bytes.ends_with(back.as_bytes()),
            "{text:?} comes back whole"
        );
    }

    #[test]
    fn spaces_are_marked_newlines_stand_apart_and_other_characters_are_bytes() {
        let merges = ["a b", "▁ ab", "\n \n", "b \n"];
        let spec = spec(&merges, "ab▁\n");
        check(&spec, "ab", &["ab"]);
        check(&spec, " ab  ab", &["▁ab", "▁", "▁ab"]);
        check(&spec, "▁ab", &["▁ab"]);
        // A merge across the border of a run of newlines is not followed.
        check(&spec, "ab\n\n\nb", &["ab", "\n\n", "\n", "b"]);
        check(&spec, "aé", &["a", "<0xC3>", "<0xA9>"]);
        check(
            &spec,
            "<0x41>",
            &["<0x3C>", "<0x30>", "<0x78>", "<0x34>", "<0x31>", "<0x3E>"],
        );
    }

    #[test]
    fn a_run_of_newlines_that_is_a_token_needs_no_merge() {
        let mut spec = spec(&[], "\n");
        spec.tokens.push("\n\n\n".into());
        spec.types.push(TokenType::Normal);
        check(&spec, "\n\n\n", &["\n\n\n"]);
        check(&spec, "\n\n", &["\n", "\n"]);
    }

    #[test]
    fn a_space_in_front_is_added_where_the_file_says_so() {
        let mut spec = spec(&["▁ a"], "a▁");
        spec.add_space_prefix = Some(true);
        check(&spec, "a", &["▁a"]);
        spec.tokens[7] = "gone".into();
        let error = Tokenizer::from_spec(&spec).unwrap_err().to_string();
        assert!(error.contains("0x07"), "{error}");
    }
}
