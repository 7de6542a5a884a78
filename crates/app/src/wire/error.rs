//! What could not be done.

use serde::Serialize;
#[cfg(feature = "bindings")]
use ts_rs::TS;

/// Something that could not be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct WireError {
    /// For the window to act on.
    pub code: Code,
    /// For the person to read.
    pub message: String,
}

/// The errors that a window acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// No model is open.
    NoModel,
    /// The model file was refused; the message says why.
    Refused,
    /// The user stopped it.
    Stopped,
    /// The message and what goes before it do not fit in the context.
    TooLong,
    /// Too much is waiting already.
    Busy,
    /// It is not there (any more).
    NotFound,
    /// The store could not be read or written.
    Storage,
    /// The network did not give what was asked, or may not be asked at all.
    Network,
    /// Anything else.
    Internal,
}
