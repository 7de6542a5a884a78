//! What is kept of downloads from one start to the next: one small file, replaced as a whole when
//! something begins or ends. How far a file is, its own length says.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::settings::replace;
use crate::wire::Code;
use crate::words::{Phrase, Tongue, phrase};

/// More downloads than anybody has under way.
pub(super) const JOBS_MAX: usize = 100;

/// A download.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Entry {
    pub(super) repo: String,
    /// Path of the first file at its place.
    pub(super) path: String,
    pub(super) files: Vec<FileEntry>,
    /// Why it failed, if it did.
    pub(super) failure: Option<String>,
    /// The same in German; none where an earlier version wrote it.
    pub(super) failure_german: Option<String>,
}

impl Entry {
    /// Why it failed, if it did.
    pub(super) fn failure(&self) -> Option<Phrase> {
        let english = self.failure.as_ref()?;
        let german = self.failure_german.as_ref().unwrap_or(english);
        Some(Phrase::new(english, german))
    }

    pub(super) fn note_failure(&mut self, failure: Option<&Phrase>) {
        let told = |tongue| failure.map(|failure| failure.to(tongue));
        self.failure = told(Tongue::English);
        self.failure_german = told(Tongue::German);
    }
}

/// A file of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct FileEntry {
    pub(super) url: String,
    pub(super) size: u64,
    pub(super) sha256: Option<String>,
    /// Where it belongs, below the folder of models.
    pub(super) place: String,
    /// The server's mark of the version that is being fetched.
    pub(super) version: Option<String>,
    /// It is here and was checked, under the name of a part.
    pub(super) is_checked: bool,
}

/// All of them; none where the file is not there, or is not understood: what came of them stays
/// in its place, and can be asked for again.
pub(super) fn read(path: &Path) -> Vec<Entry> {
    let text = fs::read(path).unwrap_or_default();
    let mut entries: Vec<Entry> = serde_json::from_slice(&text).unwrap_or_default();
    entries.truncate(JOBS_MAX);
    entries
}

pub(super) fn write(path: &Path, entries: &[Entry]) -> Result<(), Error> {
    replace(path, &entries).map_err(|source| {
        let message = phrase!(
            "The list of downloads could not be saved: {source}.",
            "Die Liste der Downloads ließ sich nicht speichern: {source}.",
            source,
        );
        Error::new(Code::Storage, message).because(source)
    })
}
