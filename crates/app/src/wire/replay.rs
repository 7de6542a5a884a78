//! A reply that is written once more, to see whether it comes out the same.

use serde::{Deserialize, Serialize};
#[cfg(feature = "bindings")]
use ts_rs::TS;

use super::ChatSettings;

/// How a replay goes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    tag = "kind"
)]
pub enum ReplayEvent {
    /// The model file is being read, to know that it is the same.
    Hashing,
    /// It waits behind a reply, or the prompt is being read.
    Reading {
        /// Tokens read.
        done: u32,
        /// Tokens to read.
        total: u32,
    },
    /// Tokens are written again, and are the same so far.
    Writing {
        /// Tokens that are the same.
        done: u32,
        /// Tokens to write.
        total: u32,
    },
    /// The end, exactly once.
    Ended {
        /// What came out.
        outcome: ReplayOutcome,
    },
}

/// What a replay found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    tag = "kind"
)]
pub enum ReplayOutcome {
    /// Every token, and the end, came again.
    Same {
        /// Tokens that were compared.
        tokens: u32,
        /// What else was different, if anything: what computed it.
        note: Option<String>,
    },
    /// A token did not.
    Differs {
        /// Which, counted from 1.
        token: u32,
        /// What stood there; none for the end of the reply.
        then: Option<String>,
        /// What came now; none for the end of the reply.
        now: Option<String>,
        /// What else was different, if anything: what computed it.
        note: Option<String>,
    },
    /// It cannot be replayed, and why, in a sentence.
    Impossible {
        /// Why.
        why: String,
    },
    /// The user stopped it.
    Stopped,
}

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
