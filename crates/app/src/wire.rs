//! Everything that crosses to the window, and the only types that do.
//!
//! Inner types are not serializable on purpose: a change inside cannot change the window's
//! contract by accident. The TypeScript twin is generated from this file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
#[cfg(feature = "bindings")]
use ts_rs::TS;

/// A conversation's number in the store.
pub type ConversationId = i64;
/// A message's number in the store.
pub type MessageId = i64;
/// A running or finished reply.
pub type TurnId = i64;

/// All that a window needs when it opens.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Version of the program.
    pub version: String,
    /// The banner and the model behind it.
    pub status: Status,
    /// The user's choices.
    pub settings: Settings,
    /// Newest first.
    pub conversations: Vec<ConversationSummary>,
    /// Models known, newest use first.
    pub models: Vec<ModelEntry>,
    /// Whether the starter model can be had.
    pub starter: Starter,
    /// Replies that are being written now.
    pub turns: Vec<RunningTurn>,
    /// What the user has to hear once: a damaged file that was kept aside, for instance.
    pub notices: Vec<String>,
    /// What was typed and not sent, of each conversation that has some.
    pub unsent: Vec<Unsent>,
}

/// What the engine is doing. Sent as the event `status` whenever it changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The line that is always there.
    pub banner: Banner,
    /// The model that will answer next, if one is open.
    pub model: Option<OpenModel>,
}

/// The one line that says what computes and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Banner {
    /// Which state: decides the icon.
    pub kind: BannerKind,
    /// How it is to be seen.
    pub tone: Tone,
    /// The state, set in bold: "CPU".
    pub state: String,
    /// The rest of the line in plain words: "no NVIDIA driver found · AVX-512 · 2 threads".
    pub reason: String,
    /// What the user can do, if anything.
    pub advice: Option<String>,
    /// 0 to 1 while something is under way.
    pub progress: Option<f64>,
    /// Buttons that belong to this state.
    pub actions: Vec<BannerAction>,
    /// What the check of a GPU found, as text to pass on; none if there was no check.
    pub report: Option<String>,
    /// What "Details" shows, in order.
    pub details: Vec<Detail>,
}

/// The states of the banner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "kebab-case")]
pub enum BannerKind {
    /// No model is open.
    NoModel,
    /// The file was not loaded.
    Refused,
    /// A model is being loaded.
    Loading,
    /// The model is copied to a GPU.
    Moving,
    /// A GPU is held against the processor.
    Proving,
    /// A GPU computes.
    Gpu,
    /// The processor computes.
    Cpu,
    /// A reply in another conversation is being written.
    Waiting,
    /// The engine thread is being rebuilt.
    Restarting,
}

/// How a banner is to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "kebab-case")]
pub enum Tone {
    /// Nothing to do.
    Neutral,
    /// Something to know.
    Attention,
    /// Something was refused.
    Refusal,
    /// Proven.
    Proven,
}

/// A button in the banner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "kebab-case")]
pub enum BannerAction {
    /// Ends the load.
    StopLoading,
    /// Opens the picker.
    OpenModel,
    /// Loads the starter model.
    OpenStarter,
    /// Lets the processor compute, and ends what a GPU was about to do.
    UseCpu,
    /// Takes back that only the processor may compute, and loads the model again.
    UseGpu,
    /// Asks the driver and checks the GPU again.
    CheckAgain,
}

/// One row of the details.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Detail {
    /// "Threads".
    pub name: String,
    /// "2".
    pub value: String,
}

/// The model that is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct OpenModel {
    /// Which entry of the library.
    pub id: String,
    /// As shown.
    pub name: String,
    /// Tokens that fit in the context.
    pub context: u32,
    /// "llama".
    pub architecture: String,
    /// "Q4_1".
    pub quantization: String,
    /// Why the model's own chat template is not used, if so.
    pub template_fallback: Option<String>,
}

