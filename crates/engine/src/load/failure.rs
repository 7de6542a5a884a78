//! Why a model was not loaded.

use std::fmt;
use std::path::{Path, PathBuf};

use candor_arch::{ArchError, Problem};
use candor_backend::{OpenError, Unavailable, Unsupported};
use candor_modelfile::OpenError as FileError;
use candor_text::TokenizerError;

use super::passed::PassedOver;

/// What a shell acts on when a load failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadCode {
    /// The file is not one that this version can run; the message says why.
    Refused,
    /// Somebody stopped it.
    Stopped,
    /// The model does not fit.
    OutOfMemory,
    /// An option outside its bounds.
    Option,
    /// A device was asked for, and it cannot serve.
    NoDevice,
    /// A fault of this program.
    Failed,
    /// The engine has ended.
    Closed,
}

/// Why a model was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadFailure {
    /// The file was refused.
    #[error(transparent)]
    File(Box<FileError>),
    /// It has no vocabulary.
    #[error("{}: the file has no tokenizer, so it cannot be chatted with", name(.path))]
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
    /// Its architecture cannot be built.
    #[error("{}: {source}", name(.path))]
    Architecture {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ArchError,
    },
    /// It does not hold what its architecture needs.
    #[error("{}: {}", name(.path), first(.problems))]
    Problems {
        /// The file.
        path: PathBuf,
        /// All of them.
        problems: Vec<Problem>,
    },
    /// No backend can run it.
    #[error("{}: this version cannot run {}", name(.path), first(.missing))]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// All of it.
        missing: Vec<Unsupported>,
    },
    /// The backend cannot be used.
    #[error("nothing can compute on this machine: {0:?}")]
    NoDevice(Unavailable),
    /// The engine was set up without a backend.
    #[error("no backend was set up")]
    NoBackend,
    /// The model does not fit.
    #[error("the model needs {needed_bytes} bytes of memory, {available_bytes} are available")]
    OutOfMemory {
        /// What it takes.
        needed_bytes: u64,
        /// What there is.
        available_bytes: u64,
    },
    /// An option outside its bounds.
    #[error(transparent)]
    Option(OpenError),
    /// Somebody stopped it.
    #[error("loading was stopped")]
    Stopped,
    /// The backend broke down.
    #[error("the load broke down: {reason}")]
    Broken {
        /// What it said.
        reason: String,
    },
    /// A device was asked for, and only the reference can serve.
    #[error("the device that was asked for cannot serve: {}", first(.passed_over))]
    NotOnDevice {
        /// Why, in the order in which they were asked.
        passed_over: Vec<PassedOver>,
    },
    /// The engine has ended.
    #[error("the engine has ended")]
    Closed,
}

impl From<FileError> for LoadFailure {
    /// Boxed, because it is by far the largest: every answer to a load has room for it.
    fn from(error: FileError) -> Self {
        Self::File(Box::new(error))
    }
}

impl LoadFailure {
    /// What a shell acts on.
    pub fn code(&self) -> LoadCode {
        match self {
            Self::File(_)
            | Self::NoTokenizer { .. }
            | Self::Tokenizer { .. }
            | Self::Architecture { .. }
            | Self::Problems { .. }
            | Self::Unsupported { .. } => LoadCode::Refused,
            Self::Stopped => LoadCode::Stopped,
            Self::OutOfMemory { .. } => LoadCode::OutOfMemory,
            Self::Option(_) => LoadCode::Option,
            Self::NotOnDevice { .. } => LoadCode::NoDevice,
            Self::NoDevice(_) | Self::NoBackend | Self::Broken { .. } => LoadCode::Failed,
            Self::Closed => LoadCode::Closed,
        }
    }
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

fn first<T: fmt::Display>(all: &[T]) -> String {
    match all {
        [] => String::from("something that it does not name"),
        [one] => one.to_string(),
        [one, rest @ ..] => format!("{one} (and {} more)", rest.len()),
    }
}
