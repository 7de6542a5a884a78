//! The one error of this crate's public face.

use std::error::Error as StdError;
use std::fmt;

use rusqlite::ErrorCode;

use crate::wire::{Code, WireError};

/// Something that could not be done: a code for the shell to act on, a sentence for the person,
/// and what lay beneath for the log.
#[derive(Debug)]
pub struct Error {
    /// For the shell.
    pub code: Code,
    /// For the person, in plain words.
    pub message: String,
    /// What lay beneath.
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error with nothing beneath it.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            source: None,
        }
    }

    /// The same with what lay beneath.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// As it crosses to the window.
    pub fn wire(&self) -> WireError {
        WireError {
            code: self.code,
            message: self.message.clone(),
        }
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(
            Code::NotFound,
            format!("This {what} is not there any more."),
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<rusqlite::Error> for Error {
    fn from(source: rusqlite::Error) -> Self {
        let message = match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => String::from(
                "The disk is full, so this could not be kept. What was kept before is unharmed; \
                 free some space and try again.",
            ),
            _ => format!("The store of conversations could not be used: {source}."),
        };
        Self::new(Code::Storage, message).because(source)
    }
}

impl From<Error> for WireError {
    fn from(error: Error) -> Self {
        error.wire()
    }
}
