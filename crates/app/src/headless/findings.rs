//! What stands against using a model file and what is doubtful about it: one plain sentence each.
//! Everything here is known from the file's description; no weight is read.

use std::collections::HashMap;
use std::path::Path;

use candor_arch::{ArchError, Graph, Problem};
use candor_modelfile::Index;
use candor_text::{ChatFormat, Fallback, Tokenizer};

use super::failure::Failure;
use super::inspection::{InspectOptions, Memory, TemplateSource, inspect};
use super::rows::rows;
use crate::words::{self, Bytes, Count, Phrase, phrase};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// The file cannot be used.
    Against,
    /// It can be used with token ids, but not to chat.
    NoText,
    /// Something may not be as expected.
    Doubt,
    /// Good to know.
    Note,
}

impl Weight {
    /// For scripts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Against => "against",
            Self::NoText => "no_text",
            Self::Doubt => "doubt",
            Self::Note => "note",
        }
    }
}

/// One thing about a file that a person should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// For scripts.
    pub code: &'static str,
    /// How much it matters.
    pub weight: Weight,
    /// For a person.
    pub message: Phrase,
    /// What a person can do about it, where there is something.
    pub advice: Option<Phrase>,
}

impl Finding {
    pub(super) fn new(weight: Weight, code: &'static str, message: Phrase) -> Self {
        Self {
            code,
            weight,
            message,
            advice: None,
        }
    }
}

/// Everything that there is to say about a file, what matters most first; empty if all is well.
/// A file that cannot be read at all is a finding too. Loads nothing.
pub fn findings(path: &Path, options: &InspectOptions) -> Vec<Finding> {
    describe(path, options).1
}

/// The rows of [`rows`], none for a file that cannot be read, and its [`findings`].
pub fn describe(path: &Path, options: &InspectOptions) -> (Vec<(Phrase, Phrase)>, Vec<Finding>) {
    let inspection = match inspect(path, options) {
        Ok(inspection) => inspection,
        Err(failure) => return (Vec::new(), vec![of_failure(&failure)]),
    };
    let facts = rows(&inspection);
    let notes = inspection.notes.iter().cloned();
    let notes = notes.map(|note| Finding::new(Weight::Note, "file", note));
    let mut all: Vec<Finding> = inspection.problems.into_iter().chain(notes).collect();
    all.sort_by_key(|finding| finding.weight);
    (facts, all)
}

fn of_failure(failure: &Failure) -> Finding {
    Finding {
        advice: failure.advice(),
        ..Finding::new(Weight::Against, failure.code(), Phrase::of(failure))
    }
}

/// Vocabulary, template and end tokens.
pub(super) fn of_text(index: &Index, found: &mut Vec<Finding>) -> TemplateSource {
    let Some(spec) = &index.tokenizer else {
        let message = phrase!(
            "the file has no tokenizer, so it cannot be chatted with",
            "die Datei hat keinen Tokenizer, mit ihr lässt sich nicht chatten",
        );
        found.push(Finding::new(Weight::NoText, "no_tokenizer", message));
        return TemplateSource::None;
    };
    let tokenizer = match Tokenizer::from_spec(spec) {
        Ok(tokenizer) => tokenizer,
        Err(error) => {
            let message = Phrase::of(&error);
            found.push(Finding::new(
                Weight::NoText,
                "unsupported_tokenizer",
                message,
            ));
            return TemplateSource::None;
        }
    };
    found.extend(of_ends(&tokenizer));
    let format = ChatFormat::new(index.chat_template.as_deref(), tokenizer.controls());
    let Some(fallback) = format.fallback() else {
        return TemplateSource::Model;
    };
    let weight = match fallback {
        Fallback::NoTemplate { .. } => Weight::Note,
        _ => Weight::Doubt,
    };
    found.push(Finding::new(
        weight,
        "chat_template",
        words::fallback(fallback),
    ));
    match fallback {
        Fallback::NoTemplate { used }
        | Fallback::InvalidTemplate { used, .. }
        | Fallback::TemplateFailed { used, .. } => TemplateSource::BuiltIn(*used),
        _ => TemplateSource::Model,
    }
}

/// Whether replies find an end.
fn of_ends(tokenizer: &Tokenizer) -> Option<Finding> {
    let finding = |message: Phrase| Finding::new(Weight::Doubt, "end_tokens", message);
    if let Some(id) = tokenizer.end_that_is_text() {
        let spelling = tokenizer.spelling(Some(id));
        let spelling = format!("{spelling:?}");
        return Some(finding(phrase!(
            "the file names {spelling} as the end of a reply, which is a word of ordinary text \
             and ends none",
            "die Datei nennt {spelling} als Ende einer Antwort, das ist ein Wort gewöhnlichen \
             Textes und beendet keine",
            spelling,
        )));
    }
    tokenizer.end_ids().is_empty().then(|| {
        finding(phrase!(
            "the file names no token that ends a reply, and its vocabulary has none that is \
             known, so replies end at their longest length",
            "die Datei nennt kein Token, das eine Antwort beendet, und ihr Vokabular hat kein \
             bekanntes, deshalb enden Antworten erst bei ihrer größten Länge",
        ))
    })
}

