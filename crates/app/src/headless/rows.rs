//! A model file's description as rows for a person: the same words on the command line and in the
//! window.

use super::findings::Weight;
use super::inspection::{Inspection, Memory, TemplateSource};
use crate::words::{Count, Digits, Phrase, count, phrase, size};
use candor_text::Builtin;

/// What is known of a file, each with its name.
pub fn rows(found: &Inspection) -> Vec<(Phrase, Phrase)> {
    let unstated = || phrase!("not stated", "nicht angegeben");
    let or_none = |text: &Option<String>| text.as_ref().map_or_else(unstated, Phrase::same);
    let number =
        |found: Option<u64>| found.map_or_else(unstated, |found| Phrase::written(Count(found)));
    let types = found
        .quantization
        .iter()
        .map(|(name, tensors)| format!("{name} × {tensors}"));
    let types = types.collect::<Vec<_>>().join(", ");
    let vocabulary = found.vocabulary.map(|count| count as u64);
    let mut rows = vec![
        (
            phrase!("File", "Datei"),
            Phrase::same(found.path.to_string_lossy()),
        ),
        (Phrase::same("Format"), Phrase::same(found.format)),
        (
            phrase!("Architecture", "Architektur"),
            Phrase::same(found.architecture.as_str()),
        ),
        (Phrase::same("Name"), or_none(&found.name)),
        (
            phrase!("Parameters", "Parameter"),
            Phrase::written(Count(found.parameters)),
        ),
        (
            phrase!("File size", "Größe der Datei"),
            bytes(found.file_bytes),
        ),
        (
            phrase!("Tensors", "Tensoren"),
            Phrase::same(format!("{} ({types})", found.tensors)),
        ),
        (
            phrase!("Trained context", "Trainierter Kontext"),
            number(found.context_length),
        ),
        (phrase!("Vocabulary", "Vokabular"), number(vocabulary)),
        (Phrase::same("Tokenizer"), or_none(&found.tokenizer)),
        (
            phrase!("Pre-tokenizer", "Pre-Tokenizer"),
            or_none(&found.pre_tokenizer),
        ),
        (
            phrase!("Chat template", "Gesprächsvorlage"),
            template(found.chat_template),
        ),
    ];
    if let Some(memory) = &found.memory {
        rows.extend(of_memory(memory));
    }
    rows.push((phrase!("Use", "Nutzung"), use_of(found)));
    rows
}

fn template(source: TemplateSource) -> Phrase {
    match source {
        TemplateSource::Model => phrase!("the file's own", "die der Datei"),
        TemplateSource::BuiltIn(Builtin::ChatMl) => {
            phrase!("ChatML, built in", "ChatML, eingebaut")
        }
        TemplateSource::BuiltIn(Builtin::Plain) => {
            phrase!("plain text, built in", "einfacher Text, eingebaut")
        }
        TemplateSource::None => phrase!("none", "keine"),
    }
}

fn of_memory(memory: &Memory) -> Vec<(Phrase, Phrase)> {
    let mut rows = vec![(phrase!("Weights", "Gewichte"), bytes(memory.weights_bytes))];
    if memory.unpacked_bytes > 0 {
        let name = phrase!("Laid out anew", "Neu angeordnet");
        rows.push((name, bytes(memory.unpacked_bytes)));
    }
    let each = phrase!(
        "{each} for each token, as {kv}",
        "{each} je Token, als {kv}",
        each = bytes(memory.kv_bytes_per_token),
        kv = memory.kv.name(),
    );
    rows.push((phrase!("Keys and values", "Schlüssel und Werte"), each));
    let total = phrase!(
        "{total} with {context} tokens",
        "{total} bei {context} Tokens",
        total = bytes(memory.total_bytes),
        context = Count(memory.context_tokens),
    );
    rows.push((phrase!("Memory", "Speicher"), total));
    rows
}

fn use_of(found: &Inspection) -> Phrase {
    match found.problems.iter().map(|problem| problem.weight).min() {
        Some(Weight::Against) => phrase!("cannot be run", "nicht zu gebrauchen"),
        Some(Weight::NoText) => phrase!(
            "runs on the CPU, with token ids only",
            "läuft auf der CPU, nur mit Nummern von Tokens",
        ),
        _ if found.gpu => phrase!(
            "runs on the CPU, and on NVIDIA cards that prove themselves",
            "läuft auf der CPU und auf NVIDIA-Karten, die ihre Prüfung bestehen",
        ),
        _ => phrase!("runs on the CPU", "läuft auf der CPU"),
    }
}

/// A size as people read it, and to the byte where that says less.
fn bytes(found: u64) -> Phrase {
    let exact = format!("{} bytes", count(found));
    let rounded = size(found);
    Phrase::written(Digits(match rounded == exact {
        true => exact,
        false => format!("{rounded} ({exact})"),
    }))
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
            assert_eq!(bytes(found).to_string(), want);
        }
    }
}
