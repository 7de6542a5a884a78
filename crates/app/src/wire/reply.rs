//! A reply: while it is written, and what is known of it afterwards.

use serde::{Deserialize, Serialize};
#[cfg(feature = "bindings")]
use ts_rs::TS;

use super::{Conversation, Message, Sampling, WireError};
use crate::replay_notes::ReplayNotes;

/// What is known of how a reply was written: the quiet line under it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct ReplyRecord {
    /// The model's name.
    pub model: String,
    /// What computed: "CPU", "GPU", or "GPU, then CPU".
    pub backend: String,
    /// Its name. Empty in records of earlier versions.
    #[serde(default)]
    pub device: String,
    /// What is known of a GPU's results: "proven on 65 positions". Empty for the processor.
    #[serde(default)]
    pub proof: String,
    /// That another device wrote the reply on, and why, if so.
    #[serde(default)]
    pub moved: Option<String>,
    /// Why that: "no NVIDIA driver found".
    pub backend_reason: String,
    /// How keys and values were kept: "16 bits". Empty in records of earlier versions.
    #[serde(default)]
    pub kv: String,
    /// Tokens written.
    pub generated_tokens: u32,
    /// Tokens read for it.
    pub prompt_tokens: u32,
    /// Of these, tokens that were still in memory.
    pub cached_tokens: u32,
    /// Reading, in milliseconds.
    pub prefill_ms: f64,
    /// Writing, in milliseconds.
    pub decode_ms: f64,
    /// From the request to the first token; none if there was none.
    pub first_token_ms: Option<f64>,
    /// The seed that was used.
    pub seed: u32,
    /// The settings that were used.
    pub sampling: Sampling,
    /// Why it failed, in plain words, if it did.
    pub failure: Option<String>,
    /// What was done to this conversation so that the model could read it, if anything; said at
    /// the first reply that it concerns.
    #[serde(default)]
    pub notice: Option<String>,
    /// Messages from the start of the conversation that were not sent, because they do not fit in
    /// the context. The system prompt is always sent.
    #[serde(default)]
    pub left_out: u32,
    /// Whether the reply was gone on with: the figures are those of its last part.
    #[serde(default)]
    pub continued: bool,
    /// How long each part was thought, in milliseconds; 0 where it is not known.
    #[serde(default)]
    pub thinking_ms: Vec<f64>,
    /// How the weights are stored. This and what follows is empty in records of earlier versions.
    #[serde(default)]
    pub quantization: String,
    /// The SHA-256 of the model file, once somebody wanted to know it.
    #[serde(default)]
    pub file_sha256: Option<String>,
    /// The version of the program.
    #[serde(default)]
    pub version: String,
    /// The SHA-256 of the chat template; empty if a built-in format was used.
    #[serde(default)]
    pub template_sha256: String,
    /// The SHA-256 of the tokens that were sent, each as four bytes.
    #[serde(default)]
    pub context_sha256: String,
    /// Words that would have ended the reply.
    #[serde(default)]
    pub stop: Vec<String>,
    /// What it takes to write the reply again. It stays in the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", ts(skip))]
    pub replay: Option<ReplayNotes>,
}

/// The answer to a message that was sent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Sent {
    /// The turn that writes the reply: attach to it, or stop it.
    pub turn: i64,
    /// The conversation as it stands, with the question and the reply that is being written.
    pub conversation: Conversation,
}

/// A reply that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct RunningTurn {
    /// The turn.
    pub turn: i64,
    /// Where.
    pub conversation: i64,
    /// Which message.
    pub message: i64,
}

/// What a turn tells its reader; several at once, at most one batch a frame.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct TurnBatch {
    /// The number of the next event: attach from there after a break.
    pub next_seq: u32,
    /// In order.
    pub events: Vec<TurnEvent>,
}

/// One piece of news of a turn.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    tag = "kind"
)]
pub enum TurnEvent {
    /// It waits behind another reply.
    Waiting,
    /// The GPU is held against the processor on this message.
    Checking {
        /// Positions that were compared.
        done: u32,
        /// Positions to compare.
        total: u32,
    },
    /// Another device writes on, and why, in a sentence.
    Moved {
        /// What is to be read in the chat.
        notice: String,
    },
    /// The prompt is being read.
    Reading {
        /// Tokens read.
        done: u32,
        /// Tokens to read.
        total: u32,
    },
    /// More text.
    Text {
        /// Whole characters.
        text: String,
        /// Tokens written so far.
        tokens: u32,
    },
    /// More thoughts.
    Thinking {
        /// Whole characters.
        text: String,
        /// Tokens written so far.
        tokens: u32,
    },
    /// The thoughts are at their end.
    Thought {
        /// How long it was thought, in milliseconds.
        ms: f64,
    },
    /// An end of thoughts came that nobody had begun: the text since the last thoughts was one.
    TextWasThinking,
    /// The reply repeats itself word for word; somebody could stop it. At most once.
    Repeats {
        /// Tokens of what is repeated.
        block_tokens: u32,
        /// How often it came after the first time.
        copies: u32,
    },
    /// The end, exactly once: this or `Failed`.
    Finished {
        /// The message as it is now stored.
        message: Message,
    },
    /// The end, exactly once: this or `Finished`.
    Failed {
        /// The message as it is now stored.
        message: Message,
        /// What went wrong.
        error: WireError,
    },
}
