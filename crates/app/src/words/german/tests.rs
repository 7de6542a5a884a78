use std::io;
use std::path::PathBuf;

use candor_arch::{ArchError, Problem};
use candor_backend::{LoadError, OpenError as BackendError, Unavailable, Unsupported};
use candor_engine::{
    BiasError, ConstraintError, LoadFailure, NoEmbedding, NotJudged, RequestError, SamplingError,
    TurnCode,
};
use candor_modelfile::{
    AprError, Assumed, AssumedError, LooksLike, MetadataError, Needed, Note, OpenError, ParseError,
    PartsDifference, Purpose, Refusal, ValueKind,
};
use candor_text::{Builtin, Fallback, StopError, TemplateError, TokenizerError};

use super::*;
use crate::words::says_the_same;

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

fn refused(reason: Refusal) -> OpenError {
    let path = PathBuf::from("/models/m31.gguf");
    OpenError { path, reason }
}

fn refusals() -> Vec<Refusal> {
    let part = text(3);
    let differs = |why| Refusal::PartsDiffer { part: text(7), why };
    vec![
        Refusal::NotFound,
        Refusal::IsDirectory,
        Refusal::NotAFile,
        Refusal::NoPermission,
        Refusal::Empty,
        Refusal::Shrunk {
            found: 2_100_000_000,
            needed: 4_700_000_000,
        },
        Refusal::PartMissing { part: 2, parts: 5 },
        differs(PartsDifference::Whole),
        differs(PartsDifference::Number { part: 2, parts: 9 }),
        differs(PartsDifference::Tensors),
        differs(PartsDifference::Entry { key: text(4) }),
        differs(PartsDifference::Count {
            found: 11,
            expected: 12,
        }),
        differs(PartsDifference::Repeats { tensor: text(5) }),
        Refusal::PartName { part: 2, parts: 5 },
        Refusal::Piece { command: part },
        Refusal::Io(io::Error::other(text(6))),
    ]
}

fn damages() -> Vec<ParseError> {
    let tensor = || text(8);
    vec![
        ParseError::LimitExceeded {
            what: "metadata entries",
            found: 70,
            limit: 60,
        },
        ParseError::UnknownValueType {
            key: text(1),
            found: 99,
        },
        ParseError::NotText {
            what: "a tensor name",
            at: 41,
        },
        ParseError::DuplicateKey { key: text(1) },
        ParseError::DuplicateTensor { tensor: tensor() },
        ParseError::BadAlignment { found: 33 },
        ParseError::BadShape {
            tensor: tensor(),
            dims: vec![4, 0],
        },
        ParseError::PartialBlock {
            tensor: tensor(),
            quant: "Q4_K",
            row: 300,
            block_elems: 256,
        },
        ParseError::Misaligned {
            tensor: tensor(),
            offset: 17,
            alignment: 32,
        },
        ParseError::Overlap {
            first: text(1),
            second: text(2),
        },
        ParseError::OutOfRange {
            tensor: tensor(),
            end: 5_000,
            found: 1_234_567,
        },
    ]
}

fn parse_errors() -> Vec<ParseError> {
    let metadata = MetadataError::Missing { key: text(1) };
    let needed = [Needed::Exactly(4_700_000_000), Needed::AtLeast(24)];
    let truncated = needed.map(|needed| ParseError::Truncated { found: 3, needed });
    let others = vec![
        ParseError::BigEndian,
        ParseError::UnsupportedVersion { found: 1 },
        ParseError::UnsupportedVersion { found: 4 },
        ParseError::Split { part: 2, parts: 3 },
        ParseError::Metadata(metadata),
        ParseError::NestedArray { key: text(1) },
        ParseError::UnsupportedType {
            tensor: text(1),
            id: 16,
            name: Some("IQ2_XXS"),
        },
        ParseError::UnsupportedType {
            tensor: text(1),
            id: 77,
            name: None,
        },
    ];
    let foreign = looks().map(|looks_like| ParseError::NotAModel { looks_like });
    let apr = apr().into_iter().map(ParseError::Apr);
    let all = damages().into_iter().chain(truncated).chain(others);
    all.chain(foreign).chain(apr).collect()
}

