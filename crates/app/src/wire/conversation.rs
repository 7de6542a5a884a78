//! Conversations and their messages.

use serde::{Deserialize, Serialize};
#[cfg(feature = "bindings")]
use ts_rs::TS;

use super::ReplyRecord;

/// A conversation's number in the store.
pub type ConversationId = i64;
/// A message's number in the store.
pub type MessageId = i64;
/// A running or finished reply.
pub type TurnId = i64;

/// What was typed in a conversation and not sent yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Unsent {
    /// Which; none for the one that is not begun.
    pub conversation: Option<i64>,
    /// In the box.
    pub text: String,
    /// Given to be sent, and waiting.
    pub waiting: String,
}

/// A conversation in the sidebar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct ConversationSummary {
    /// Number.
    pub id: i64,
    /// From the first words, or as the user renamed it.
    pub title: String,
    /// Milliseconds since 1970 of the last change.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub updated_ms: i64,
}

/// A conversation with its messages on the branch that is shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
    /// Number.
    pub id: i64,
    /// As in the sidebar.
    pub title: String,
    /// From the first to the last.
    pub messages: Vec<Message>,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Number.
    pub id: i64,
    /// Whose.
    pub role: Role,
    /// As written so far.
    pub text: String,
    /// How it stands.
    pub state: MessageState,
    /// The turn that writes it, while one does.
    pub turn: Option<i64>,
    /// What is known of how it was written; replies only.
    pub record: Option<ReplyRecord>,
}

/// Whose message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// How a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "kebab-case")]
pub enum MessageState {
    /// Being written.
    Writing,
    /// The model came to an end.
    Finished,
    /// The user stopped it.
    Stopped,
    /// The length limit ended it.
    Length,
    /// The context is full.
    ContextFull,
    /// The program ended while it was written.
    Interrupted,
    /// It could not be written.
    Failed,
}
