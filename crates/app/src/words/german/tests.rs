use std::path::PathBuf;

use candor_arch::{ArchError, Problem};
use candor_backend::{LoadError, OpenError as BackendError, Unavailable, Unsupported};
use candor_engine::{
    BiasError, ConstraintError, LoadFailure, NoEmbedding, NotJudged, RequestError, SamplingError,
    TurnCode,
};
use candor_modelfile::{Purpose, Refusal};
use candor_text::{Builtin, Fallback, StopError, TemplateError, TokenizerError};

use super::*;
use crate::words::says_the_same;

mod driver;
mod file;

/// Every text that is filled in has a number in it, so that one that is left out is missed.
fn text(number: u32) -> String {
    format!("t{number}")
}

#[track_caller]
fn check<T: German>(all: impl IntoIterator<Item = T>) {
    for said in all {
        let (english, german) = (said.to_string(), said.german());
        says_the_same(&english, &german);
        let is_open = |words: &str| words.ends_with('.') || words.contains('\n');
        assert!(!is_open(&german), "{german}");
        assert!(!german.contains('!'), "{german}");
    }
}

#[test]
fn what_is_wrong_with_a_model_is_said_in_german_with_the_same_facts() {
    let name = || text(1);
    check([
        Purpose::Adapter,
        Purpose::Embedding,
        Purpose::Projector,
        Purpose::Importance,
    ]);
    check([
        ArchError::Unknown { name: name() },
        ArchError::Unsupported {
            key: text(1),
            found: text(2),
        },
        ArchError::NoEmbedding,
    ]);
    let bounds = ["1 to 128", "12 to divide 64", "none", "a positive number"];
    check(bounds.map(|expected| ArchError::OutOfBounds {
        key: text(1),
        expected: String::from(expected),
        found: text(3),
    }));
    check([
        Problem::Missing {
            name: name(),
            perhaps: None,
        },
        Problem::Missing {
            name: name(),
            perhaps: Some(text(2)),
        },
        Problem::Experts {
            name: name(),
            found: text(2),
        },
        Problem::Unused { name: name() },
        Problem::Shape {
            name: name(),
            expected: vec![3, 4],
            found: vec![5, 6],
        },
        Problem::Type {
            name: name(),
            expected: "F32, F16 or BF16",
            found: text(2),
        },
    ]);
    check([
        Unsupported::Op("RmsNorm2"),
        Unsupported::Op("attention with heads of this size"),
        Unsupported::Type(text(1)),
        Unsupported::State("t3"),
        Unsupported::Option("float32 arithmetic on the GPU"),
        Unsupported::Option("8-bit keys and values on the GPU"),
        Unsupported::Option("float32 keys and values on the GPU"),
    ]);
}

#[test]
fn what_a_backend_lacks_is_said_in_german_with_the_same_facts() {
    let missing = || vec![Unsupported::Type(text(1)), Unsupported::Type(text(2))];
    check([
        LoadError::Stopped,
        LoadError::Problems(vec![Problem::Unused { name: text(1) }]),
        LoadError::Unsupported(missing()),
        LoadError::OutOfMemory {
            needed_bytes: 9,
            available_bytes: 4,
        },
        LoadError::Device { reason: text(1) },
    ]);
    check([
        BackendError::OutOfMemory {
            needed_bytes: 9,
            available_bytes: 4,
        },
        BackendError::Option {
            what: "the context length",
            found: 0,
            min: 1,
            max: 9,
        },
        BackendError::Unsupported(missing()),
        BackendError::Device { reason: text(1) },
    ]);
}

