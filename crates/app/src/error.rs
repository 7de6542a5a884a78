//! The one error of this crate's public face.

use std::error::Error as StdError;
use std::fmt;

use rusqlite::ErrorCode;

use crate::wire::{Code, WireError};
use crate::words::{Phrase, Tongue, phrase};

/// What may be gone by the time somebody asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    Conversation,
    Download,
    File,
    Message,
    Model,
    Question,
    Record,
    Reply,
    Text,
}

/// Something that could not be done: a code for the shell to act on, a sentence for the person,
/// and what lay beneath for the log.
#[derive(Debug)]
pub struct Error {
    /// For the shell.
    pub code: Code,
    /// For the person, in plain words.
    pub message: Phrase,
    /// What lay beneath.
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error with nothing beneath it.
    pub fn new(code: Code, message: Phrase) -> Self {
        let source = None;
        Self {
            code,
            message,
            source,
        }
    }

    /// The same with what lay beneath.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// As it crosses to a window of this language.
    pub fn wire(&self, tongue: Tongue) -> WireError {
        WireError {
            code: self.code,
            message: self.message.to(tongue),
        }
    }

    pub(crate) fn not_found(what: Thing) -> Self {
        let message = match what {
            Thing::Conversation => phrase!(
                "This conversation is not there any more.",
                "Dieses Gespräch gibt es nicht mehr.",
            ),
            Thing::Download => phrase!(
                "This download is not there any more.",
                "Diesen Download gibt es nicht mehr.",
            ),
            Thing::File => phrase!(
                "This file is not there any more.",
                "Diese Datei gibt es nicht mehr.",
            ),
            Thing::Message => phrase!(
                "This message is not there any more.",
                "Diese Nachricht gibt es nicht mehr.",
            ),
            Thing::Model => phrase!(
                "This model is not there any more.",
                "Dieses Modell gibt es nicht mehr.",
            ),
            Thing::Question => phrase!(
                "This question is not there any more.",
                "Diese Frage gibt es nicht mehr.",
            ),
            Thing::Record => phrase!(
                "This record is not there any more.",
                "Dieses Protokoll gibt es nicht mehr.",
            ),
            Thing::Reply => phrase!(
                "This reply is not there any more.",
                "Diese Antwort gibt es nicht mehr.",
            ),
            Thing::Text => phrase!(
                "This text is not there any more.",
                "Diesen Text gibt es nicht mehr.",
            ),
        };
        Self::new(Code::NotFound, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message.fmt(f)
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
            Some(ErrorCode::DiskFull) => phrase!(
                "The disk is full, so this could not be kept. What was kept before is unharmed; \
                 free some space and try again.",
                "Der Datenträger ist voll, deshalb ließ sich dies nicht aufheben. Was früher \
                 aufgehoben wurde, ist unversehrt; schaffe Platz und versuche es noch einmal.",
            ),
            _ => phrase!(
                "The store of conversations could not be used: {source}.",
                "Der Speicher der Gespräche ließ sich nicht nutzen: {source}.",
                source,
            ),
        };
        Self::new(Code::Storage, message).because(source)
    }
}