/// The graph, if the file holds what its architecture needs.
pub(super) fn of_weights(index: &Index, found: &mut Vec<Finding>) -> Option<Graph> {
    let mut against = |code, message: Phrase| {
        found.push(Finding::new(Weight::Against, code, message));
    };
    let graph = match candor_arch::build(index) {
        // What says that it is something else needs no weights to be told.
        Err(error @ ArchError::NotChat { .. }) => {
            against("not_a_chat_model", Phrase::of(&error));
            return None;
        }
        _ if index.tensors.is_empty() => {
            let message = phrase!(
                "the file has a description but no weights",
                "die Datei hat eine Beschreibung, aber keine Gewichte",
            );
            against("no_weights", message);
            return None;
        }
        Ok(graph) => graph,
        Err(error) => {
            against(of_architecture(&error), Phrase::of(&error));
            return None;
        }
    };
    let problems = candor_arch::check(&graph, index);
    let is_whole = problems.is_empty();
    found.extend(of_tensors(&problems));
    is_whole.then_some(graph)
}

fn of_architecture(error: &ArchError) -> &'static str {
    match error {
        ArchError::NotChat { .. } => "not_a_chat_model",
        ArchError::Unknown { .. } | ArchError::Unsupported { .. } => "unsupported_architecture",
        ArchError::Metadata(_) | ArchError::OutOfBounds { .. } => "metadata",
        ArchError::NoEmbedding => "missing_tensor",
    }
}

/// One sentence for what is wrong alike in many layers.
fn of_tensors(problems: &[Problem]) -> Vec<Finding> {
    let mut all: Vec<(Finding, usize)> = Vec::new();
    let mut places: HashMap<(&str, String), usize> = HashMap::new();
    for problem in problems {
        let (code, name) = match problem {
            Problem::Missing { name, .. } | Problem::Experts { name, .. } => {
                ("missing_tensor", name)
            }
            Problem::Unused { name } => ("unsupported_tensor", name),
            Problem::Shape { name, .. } => ("tensor_shape", name),
            Problem::Type { name, .. } => ("tensor_type", name),
        };
        match places.get(&(code, without_layer(name))) {
            Some(&place) => all[place].1 += 1,
            None => {
                places.insert((code, without_layer(name)), all.len());
                let finding = Finding::new(Weight::Against, code, Phrase::of(problem));
                all.push((finding, 0));
            }
        }
    }
    let told = |(mut finding, more): (Finding, usize)| {
        if more > 0 {
            finding.message = finding.message.then(&phrase!(
                ", and so in {more} other layers",
                ", und so in {more} weiteren Schichten",
                more = Count::of(more),
            ));
        }
        finding
    };
    all.into_iter().map(told).collect()
}

/// A tensor's name with the number of its layer left out.
fn without_layer(name: &str) -> String {
    let is_number = |part: &&str| !part.bytes().all(|byte| byte.is_ascii_digit());
    name.split('.')
        .filter(is_number)
        .collect::<Vec<_>>()
        .join(".")
}

/// Whether what a model takes is there.
pub(super) fn of_memory(memory: &Memory, free: Option<u64>, found: &mut Vec<Finding>) {
    if let Some(free) = free.filter(|free| *free < memory.total_bytes) {
        let message = phrase!(
            "with {tokens} tokens of context the model needs {needed} of memory, {free} are free",
            "bei {tokens} Tokens Kontext braucht das Modell {needed} Speicher, frei sind {free}",
            tokens = Count(memory.context_tokens),
            needed = Bytes(memory.total_bytes),
            free = Bytes(free),
        );
        let advice = phrase!(
            "close other programs, choose a shorter context, or open a smaller file",
            "schließe andere Programme, wähle einen kürzeren Kontext oder öffne eine kleinere Datei",
        );
        found.push(Finding {
            advice: Some(advice),
            ..Finding::new(Weight::Doubt, "memory", message)
        });
    }
}

/// Whether a context that was asked for is one that the model knows.
pub(super) fn of_context(asked: Option<usize>, trained: usize, found: &mut Vec<Finding>) {
    if let Some(asked) = asked.filter(|asked| *asked > trained) {
        let message = phrase!(
            "the model was trained for {trained} tokens of context; behind them, up to {asked}, it \
             writes nonsense",
            "das Modell wurde für {trained} Tokens Kontext trainiert; dahinter, bis {asked}, \
             schreibt es Unsinn",
            trained = Count::of(trained),
            asked = Count::of(asked),
        );
        found.push(Finding::new(Weight::Doubt, "context", message));
    }
}

#[cfg(test)]
mod tests {
    use candor_testkit::gguf::Value;
    use candor_testkit::{Damage, TinyModel, Unfit};

