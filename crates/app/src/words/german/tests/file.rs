//! Model files.

use std::io;

use candor_modelfile::{
    AprError, Assumed, AssumedError, LooksLike, MetadataError, Needed, Note, OpenError, ParseError,
    PartsDifference, Refusal, ValueKind,
};

use super::*;

pub(super) fn refused(reason: Refusal) -> OpenError {
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
fn a_refusal_reads_so_in_german() {
    let truncated = ParseError::Truncated {
        found: 2_100_000_000,
        needed: Needed::Exactly(4_700_000_000),
    };
    let looks_like = LooksLike::Html;
    let limit = ParseError::LimitExceeded {
        what: "metadata entries",
        found: 70_000,
        limit: 65_536,
    };
    let cases = [
        (
            Refusal::Parse(truncated),
            "m31.gguf: Die Datei ist unvollständig: Sie hat 2,1 GB von 4,7 GB, wahrscheinlich ein \
             abgebrochener Download",
            Some("lade die Datei noch einmal herunter"),
        ),
        (
            Refusal::Parse(ParseError::NotAModel { looks_like }),
            "m31.gguf: Das ist keine Modelldatei im Format GGUF oder APR: Es ist eine Webseite \
             (HTML)",
            Some(
                "der Server hat eine Seite statt des Modells geschickt; lade die Datei noch einmal \
                 herunter",
            ),
        ),
        (
            Refusal::Parse(limit),
            "m31.gguf: Die Datei ist beschädigt: Sie nennt 70000 Einträge in den Metadaten, mehr \
             als die Grenze von 65536",
            Some(
                "die Datei ist nicht, was sie sein soll; lade sie noch einmal herunter oder hole \
                 eine andere",
            ),
        ),
        (
            Refusal::NotAFile,
            "m31.gguf: Das ist keine gewöhnliche Datei",
            None,
        ),
    ];
    for (reason, want, what_to_do) in cases {
        let error = refused(reason);
        assert_eq!(error.german(), want);
        let said = advice(&error);
        let said = said.as_ref().map(|said| said.in_tongue(Tongue::German));
        assert_eq!(said, what_to_do);
    }
}
