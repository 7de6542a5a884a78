//! Which tokens end a reply.

use candor_modelfile::{TokenType, TokenizerSpec};

/// Spellings that end a turn or a text in published vocabularies, whatever a file's metadata
/// forgot to say (names as in llama.cpp's `llama-vocab.cpp`).
pub(crate) const END_OF_TURN: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<turn|>",
    "<|tool_response>",
    "<|endoftext|>",
    "</s>",
    "<eos>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "[e~[",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<｜end▁of▁sentence｜>",
];

/// Spellings of fill-in-the-middle and file tokens: a chat reply that reaches one is over.
const END_OF_FILE: &[&str] = &[
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
];

/// A spelling that does not end a reply where a vocabulary has all of these: one of each list.
struct Exception {
    spelling: &'static str,
    beside: &'static [&'static [&'static str]],
}

/// In gpt-oss `<|end|>` ends one message of a reply that has several; `</s>` is a word of HTML in
/// Gemma 4 (both as in llama.cpp's `llama-vocab.cpp`).
const EXCEPTIONS: &[Exception] = &[
    Exception {
        spelling: "<|end|>",
        beside: &[&["<|call|>", "<|calls|>"], &["<|return|>", "<|flush|>"]],
    },
    Exception {
        spelling: "</s>",
        beside: &[&["<|tool_response>"]],
    },
];

/// The end-of-turn spellings of one vocabulary.
pub(super) struct EndMarkers(Vec<&'static str>);

impl EndMarkers {
    pub(super) fn of(spec: &TokenizerSpec) -> Self {
        let marker = |token: &String| END_OF_TURN.iter().find(|marker| *marker == token);
        let mut present: Vec<&'static str> =
            spec.tokens.iter().filter_map(marker).copied().collect();
        let is_excepted = |exception: &Exception| {
            let has_one = |names: &&[&str]| names.iter().any(|name| present.contains(name));
            exception.beside.iter().all(has_one)
        };
        let excepted: Vec<_> = EXCEPTIONS.iter().filter(|e| is_excepted(e)).collect();
        present.retain(|marker| !excepted.iter().any(|e| e.spelling == *marker));
        Self(present)
    }

    /// Whether a token of this spelling is a control token even if the file calls it text.
    pub(super) fn contain(&self, spelling: &str) -> bool {
        self.0.contains(&spelling)
    }

    /// The ids that end a reply, sorted: those that the metadata names and those that are known
    /// by their spelling. Left out are ids outside the vocabulary, and those that the metadata
    /// names although the file itself says that they are ordinary text: a reply would be cut at
    /// a word.
    pub(super) fn ids(&self, spec: &TokenizerSpec) -> Vec<u32> {
        let named = (0..).zip(&spec.tokens).filter_map(|(id, token)| {
            let ends = self.contain(token) || END_OF_FILE.contains(&token.as_str());
            ends.then_some(id)
        });
        let stated = stated(spec).filter(|&id| !is_text(spec, id));
        let mut ids: Vec<u32> = named.chain(stated).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// What the metadata names as an end and is a word of ordinary text.
pub(super) fn named_but_text(spec: &TokenizerSpec) -> Option<u32> {
    stated(spec).find(|&id| is_text(spec, id))
}

/// The ids that the metadata names as ends, as far as the vocabulary has them.
fn stated(spec: &TokenizerSpec) -> impl Iterator<Item = u32> {
    let all = [
        spec.eos,
        spec.eot,
        spec.eom,
        spec.fim_pad,
        spec.fim_rep,
        spec.fim_sep,
    ];
    let tokens = spec.tokens.len();
    all.into_iter()
        .flatten()
        .filter(move |&id| (id as usize) < tokens)
}

/// Whether the file calls a token text, and it is also spelled like text: some writers call every
/// token text, so a spelling in brackets or bars is believed to be a marker.
fn is_text(spec: &TokenizerSpec, id: u32) -> bool {
    let index = id as usize;
    let token = spec.tokens[index].as_str();
    match spec.types.get(index) {
        Some(TokenType::Byte) => true,
        Some(TokenType::Normal) => !MARKER_PAIRS
            .iter()
            .any(|(open, close)| encloses(token, *open, *close)),
        _ => false,
    }
}

/// What markers are spelled between.
const MARKER_PAIRS: [(char, char); 4] = [('<', '>'), ('[', ']'), ('|', '|'), ('{', '}')];

fn encloses(token: &str, open: char, close: char) -> bool {
    match (token.find(open), token.rfind(close)) {
        (Some(start), Some(end)) => end > start + 1,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vocabulary of these tokens, all of them text, with a stated end.
    fn spec(tokens: &[&str], eos: u32) -> TokenizerSpec {
        TokenizerSpec {
            tokens: tokens.iter().map(|token| (*token).to_owned()).collect(),
            types: vec![TokenType::Normal; tokens.len()],
            eos: Some(eos),
            ..TokenizerSpec::default()
        }
    }

    fn check(spec: &TokenizerSpec, expected: &[u32], text: Option<u32>) {
        let found = EndMarkers::of(spec).ids(spec);
        assert_eq!(found, expected, "{:?} {:?}", spec.tokens, spec.eos);
        assert_eq!(named_but_text(spec), text, "{:?}", spec.tokens);
    }

    #[test]
    fn a_word_is_no_end_whatever_the_metadata_says() {
        check(&spec(&["a", "<|im_end|>"], 0), &[1], Some(0));
        check(&spec(&["a", "[|endofturn|]"], 1), &[1], None);
        check(&spec(&["a", "▁<EOT>"], 1), &[1], None);
        check(&spec(&["<", ">", "<>"], 2), &[], Some(2));
        check(&spec(&["a"], 7), &[], None);
        let mut control = spec(&["a", "b"], 1);
        control.types[1] = TokenType::Control;
        check(&control, &[1], None);
        control.types[1] = TokenType::Byte;
        check(&control, &[], Some(1));
        control.types.clear();
        check(&control, &[1], None);
    }

    #[test]
    fn markers_that_mean_something_else_beside_others_are_no_ends() {
        check(&spec(&["<|end|>", "<|return|>"], 1), &[0, 1], None);
        check(
            &spec(&["<|end|>", "<|return|>", "<|call|>"], 1),
            &[1, 2],
            None,
        );
        check(&spec(&["</s>", "<turn|>"], 1), &[0, 1], None);
        check(&spec(&["</s>", "<|tool_response>"], 1), &[1], None);
    }
}
