//! The door for programs: one request that is no stored conversation, from its messages to the log
//! of its reply.
//!
//! A [`Source`] says which models there are and opens them; the [`Opened`] model renders, encodes
//! and asks the engine. There are two sources: [`Standalone`], an engine of its own for the command
//! line, and [`OfApp`], the engine that the window uses, where the user's own chat comes first.

mod computed;
mod described;
mod names;
mod of_app;
mod opened;
mod standalone;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use candor_backend::CancelToken;
use candor_engine::{NotTaken, RequestError};

use crate::file_hash::sha256;
use crate::headless::Failure;

pub use candor_text::reply::{Part, ReplyParser, ToolCall, Tools, join as join_parts};
pub use computed::{Computed, served_name};
pub(crate) use computed::{judgement, reason};
pub use described::{Described, DescribedFiles};
pub use names::{model_id, wanted_id};
pub use of_app::OfApp;
pub use opened::{Opened, Question};
pub use standalone::{OnRequest, Standalone};

/// Most models that are listed: more than this nobody looks through.
pub(crate) const LISTED_MAX: usize = 500;

/// A model that a program may ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name in every protocol: the stem of the file's name in lower case.
    pub id: String,
    /// The file.
    pub path: PathBuf,
    /// Bytes of the file, with all parts of a split one.
    pub size_bytes: u64,
    /// When it was last written, in seconds since 1970; 0 if the system does not say.
    pub modified_s: u64,
}

impl Listed {
    /// Tells this state of the file from others, as 64 hexadecimal digits: the SHA-256 of its name,
    /// size and time. That of its content would need gigabytes to be read; for a stranger's program
    /// that compares them, both do.
    pub fn digest(&self) -> String {
        let what = format!("{}\n{}\n{}", self.id, self.size_bytes, self.modified_s);
        sha256(what.as_bytes())
    }

    pub(crate) fn of(path: &Path, size_bytes: u64) -> Self {
        let facts = std::fs::metadata(path).and_then(|facts| facts.modified());
        let since = facts.ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        Self {
            id: model_id(path),
            path: path.to_owned(),
            size_bytes,
            modified_s: since.map_or(0, |since| since.as_secs()),
        }
    }
}

/// Who has the models. Every call may wait for the disk, and [`Source::open`] for a whole load.
pub trait Source: Send + Sync + 'static {
    /// The models that may be asked for.
    fn listed(&self) -> Vec<Listed>;

    /// The model that answers now.
    fn opened(&self) -> Option<Arc<Opened>>;

    /// The model of this id, loaded if that is allowed; none stands for the one that answers now.
    /// A load that nobody waits for any more is stopped.
    ///
    /// # Errors
    /// [`NotOpened`].
    fn open(&self, id: Option<&str>, cancel: &CancelToken) -> Result<Arc<Opened>, NotOpened>;

    /// Gives the model's memory back, unless it is somebody else's to keep. With an id only if it is
    /// this model that answers.
    fn unload(&self, id: Option<&str>);

    /// Whether programs may have a model's memory given back at all.
    fn unloads_on_request(&self) -> bool;
}

/// Why no model answers.
#[derive(Debug, thiserror::Error)]
pub enum NotOpened {
    /// Nothing is loaded, and no model was named.
    #[error("no model is loaded; name one in `model`")]
    NoModel,
    /// No model has this name.
    #[error("there is no model named `{asked}`; there are: {}", names::list(.known))]
    Unknown {
        /// The name as it was given.
        asked: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// Another model is loaded, and programs may not change that.
    #[error(
        "`{asked}` is not loaded, and models are not loaded on request here; `{answers}` answers"
    )]
    NotAllowed {
        /// The name as it was given.
        asked: String,
        /// The one that answers.
        answers: String,
    },
    /// The load came to nothing.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// A load that was waited for by somebody else came to nothing.
    #[error("{message}")]
    Refused {
        /// Why, in words.
        message: String,
    },
    /// Whoever asked has gone.
    #[error("stopped")]
    Stopped,
}

/// Why a request was not taken.
#[derive(Debug, thiserror::Error)]
pub enum NotAsked {
    /// It cannot be served by this model.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The engine took no command.
    #[error(transparent)]
    Engine(#[from] NotTaken),
    /// A text cannot be read by the model.
    #[error(transparent)]
    Text(#[from] candor_text::TokenizerError),
}

/// Every model file of a folder, each split model once.
pub(crate) fn in_folder(folder: &Path) -> Vec<Listed> {
    let mut found: Vec<Listed> = Vec::new();
    let mut paths = crate::library::in_folder(folder);
    paths.sort();
    for path in paths {
        let listed = Listed::of(&path, crate::library::size(&path).unwrap_or(0));
        if !found.iter().any(|other| other.id == listed.id) {
            found.push(listed);
        }
    }
    found
}