#[test]
fn vocabularies_and_templates_are_spoken_of_in_german() {
    let found = || text(1);
    check([
        TokenizerError::UnknownModel { found: found() },
        TokenizerError::UnknownPreTokenizer { found: found() },
        TokenizerError::Empty,
        TokenizerError::TypeCount {
            expected: 3,
            found: 4,
        },
        TokenizerError::ScoreCount {
            expected: 3,
            found: 4,
        },
        TokenizerError::BadMerge {
            index: 5,
            found: found(),
        },
        TokenizerError::TooManySpecials { count: 6 },
        TokenizerError::NoTokenForByte { byte: 0x1f },
        TokenizerError::TextTooLong { found: 7 },
        TokenizerError::Absent,
        TokenizerError::Library { message: found() },
    ]);
    let message = || text(2);
    let templates = || {
        [
            TemplateError::TooLong { found: 7 },
            TemplateError::Syntax {
                line: 3,
                message: message(),
            },
            TemplateError::Refused { message: message() },
            TemplateError::Failed {
                line: 4,
                message: message(),
            },
            TemplateError::Endless,
            TemplateError::RenderedTooLong { found: 8 },
            TemplateError::NoFreeMark,
        ]
    };
    check(templates());
    let error = || TemplateError::Refused { message: message() };
    for used in [Builtin::ChatMl, Builtin::Plain] {
        check([
            Fallback::NoTemplate { used },
            Fallback::InvalidTemplate {
                error: error(),
                used,
            },
            Fallback::TemplateFailed {
                error: error(),
                used,
            },
        ]);
    }
    check([
        Fallback::SystemInUserTurn { error: error() },
        Fallback::TurnsMerged { error: error() },
        Fallback::SystemInUserTurnAndTurnsMerged { error: error() },
    ]);
    check([
        StopError::TooMany { found: 40 },
        StopError::TooLong {
            index: 1,
            found: 300,
        },
        StopError::Empty { index: 2 },
    ]);
}

#[test]
fn loads_and_checks_are_spoken_of_in_german() {
    let path = || PathBuf::from("/models/m31.gguf");
    check([
        LoadFailure::File(Box::new(file::refused(Refusal::NotFound))),
        LoadFailure::NoTokenizer { path: path() },
        LoadFailure::Tokenizer {
            path: path(),
            source: TokenizerError::Empty,
        },
        LoadFailure::Architecture {
            path: path(),
            source: ArchError::NoEmbedding,
        },
        LoadFailure::Problems {
            path: path(),
            problems: vec![Problem::Unused { name: text(1) }],
        },
        LoadFailure::Unsupported {
            path: path(),
            missing: vec![Unsupported::Type(text(1)), Unsupported::Type(text(2))],
        },
        LoadFailure::NoDevice(Unavailable::NoDriver),
        LoadFailure::NoBackend,
        LoadFailure::OutOfMemory {
            needed_bytes: 9,
            available_bytes: 4,
        },
        LoadFailure::Option(BackendError::Device { reason: text(1) }),
        LoadFailure::Stopped,
        LoadFailure::Broken { reason: text(1) },
        LoadFailure::NotOnDevice {
            passed_over: Vec::new(),
        },
        LoadFailure::Closed,
    ]);
    check([
        NotJudged::Stopped,
        NotJudged::Reference { reason: text(1) },
        NotJudged::Candidate { reason: text(1) },
        NotJudged::TooShort {
            found: 3,
            needed: 64,
        },
    ]);
}

#[test]
fn requests_are_spoken_of_in_german() {
    let outside = |what| SamplingError {
        what,
        found: 7.0,
        min: 0.0,
        max: 2.0,
    };
    check([
        RequestError::EmptyPrompt,
        RequestError::UnknownToken {
            index: 1,
            token: 2,
            vocabulary: 3,
        },
        RequestError::PromptTooLong {
            tokens: 9,
            ctx_len: 8,
        },
        RequestError::MaxTokens { found: 0, max: 9 },
        RequestError::Sampling(outside("temperature")),
        RequestError::Bias(BiasError::TooMany { found: 9, max: 8 }),
        RequestError::Bias(BiasError::UnknownToken {
            token: 9,
            vocabulary: 8,
        }),
        RequestError::Bias(BiasError::Value(outside("logit bias"))),
        RequestError::TopLogprobs { found: 9, max: 8 },
        RequestError::NoEmbedding(NoEmbedding::Pooling { found: 4 }),
        RequestError::Stop(StopError::Empty { index: 2 }),
    ]);
    for what in ["JSON schema", "regular expression", "grammar"] {
        check([
            ConstraintError::TooLong { what, found: 9 },
            ConstraintError::TooDeep { what, max: 8 },
            ConstraintError::Refused {
                what,
                reason: text(1),
            },
            ConstraintError::NoVocabulary,
        ]);
    }
}

#[test]
fn every_end_of_a_turn_has_german_words() {
    for code in [
        TurnCode::NoModel,
        TurnCode::ModelChanged,
        TurnCode::Unloaded,
        TurnCode::Busy,
        TurnCode::Closed,
        TurnCode::NotFinite,
        TurnCode::NothingAllowed,
        TurnCode::Stuck,
        TurnCode::NotOffered,
        TurnCode::DeviceLost,
        TurnCode::DeviceRejected,
        TurnCode::DeviceNotJudged,
        TurnCode::Broken,
        TurnCode::Internal,
    ] {
        says_the_same(&code.to_string(), turn_code(code));
    }
}
