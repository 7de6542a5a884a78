//! Conversations on their way out of the program and into it.

use serde::{Deserialize, Serialize};
#[cfg(feature = "bindings")]
use ts_rs::TS;

/// How conversations are written into a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "kebab-case")]
pub enum ExportFormat {
    /// Everything, for another Candor: branches, records, what was not sent.
    Json,
    /// The branch that is shown, to be read.
    Markdown,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Exported {
    /// The file.
    pub path: String,
    /// Conversations in it.
    pub conversations: u32,
}

/// What was taken in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    /// Which program wrote the file.
    pub source: String,
    /// Conversations that are new here.
    pub conversations: u32,
    /// Their messages.
    pub messages: u32,
    /// Parts that have no place here: pictures, tools, what is damaged.
    pub left_out: u32,
    /// The first of the new conversations.
    pub first: Option<i64>,
}

/// What a message would take of the model's context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct TokenCount {
    /// Tokens of the message itself.
    pub message: u32,
    /// Tokens of all that would be sent with it.
    pub prompt: u32,
    /// Tokens that the context holds.
    pub context: u32,
    /// Messages from the start of the conversation that would not be sent.
    pub left_out: u32,
    /// Why it cannot be sent, if it is too long.
    pub too_long: Option<String>,
}
