//! What can go wrong between the engine and a backend.

use candor_arch::Problem;

use crate::batch::SlotId;
use crate::model::Unsupported;

/// Why a model was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The caller asked for the end.
    #[error("loading was stopped")]
    Stopped,
    /// The file does not hold what its architecture needs.
    #[error("the file does not fit its architecture: {}", first(.0))]
    Problems(Vec<Problem>),
    /// The backend cannot run this model.
    #[error("this backend cannot run the model: {}", first(.0))]
    Unsupported(Vec<Unsupported>),
    /// Not enough memory.
    #[error("the model needs {needed_bytes} bytes of memory, {available_bytes} are available")]
    OutOfMemory {
        /// What the weights take.
        needed_bytes: u64,
        /// What there is.
        available_bytes: u64,
    },
    /// The device does not work.
    #[error("the device does not work: {reason}")]
    Device {
        /// In plain words.
        reason: String,
    },
}

fn first<T: std::fmt::Display>(all: &[T]) -> String {
    match all {
        [] => String::from("no reason given"),
        [one] => one.to_string(),
        [one, rest @ ..] => format!("{one} (and {} more)", rest.len()),
    }
}

/// Why a session was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The state does not fit.
    #[error("the context needs {needed_bytes} bytes of memory, {available_bytes} are available")]
    OutOfMemory {
        /// What the state takes.
        needed_bytes: u64,
        /// What there is.
        available_bytes: u64,
    },
    /// An option outside its bounds.
    #[error("{what} is {found}; it has to be between {min} and {max}")]
    Option {
        /// Which option.
        what: &'static str,
        /// As given.
        found: usize,
        /// The least allowed.
        min: usize,
        /// The most allowed.
        max: usize,
    },
    /// The backend has no such sessions.
    #[error("this backend cannot open the session: {}", first(.0))]
    Unsupported(Vec<Unsupported>),
    /// The device does not work.
    #[error("the device does not work: {reason}")]
    Device {
        /// In plain words.
        reason: String,
    },
}

/// Why a forward failed. The slots of the batch keep the positions they had.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SessionError {
    /// The slot's context is used up.
    #[error("slot {} has {position} of {ctx_len} tokens; {asked} more do not fit", slot.0)]
    ContextFull {
        /// Which.
        slot: SlotId,
        /// Tokens it holds.
        position: usize,
        /// Tokens it may hold.
        ctx_len: usize,
        /// Tokens asked for.
        asked: usize,
    },
    /// The pool that all slots share is used up.
    #[error("the state pool is full: {asked} tokens asked for, {free} are free")]
    StateFull {
        /// Tokens asked for.
        asked: usize,
        /// Tokens that would fit.
        free: usize,
    },
    /// No such slot.
    #[error("slot {} does not exist; there are {slots}", slot.0)]
    UnknownSlot {
        /// As given.
        slot: SlotId,
        /// How many there are.
        slots: usize,
    },
    /// A token that the vocabulary does not have.
    #[error("token {token} is outside the vocabulary of {vocabulary}")]
    UnknownToken {
        /// As given.
        token: u32,
        /// Size of the vocabulary.
        vocabulary: usize,
    },
    /// A ticket of another forward, or one more than may be open.
    #[error("this ticket is not open")]
    BadTicket,
    /// A batch without rows.
    #[error("a batch without rows")]
    EmptyBatch,
    /// The computation gave something that is no number.
    #[error("the computation gave a value that is not a number at {node}")]
    NotFinite {
        /// Dotted name of the node.
        node: String,
    },
    /// The device stopped working; the session is of no further use.
    #[error("the device stopped working: {reason}")]
    DeviceLost {
        /// In plain words.
        reason: String,
    },
}
