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
    /// Long texts that go with the words in the box.
    #[serde(default)]
    pub cards: Vec<Card>,
    /// Long texts that go with what waits.
    #[serde(default)]
    pub waiting_cards: Vec<Card>,
}

/// A long text that goes with a message. Its words stay in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Card {
    /// Number.
    pub id: i64,
    /// A file's name, or "Pasted text".
    pub name: String,
    /// Size in bytes.
    pub size_bytes: u32,
    /// Lines.
    pub lines: u32,
    /// How it begins.
    pub preview: String,
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
    /// Whether it stays at the top.
    pub pinned: bool,
    /// The folder it lies in.
    pub folder: Option<String>,
}

/// Where a conversation stands in the sidebar.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// Whether it stays at the top.
    pub pinned: bool,
    /// The folder it lies in.
    pub folder: Option<String>,
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
    /// As written so far; of a reply, what was said, without what was thought.
    pub text: String,
    /// All that was written, in its parts; empty if that is the text alone.
    pub parts: Vec<MessagePart>,
    /// How it stands.
    pub state: MessageState,
    /// The turn that writes it, while one does.
    pub turn: Option<i64>,
    /// What is known of how it was written; replies only.
    pub record: Option<ReplyRecord>,
    /// All versions of this message in the order of their making, itself among them; empty if it
    /// is the only one.
    pub versions: Vec<i64>,
    /// UTF-16 units of all that is shown of it that were there before the turn that writes it: a
    /// reply that is gone on with.
    pub kept: u32,
    /// Long texts that go with it.
    pub cards: Vec<Card>,
}

/// One part of a reply.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct MessagePart {
    /// What it is.
    pub kind: PartKind,
    /// Its words, without marks.
    pub text: String,
    /// How long it was thought, in milliseconds; none if that is not known, and of what was said.
    pub ms: Option<f64>,
}

/// What a part of a reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "kebab-case")]
pub enum PartKind {
    /// What was said.
    Text,
    /// What was thought.
    Thinking,
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
    /// The user changed its words.
    Edited,
}
