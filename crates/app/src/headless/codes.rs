//! Codes of refusals. Scripts rely on them, so they are written out here and not derived.

use candor_arch::ArchError;
use candor_engine::{LoadFailure, WhyNot};
use candor_modelfile::{AprError, ParseError, Refusal};

/// The code of a file that was not opened.
pub(super) fn refusal(reason: &Refusal) -> &'static str {
    match reason {
        Refusal::NotFound => "not_found",
        Refusal::IsDirectory => "is_directory",
        Refusal::NotAFile => "not_a_file",
        Refusal::NoPermission => "no_permission",
        Refusal::Empty => "empty",
        Refusal::Shrunk { .. } => "shrunk",
        Refusal::PartMissing { .. } => "part_missing",
        Refusal::PartsDiffer { .. } => "parts_differ",
        Refusal::PartName { .. } => "part_name",
        Refusal::Piece { .. } => "piece",
        Refusal::Io(_) => "io",
        Refusal::Parse(error) => parse(error),
        // The enum may grow; what is not known here is at least wrong with the file.
        _ => "refused",
    }
}

fn parse(error: &ParseError) -> &'static str {
    match error {
        ParseError::NotAModel { .. } => "not_a_model",
        ParseError::Truncated { .. } => "incomplete",
        ParseError::BigEndian => "big_endian",
        ParseError::UnsupportedVersion { .. } => "unsupported_version",
        ParseError::Split { .. } => "split",
        ParseError::UnsupportedType { .. } => "unsupported_type",
        ParseError::Apr(AprError::HeaderChecksum | AprError::Sections | AprError::Json(_)) => {
            "damaged"
        }
        ParseError::Apr(AprError::Version { .. }) => "unsupported_version",
        ParseError::Apr(_) => "unsupported_apr",
        ParseError::NestedArray { .. } => "unsupported_metadata",
        _ => "damaged",
    }
}

/// The code of a model that was not loaded.
pub(super) fn load(failure: &LoadFailure) -> &'static str {
    match failure {
        LoadFailure::File(error) => refusal(&error.reason),
        LoadFailure::NoTokenizer { .. } => "no_tokenizer",
        LoadFailure::Tokenizer { .. } => "unsupported_tokenizer",
        LoadFailure::Architecture {
            source: ArchError::NotChat { .. },
            ..
        } => "not_a_chat_model",
        LoadFailure::Architecture { .. } => "unsupported_architecture",
        LoadFailure::Problems { .. } => "problems",
        LoadFailure::Unsupported { .. } => "unsupported",
        LoadFailure::NotOnDevice { passed_over } => {
            match passed_over.last().map(|passed| &passed.why) {
                Some(WhyNot::Rejected(_)) => "f2_rejected",
                Some(WhyNot::NotJudged(_)) => "f2_not_judged",
                Some(_) | None => "no_gpu",
            }
        }
        LoadFailure::NoDevice(_) | LoadFailure::NoBackend => "no_device",
        LoadFailure::OutOfMemory { .. } => "out_of_memory",
        LoadFailure::Option(_) => "option",
        LoadFailure::Stopped => "stopped",
        LoadFailure::Broken { .. } => "broken",
        LoadFailure::Closed => "closed",
    }
}