    use super::*;
    use crate::words::{Tongue, says_the_same};

    #[track_caller]
    fn in_both(found: &[Finding]) {
        for phrase in found
            .iter()
            .flat_map(|found| Some(&found.message).into_iter().chain(&found.advice))
        {
            let [english, german] =
                [Tongue::English, Tongue::German].map(|tongue| phrase.in_tongue(tongue));
            says_the_same(english, german);
        }
    }

    /// What is said of a model, with its weight and code.
    fn of(model: &TinyModel, options: &InspectOptions) -> Vec<Finding> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.gguf");
        model.write(&path).unwrap();
        findings(&path, options)
    }

    #[test]
    fn healthy_files_that_do_not_fit_are_named_and_never_called_broken() {
        let dir = tempfile::tempdir().unwrap();
        for unfit in Unfit::ALL {
            let path = unfit.write(dir.path()).unwrap();
            let found = findings(&path, &InspectOptions::default());
            let (first, message) = (&found[0], found[0].message.to_string());
            assert_eq!(first.weight, Weight::Against, "{unfit:?} {found:?}");
            for words in unfit.words() {
                assert!(message.contains(words), "{unfit:?}: {message}");
            }
            in_both(&found);
            let all: Vec<String> = found
                .iter()
                .map(|found| found.message.to_string())
                .collect();
            let all = all.join(" ").to_lowercase();
            for wrong in ["corrupt", "incomplete", "damaged", "download"] {
                assert!(!all.contains(wrong), "{unfit:?}: {all}");
            }
            assert!(
                !message.ends_with('.') && !message.contains('\n'),
                "{message}"
            );
        }
    }

    #[test]
    fn damaged_files_are_one_finding() {
        let dir = tempfile::tempdir().unwrap();
        for damage in Damage::ALL {
            let path = damage.write(dir.path(), &TinyModel::llama()).unwrap();
            let found = findings(&path, &InspectOptions::default());
            assert_eq!(found.len(), 1, "{damage:?} {found:?}");
            assert_eq!(found[0].weight, Weight::Against);
            assert!(found[0].message.to_string().starts_with(damage.file_name()));
            assert!(found[0].advice.is_some());
            in_both(&found);
            assert_eq!(
                found[0].message.to_string().contains("incomplete"),
                damage.is_cut() || matches!(damage, Damage::Empty | Damage::AprTruncated),
                "{damage:?}"
            );
        }
    }

    #[test]
    fn what_may_not_be_as_expected_is_said_and_what_is_well_is_not() {
        let none = InspectOptions::default();
        let check = |model: TinyModel, options: &InspectOptions, want: &[(Weight, &str, &str)]| {
            let found = of(&model, options);
            in_both(&found);
            assert_eq!(found.len(), want.len(), "{found:?}");
            for (finding, (weight, code, words)) in found.iter().zip(want) {
                assert_eq!((finding.weight, finding.code), (*weight, *code));
                assert!(
                    finding.message.to_string().contains(words),
                    "{words}: {}",
                    finding.message
                );
            }
        };
        let llama = TinyModel::llama;
        check(llama(), &none, &[]);
        check(TinyModel::qwen2(), &none, &[]);
        let small = InspectOptions {
            context: Some(1_000_000),
            free_memory: Some(10_000_000),
            ..InspectOptions::default()
        };
        check(
            llama().context(2_048),
            &small,
            &[
                (
                    Weight::Doubt,
                    "memory",
                    "with 1,000,000 tokens of context the model needs",
                ),
                (Weight::Doubt, "context", "trained for 2,048 tokens"),
            ],
        );
        check(
            llama().metadata("tokenizer.chat_template", Value::from("{% for %}")),
            &none,
            &[(Weight::Doubt, "chat_template", "is used")],
        );
        check(
            llama().without_metadata("tokenizer.chat_template"),
            &none,
            &[(Weight::Note, "file", "brings no chat template")],
        );
        let text = TinyModel::llama().token_id("a").unwrap();
        check(
            llama().metadata("tokenizer.ggml.eos_token_id", Value::U32(text)),
            &none,
            &[(Weight::Doubt, "end_tokens", "a word of ordinary text")],
        );
        check(
            llama().metadata("tokenizer.ggml.pre", Value::from("nobody's")),
            &none,
            &[(Weight::NoText, "unsupported_tokenizer", "nobody's")],
        );
    }

    #[test]
    fn what_is_wrong_alike_in_all_layers_is_one_sentence() {
        let mut model = TinyModel::llama().layers(3);
        for layer in 0..3 {
            model = model.without_tensor(&format!("blk.{layer}.ffn_norm.weight"));
        }
        let found = of(&model, &InspectOptions::default());
        assert_eq!(found.len(), 1, "{found:?}");
        let want = "the tensor blk.0.ffn_norm.weight is missing, and so in 2 other layers";
        assert_eq!(found[0].message.to_string(), want);
    }
}
