//! Why a command gave no result: for a person a sentence, for a script a code.

use std::path::{Path, PathBuf};

use candor_engine::direct::DirectError;
use candor_engine::{LoadCode, LoadFailure, NotTaken, RequestError, WhyNot};
use candor_modelfile::OpenError;
use candor_text::TokenizerError;

use super::codes;
use crate::words::{self, German, Phrase, Tongue, phrase};

/// Why a command gave no result.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The file was not opened.
    #[error(transparent)]
    File(#[from] OpenError),
    /// The file has no vocabulary.
    #[error("{}: the file has no tokenizer", name(.path))]
    NoTokenizer {
        /// The file.
        path: PathBuf,
    },
    /// Its vocabulary cannot be used.
    #[error("{}: {source}", name(.path))]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// Why.
        source: TokenizerError,
    },
    /// The model was not loaded.
    #[error("{}", words::load_failure(.source))]
    Load {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<LoadFailure>,
    },
    /// A text cannot be encoded.
    #[error(transparent)]
    Encode(#[from] TokenizerError),
    /// The request cannot be served by this model.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The computation failed.
    #[error(transparent)]
    Direct(DirectError),
    /// The engine did not take a command.
    #[error(transparent)]
    NotTaken(#[from] NotTaken),
    /// A graphics card was asked for, and none serves.
    #[error("the GPU cannot serve: {reason}")]
    NoGpu {
        /// In plain words.
        reason: String,
    },
    /// Somebody stopped it.
    #[error("stopped")]
    Stopped,
}

/// What a shell does about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The model file is not one that can be used.
    Refused,
    /// What was asked for makes no sense.
    Usage,
    /// The card was asked for and cannot serve.
    NoGpu,
    /// The card was asked for and computes something else than the processor.
    Rejected,
    /// The card was asked for and could not be judged.
    NotJudged,
    /// Somebody stopped it.
    Stopped,
    /// Anything else.
    Failed,
}

impl Failure {
    /// What a shell does about it.
    pub fn kind(&self) -> Kind {
        match self {
            Self::File(_) | Self::NoTokenizer { .. } | Self::Tokenizer { .. } => Kind::Refused,
            Self::Load { source, .. } => match source.code() {
                LoadCode::Refused => Kind::Refused,
                LoadCode::Option => Kind::Usage,
                LoadCode::Stopped => Kind::Stopped,
                LoadCode::NoDevice => of_device(source),
                LoadCode::OutOfMemory | LoadCode::Failed | LoadCode::Closed => Kind::Failed,
            },
            Self::Request(_) | Self::Direct(DirectError::Request(_)) => Kind::Usage,
            Self::NoGpu { .. } => Kind::NoGpu,
            Self::Stopped => Kind::Stopped,
            Self::Encode(_) | Self::Direct(_) | Self::NotTaken(_) => Kind::Failed,
        }
    }

    /// For scripts: stays the same when the words change.
    pub fn code(&self) -> &'static str {
        match self {
            Self::File(error) => codes::refusal(&error.reason),
            Self::NoTokenizer { .. } => "no_tokenizer",
            Self::Tokenizer { .. } => "unsupported_tokenizer",
            Self::Load { source, .. } => codes::load(source),
            Self::Encode(_) => "text",
            Self::Request(_) | Self::Direct(DirectError::Request(_)) => "request",
            Self::Direct(_) => "computation",
            Self::NotTaken(_) => "engine",
            Self::NoGpu { .. } => "no_gpu",
            Self::Stopped => "stopped",
        }
    }

    /// The model file that it is about.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(error) => Some(&error.path),
            Self::NoTokenizer { path } | Self::Tokenizer { path, .. } | Self::Load { path, .. } => {
                Some(path)
            }
            _ => None,
        }
    }

    /// What a person can do about it, where there is something.
    pub fn advice(&self) -> Option<Phrase> {
        match self {
            Self::File(error) => words::advice(error),
            Self::Load { source, .. } => match &**source {
                LoadFailure::File(error) => words::advice(error),
                LoadFailure::OutOfMemory { .. } => Some(phrase!(
                    "close other programs, ask for a shorter context, or open a smaller file",
                    "schließe andere Programme, verlange einen kürzeren Kontext oder öffne eine \
                     kleinere Datei",
                )),
                _ => None,
            },
            _ => None,
        }
    }
}

/// In the window only what is wrong with a file is said; the rest is for the command line.
impl German for Failure {
    fn german(&self) -> String {
        match self {
            Self::File(error) => error.german(),
            Self::NoTokenizer { path } => {
                format!("{}: Die Datei hat keinen Tokenizer", name(path))
            }
            Self::Tokenizer { path, source } => {
                format!("{}: {}", name(path), words::capital(&source.german()))
            }
            Self::Load { source, .. } => words::load_failure(source).to(Tongue::German),
            Self::Encode(error) => error.german(),
            Self::Request(error) => error.german(),
            Self::Direct(error) => format!("die Berechnung ist gescheitert ({error})"),
            Self::NotTaken(NotTaken::Busy) => String::from("die Engine hat zu viel zu tun"),
            Self::NotTaken(NotTaken::Closed) => String::from("die Engine ist beendet"),
            Self::NoGpu { reason } => format!("die GPU kann nicht rechnen ({reason})"),
            Self::Stopped => String::from("angehalten"),
        }
    }
}

impl From<DirectError> for Failure {
    fn from(error: DirectError) -> Self {
        match error {
            DirectError::Stopped => Self::Stopped,
            other => Self::Direct(other),
        }
    }
}

/// Why the card that was asked for does not serve.
fn of_device(failure: &LoadFailure) -> Kind {
    let LoadFailure::NotOnDevice { passed_over } = failure else {
        return Kind::NoGpu;
    };
    match passed_over.last().map(|passed| &passed.why) {
        Some(WhyNot::Rejected(_)) => Kind::Rejected,
        Some(WhyNot::NotJudged(_)) => Kind::NotJudged,
        Some(_) | None => Kind::NoGpu,
    }
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
