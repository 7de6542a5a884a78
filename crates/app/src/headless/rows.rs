//! A model file's description as rows for a person: the same words on the command line and in the
//! window.

use super::findings::Weight;
use super::inspection::{Inspection, Memory, TemplateSource};
use crate::words::{count, size};
use candor_text::Builtin;

/// What is known of a file, each with its name.
pub fn rows(found: &Inspection) -> Vec<(&'static str, String)> {
    let or_none =
        |text: &Option<String>| text.clone().unwrap_or_else(|| String::from("not stated"));
    let number = |found: Option<u64>| found.map_or_else(|| or_none(&None), count);
    let types = found
        .quantization
        .iter()
        .map(|(name, tensors)| format!("{name} × {tensors}"));
    let types = types.collect::<Vec<_>>().join(", ");
    let mut rows = vec![
        ("File", found.path.to_string_lossy().into_owned()),
        ("Format", found.format.to_owned()),
        ("Architecture", found.architecture.clone()),
        ("Name", or_none(&found.name)),
        ("Parameters", count(found.parameters)),
        ("File size", bytes(found.file_bytes)),
        ("Tensors", format!("{} ({types})", found.tensors)),
        ("Trained context", number(found.context_length)),
        (
            "Vocabulary",
            number(found.vocabulary.map(|count| count as u64)),
        ),
        ("Tokenizer", or_none(&found.tokenizer)),
        ("Pre-tokenizer", or_none(&found.pre_tokenizer)),
        ("Chat template", template(found.chat_template).to_owned()),
    ];
    if let Some(memory) = &found.memory {
        rows.extend(of_memory(memory));
    }
    rows.push(("Use", use_of(found).to_owned()));
    rows
}

fn template(source: TemplateSource) -> &'static str {
    match source {
        TemplateSource::Model => "the file's own",
        TemplateSource::BuiltIn(Builtin::ChatMl) => "ChatML, built in",
        TemplateSource::BuiltIn(Builtin::Plain) => "plain text, built in",
        TemplateSource::None => "none",
    }
}

fn of_memory(memory: &Memory) -> Vec<(&'static str, String)> {
    let each = bytes(memory.kv_bytes_per_token);
    let context = count(memory.context_tokens);
    let mut rows = vec![("Weights", bytes(memory.weights_bytes))];
    if memory.unpacked_bytes > 0 {
        rows.push(("Laid out anew", bytes(memory.unpacked_bytes)));
    }
    let kv = memory.kv.name();
    rows.push(("Keys and values", format!("{each} for each token, as {kv}")));
    let total = bytes(memory.total_bytes);
    rows.push(("Memory", format!("{total} with {context} tokens")));
    rows
}

fn use_of(found: &Inspection) -> &'static str {
    match found.problems.iter().map(|problem| problem.weight).min() {
        Some(Weight::Against) => "cannot be run",
        Some(Weight::NoText) => "runs on the CPU, with token ids only",
        _ if found.gpu => "runs on the CPU, and on NVIDIA cards that prove themselves",
        _ => "runs on the CPU",
    }
}

/// A size as people read it, and to the byte where that says less.
fn bytes(found: u64) -> String {
    let (rounded, exact) = (size(found), format!("{} bytes", count(found)));
    if rounded == exact {
        exact
    } else {
        format!("{rounded} ({exact})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_said_in_units_and_to_the_byte() {
        let cases = [
            (0, "0 bytes"),
            (512, "512 bytes"),
            (23_040, "23 kB (23,040 bytes)"),
            (98_316_192, "98 MB (98,316,192 bytes)"),
            (4_683_074_240, "4.7 GB (4,683,074,240 bytes)"),
        ];
        for (found, want) in cases {
            assert_eq!(bytes(found), want);
        }
    }
}
