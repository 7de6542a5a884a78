//! Why a backend does not serve: values, because the user reads them.

use std::fmt;
use std::sync::Arc;

use candor_backend::{DeviceInfo, LoadError, OpenError, Unavailable, Unsupported};

use crate::guard::{NotJudged, Report};

/// A backend that was asked before the one that serves.
#[derive(Clone, Debug, PartialEq)]
pub struct PassedOver {
    /// What it would have computed on, where that is known.
    pub device: Option<DeviceInfo>,
    /// Why it does not.
    pub why: WhyNot,
}

/// Why a backend does not serve.
#[derive(Clone, Debug, PartialEq)]
pub enum WhyNot {
    /// Its device cannot be used.
    Unavailable(Unavailable),
    /// It cannot run this model.
    Unsupported(Vec<Unsupported>),
    /// The model does not fit into its memory.
    OutOfMemory {
        /// What it takes.
        needed_bytes: u64,
        /// What there is.
        available_bytes: u64,
    },
    /// It could not be readied.
    Failed {
        /// What it said.
        reason: String,
    },
    /// It computes something else than the reference.
    Rejected(Arc<Report>),
    /// Nobody could tell whether it computes what the reference does.
    NotJudged(NotJudged),
    /// It served, and stopped working.
    FailedLater {
        /// What it said.
        reason: String,
    },
    /// The user wants the reference.
    ChosenByUser,
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(why) => write!(f, "it cannot be used ({why:?})"),
            Self::Unsupported(missing) => match &missing[..] {
                [] => f.write_str("it cannot run this model"),
                [one] => write!(f, "it cannot run {one}"),
                [one, rest @ ..] => write!(f, "it cannot run {one} (and {} more)", rest.len()),
            },
            Self::OutOfMemory {
                needed_bytes,
                available_bytes,
            } => write!(
                f,
                "the model needs {needed_bytes} bytes of its memory, {available_bytes} are free"
            ),
            Self::Failed { reason } => write!(f, "it could not be readied: {reason}"),
            Self::Rejected(report) => write!(f, "{}", report.headline()),
            Self::NotJudged(why) => write!(f, "it could not be judged: {why}"),
            Self::FailedLater { reason } => write!(f, "it stopped working: {reason}"),
            Self::ChosenByUser => f.write_str("chosen by you"),
        }
    }
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.device {
            Some(device) => write!(f, "{}: {}", device.name, self.why),
            None => self.why.fmt(f),
        }
    }
}

impl From<OpenError> for WhyNot {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::OutOfMemory {
                needed_bytes,
                available_bytes,
            } => Self::OutOfMemory {
                needed_bytes,
                available_bytes,
            },
            OpenError::Unsupported(missing) => Self::Unsupported(missing),
            OpenError::Option { .. } | OpenError::Device { .. } => Self::Failed {
                reason: error.to_string(),
            },
        }
    }
}

impl From<LoadError> for WhyNot {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Unsupported(missing) => Self::Unsupported(missing),
            LoadError::OutOfMemory {
                needed_bytes,
                available_bytes,
            } => Self::OutOfMemory {
                needed_bytes,
                available_bytes,
            },
            LoadError::Stopped | LoadError::Problems(_) | LoadError::Device { .. } => {
                Self::Failed {
                    reason: error.to_string(),
                }
            }
        }
    }
}