fn looks() -> [LooksLike; 17] {
    [
        LooksLike::Apr,
        LooksLike::SafeTensors,
        LooksLike::PyTorch,
        LooksLike::OldGgml,
        LooksLike::GitLfsPointer,
        LooksLike::Html,
        LooksLike::Xml,
        LooksLike::Json,
        LooksLike::Zip,
        LooksLike::Gzip,
        LooksLike::Png,
        LooksLike::Jpeg,
        LooksLike::Pdf,
        LooksLike::Elf,
        LooksLike::Zeros,
        LooksLike::Text,
        LooksLike::Unknown([1, 2, 3, 4]),
    ]
}

fn apr() -> Vec<AprError> {
    vec![
        AprError::Version { found: 3 },
        AprError::Compressed,
        AprError::Encrypted,
        AprError::ColumnMajor,
        AprError::HeaderChecksum,
        AprError::Sections,
        AprError::Storage {
            tensor: text(1),
            code: 9,
            size: 80,
            elems: 64,
        },
        AprError::Family { name: text(1) },
        AprError::Missing { what: "num_heads" },
        AprError::Shapes {
            what: "num_heads",
            stated: 12,
        },
        AprError::NotQwen2,
        AprError::Stamped,
        AprError::LooseExperts { tensor: text(1) },
        AprError::Halves { tensor: text(1) },
    ]
}

#[test]
fn what_is_wrong_with_a_file_is_said_in_german_with_the_same_facts() {
    check(refusals().into_iter().map(refused));
    check(parse_errors());
    let kinds = [
        ValueKind::Integer,
        ValueKind::Float,
        ValueKind::Bool,
        ValueKind::Text,
        ValueKind::Integers,
        ValueKind::Floats,
        ValueKind::Bools,
        ValueKind::Texts,
    ];
    check(kinds.map(|expected| MetadataError::WrongKind {
        key: text(1),
        expected,
        found: ValueKind::Text,
    }));
    check([
        MetadataError::OutOfRange {
            key: text(1),
            found: -3,
            limit: 8,
        },
        MetadataError::WrongLength {
            key: text(1),
            expected: 4,
            found: 5,
        },
    ]);
    check([AssumedError::Form { found: text(1) }]);
    for statement in ["context_length=0", "rope.freq_base=x", "nothing=1"] {
        let mut assumed = Assumed::default();
        let error = assumed.add(statement).unwrap_err();
        assert!(error.to_string() != error.german(), "{error}");
    }
}

#[test]
fn every_advice_for_a_file_is_there_in_german() {
    let parse = parse_errors().into_iter().map(Refusal::Parse);
    for error in refusals().into_iter().chain(parse).map(refused) {
        let said = advice(&error);
        assert_eq!(said.is_some(), error.advice().is_some(), "{error}");
        if let Some(said) = said {
            says_the_same(
                said.in_tongue(Tongue::English),
                said.in_tongue(Tongue::German),
            );
        }
    }
}

#[test]
fn what_is_noted_of_a_file_is_said_in_german_with_the_same_facts() {
    check([
        Note::RopeType { stated: 7 },
        Note::Family {
            stated: text(1),
            read_as: "qwen2",
        },
        Note::Context { assumed: 4_096 },
        Note::Unpacked {
            tensors: 24,
            bytes: 1_500_000_000,
        },
        Note::NoSplitRule,
        Note::NoScores,
        Note::Stamped,
        Note::Told {
            key: "context_length",
            value: text(2),
        },
        Note::NoTokenizer,
        Note::SidecarUnusable,
        Note::SidecarKind { found: text(1) },
        Note::SidecarUnread {
            file: text(1),
            reason: text(2),
        },
    ]);
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
    let missing = || vec![Unsupported::Type(text(1)), Unsupported::Type(text(2))];
    check([
        LoadError::Stopped,
        LoadError::Problems(vec![Problem::Unused { name: name() }]),
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
fn loads_and_requests_are_spoken_of_in_german() {
    let path = || PathBuf::from("/models/m31.gguf");
    check([
        LoadFailure::File(Box::new(refused(Refusal::NotFound))),
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
