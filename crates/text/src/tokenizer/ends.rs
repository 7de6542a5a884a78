//! Which tokens end a reply.

use candor_modelfile::TokenizerSpec;

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
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
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
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
];

/// Whether a token of this spelling is a control token even if the file calls it text.
pub(super) fn is_end_marker(spelling: &str) -> bool {
    END_OF_TURN.contains(&spelling)
}

/// The ids that end a reply, sorted: those that the metadata names and those that are known by
/// their spelling. Ids outside the vocabulary are left out.
pub(super) fn end_ids(spec: &TokenizerSpec) -> Vec<u32> {
    let named = (0..).zip(&spec.tokens).filter_map(|(id, token)| {
        let ends = is_end_marker(token) || END_OF_FILE.contains(&token.as_str());
        ends.then_some(id)
    });
    let stated = [
        spec.eos,
        spec.eot,
        spec.eom,
        spec.fim_pad,
        spec.fim_rep,
        spec.fim_sep,
    ]
    .into_iter()
    .flatten();
    let mut ids: Vec<u32> = named
        .chain(stated.filter(|&id| (id as usize) < spec.tokens.len()))
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
