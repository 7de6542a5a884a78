//! A home for one test: nothing of the user's is read or written.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

/// A folder of its own for conversations, settings and files, that outlives the windows opened
/// in it.
pub struct Home {
    path: PathBuf,
    /// What the program finds in its environment beside what the test does.
    variables: Vec<(OsString, OsString)>,
    /// Removed with everything in it at the end.
    _folder: TempDir,
}

impl Home {
    /// An empty one.
    ///
    /// # Errors
    /// If there is no room for it.
    pub fn new() -> Result<Self> {
        Self::below("home")
    }

    /// An empty one, in a folder of this name.
    ///
    /// # Errors
    /// If there is no room for it.
    pub fn below(name: &str) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("candor-window-").tempdir();
        let folder = folder.context("a temporary folder")?;
        let path = folder.path().join(name);
        fs::create_dir(&path).with_context(|| path.display().to_string())?;
        Ok(Self {
            path,
            variables: Vec::new(),
            _folder: folder,
        })
    }

    /// Where the program keeps its things.
    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// A file or folder in it.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path().join(name)
    }

    /// What the user chose before the program starts, as its settings file says it.
    ///
    /// # Errors
    /// If it cannot be written down.
    pub fn write_settings(&self, json: &str) -> Result<()> {
        fs::create_dir_all(self.data())?;
        Ok(fs::write(self.data().join("settings.json"), json)?)
    }

    /// The programs that are started from now on find this in their environment.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.variables.push((name.into(), value.into()));
    }

    pub(crate) fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let pairs = self.variables.iter();
        pairs.map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// From now on, the file dialog answers with this file.
    ///
    /// # Errors
    /// If it cannot be written down.
    pub fn answer_the_dialog_with(&self, path: &Path) -> Result<()> {
        Ok(fs::write(
            self.dialog_answer(),
            path.as_os_str().as_bytes(),
        )?)
    }

    /// From now on, the file dialog is cancelled.
    ///
    /// # Errors
    /// If it cannot be written down.
    pub fn cancel_the_dialog(&self) -> Result<()> {
        Ok(fs::write(self.dialog_answer(), b"")?)
    }

    /// A second name in this home for a file, without its bytes a second time where the disk can
    /// do that.
    ///
    /// # Errors
    /// If neither a link nor a copy can be made.
    pub fn place(&self, file: &Path, name: &str) -> Result<()> {
        let place = self.join(name);
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder)?;
        }
        if fs::hard_link(file, &place).is_err() {
            fs::copy(file, &place).with_context(|| place.display().to_string())?;
        }
        Ok(())
    }

    pub(crate) fn dialog_answer(&self) -> PathBuf {
        self.path().join("dialog-answer")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
