//! What the store keeps of a reply so that it can be written again. Windows have no use for it.

use serde::{Deserialize, Serialize};

use crate::wire::ChatSettings;

/// What a replay needs beside the record. It stays in the store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplayNotes {
    /// Milliseconds since 1970 when the prompt was made: templates may write the date.
    pub asked_ms: i64,
    /// What was chosen for the conversation.
    pub chat: ChatSettings,
    /// Tokens that the context held.
    pub context: u32,
    /// Size of the model file.
    pub file_size_bytes: u64,
    /// Its time, in nanoseconds since 1970.
    pub file_changed_ns: u64,
    /// The id of its path.
    pub file: String,
    /// The tokens of the reply, each as LEB128, in hexadecimal digits; as far as they are kept.
    pub tokens: String,
    /// How the reply ended.
    pub ended: EndNote,
}

/// How a reply ended, as a replay has to know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndNote {
    /// By itself: the model's end, or words that end it.
    ByItself,
    /// From outside: a limit, or the user.
    #[default]
    Cut,
}
