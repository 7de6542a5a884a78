//! Conversations on their way into a file and out of one.
//!
//! What a file holds is not trusted: each number is bounded, a tree is rebuilt from its roots so
//! that circles are left out, and a text is only ever a text.

mod chatgpt;
mod llama_cpp;
mod markdown;
mod open_webui;
mod read;
mod store;
mod tree;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::wire::ChatSettings;

pub(crate) use markdown::markdown;
pub(crate) use read::read;

/// What our own files say of themselves.
const FORMAT: &str = "candor-conversations";

/// The version of our own files that this program writes, and the last that it reads.
const VERSION: u32 = 1;

/// Our own file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TalkFile {
    format: String,
    version: u32,
    /// Oldest first.
    pub(crate) conversations: Vec<Talk>,
}

impl TalkFile {
    pub(crate) fn new(conversations: Vec<Talk>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            conversations,
        }
    }
}

/// A conversation with all of its branches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Talk {
    pub(crate) title: String,
    pub(crate) created_ms: i64,
    pub(crate) updated_ms: i64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) pinned: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) folder: Option<String>,
    /// The message with which the branch that is shown ends.
    pub(crate) shown: Option<usize>,
    /// Each after the one that it follows.
    pub(crate) messages: Vec<Said>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unsent: Option<UnsentWords>,
    /// What is chosen for it alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) settings: Option<ChatSettings>,
}

/// A message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Said {
    /// The message that it follows; none at a beginning.
    pub(crate) after: Option<usize>,
    pub(crate) role: String,
    pub(crate) state: String,
    pub(crate) created_ms: i64,
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) record: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) cards: Vec<CardText>,
}

/// A long text that goes with a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CardText {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// What was typed and not sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct UnsentWords {
    pub(crate) text: String,
    pub(crate) waiting: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) cards: Vec<CardText>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) waiting_cards: Vec<CardText>,
}

#[cfg(test)]
mod tests;