/// A model file described, open or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct ModelDetails {
    /// File name as shown.
    pub name: String,
    /// What it is and what it would take; empty if it cannot be read.
    pub facts: Vec<Detail>,
    /// What stands against it, what matters most first; empty if all is well.
    pub findings: Vec<ModelFinding>,
}

/// One thing about a model file that a person should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct ModelFinding {
    /// How much it matters.
    pub weight: FindingWeight,
    /// A sentence.
    pub message: String,
    /// What can be done, where there is something.
    pub advice: Option<String>,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "kebab-case")]
pub enum FindingWeight {
    /// The file cannot be used.
    Against,
    /// It cannot be chatted with.
    NoText,
    /// Something may not be as expected.
    Doubt,
    /// Good to know.
    Note,
}

/// A model file that is known.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct ModelEntry {
    /// Opaque; carries any path, also one that is not UTF-8.
    pub id: String,
    /// File name as shown; invalid bytes as the replacement sign.
    pub name: String,
    /// Folder as shown.
    pub folder: String,
    /// Size in bytes; none if the file is missing.
    pub size_bytes: Option<f64>,
    /// Whether the file is there.
    pub missing: bool,
    /// Milliseconds since 1970; none if never opened.
    pub last_used_ms: Option<f64>,
}

/// Whether the starter model can be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Starter {
    /// It is on this machine.
    Ready {
        /// Its entry in the library.
        id: String,
        /// Its size.
        #[serde(rename = "sizeBytes")]
        size_bytes: u32,
    },
    /// It is not to be had, in plain words.
    Absent {
        /// Why.
        why: String,
    },
}

/// The user's choices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// Light, dark or as the system says.
    pub theme: Theme,
    /// What may compute.
    pub device: DeviceChoice,
    /// Which GPU, counted from 0; none takes the one with the most free memory.
    pub gpu: Option<u32>,
    /// When a GPU is held against the processor.
    pub gpu_check: GpuCheck,
    /// The same for single models, by their id in the library.
    pub gpu_checks: BTreeMap<String, GpuCheck>,
    /// Threads; none leaves it to the program.
    pub threads: Option<u32>,
    /// Tokens of context; none leaves it to the program.
    pub context: Option<u32>,
    /// In how many bits a model remembers a conversation.
    pub kv: KvChoice,
    /// First message of every new conversation to the model; empty for none.
    pub system_prompt: String,
    /// How replies are chosen.
    pub sampling: Sampling,
    /// Whether the sidebar is folded.
    pub sidebar_folded: bool,
}

/// The look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "kebab-case")]
pub enum Theme {
    /// As the system says.
    #[default]
    System,
    /// Always light.
    Light,
    /// Always dark.
    Dark,
}

/// What may compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "kebab-case")]
pub enum DeviceChoice {
    /// A proven GPU, else the CPU.
    #[default]
    Auto,
    /// Only the CPU.
    Cpu,
    /// A proven GPU, and a word where it cannot serve; then too the CPU serves.
    Gpu,
}

/// When a GPU is held against the processor, whose results are the reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "kebab-case")]
pub enum GpuCheck {
    /// With every load, on a built-in text.
    #[default]
    Probe,
    /// With the first message after a load.
    FirstPrompt,
    /// With every message.
    EveryPrompt,
}

/// In how many bits a model remembers a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "kebab-case")]
pub enum KvChoice {
    /// In 16.
    #[default]
    F16,
    /// In 8: a conversation takes about half the memory, and replies may come out a little
    /// different.
    Q8,
}

/// How the next token is chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase", default)]
pub struct Sampling {
    /// 0 takes the best token.
    pub temperature: f32,
    /// 0 is off.
    pub top_k: u32,
    /// 1 is off.
    pub top_p: f32,
    /// 0 is off.
    pub min_p: f32,
    /// 1 is off.
    pub repeat_penalty: f32,
    /// Most tokens of a reply.
    pub max_tokens: u32,
    /// None draws a new one for each reply, and each reply's record names it.
    pub seed: Option<u32>,
}

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
    /// Anything else.
    Internal,
}
