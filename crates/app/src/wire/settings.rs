//! The user's choices.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
#[cfg(feature = "bindings")]
use ts_rs::TS;

use super::server::ServerSettings;

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
    /// What is chosen otherwise for single models, by their id in the library.
    pub models: BTreeMap<String, ModelSettings>,
    /// First message of every new conversation to the model; empty for none.
    pub system_prompt: String,
    /// How replies are chosen.
    pub sampling: Sampling,
    /// Words that end a reply; they are not shown.
    pub stop: Vec<String>,
    /// A JSON schema that replies have to keep to; empty for none.
    pub json_schema: String,
    /// A chat template in the place of the model's own; empty for none.
    pub template: String,
    /// Whether a model that can think before it answers does so.
    pub thinking: Thinking,
    /// Sets of choices for a conversation, by name.
    pub presets: Vec<Preset>,
    /// Whether the sidebar is folded.
    pub sidebar_folded: bool,
    /// The language of the window.
    pub language: Language,
    /// Size of all text, in percent.
    pub text_percent: u32,
    /// Folders whose models are listed, by their ids.
    pub model_folders: Vec<String>,
    /// Where models are searched and downloaded; empty for Hugging Face itself.
    pub hub_address: String,
    /// Whether nothing may be asked of the network.
    pub offline: bool,
    /// How programs are answered.
    pub server: ServerSettings,
}

/// What is chosen for one conversation, or kept under a name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase", default)]
pub struct ChatSettings {
    /// First message to the model; empty for none.
    pub system_prompt: String,
    /// How replies are chosen.
    pub sampling: Sampling,
    /// Words that end a reply; they are not shown.
    pub stop: Vec<String>,
    /// A JSON schema that replies have to keep to; empty for none.
    pub json_schema: String,
    /// A chat template in the place of the model's own; empty for none.
    pub template: String,
    /// Whether a model that can think before it answers does so.
    pub thinking: Thinking,
}

/// Choices for a conversation under a name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase", default)]
pub struct Preset {
    /// As the user named it; no other has the same.
    pub name: String,
    /// What is chosen.
    pub chat: ChatSettings,
}

/// What is chosen for one model; none leaves it to the settings of all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase", default)]
pub struct ModelSettings {
    /// What may compute.
    pub device: Option<DeviceChoice>,
    /// Threads.
    pub threads: Option<u32>,
    /// Tokens of context.
    pub context: Option<u32>,
    /// In how many bits it remembers a conversation.
    pub kv: Option<KvChoice>,
}

/// Whether a model thinks before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "kebab-case")]
pub enum Thinking {
    /// As its template says.
    #[default]
    Auto,
    /// Asked to.
    On,
    /// Asked not to.
    Off,
}

/// The language of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "kebab-case")]
pub enum Language {
    /// As the system says.
    #[default]
    System,
    /// English.
    English,
    /// German.
    German,
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
    /// Lowers each token that was written, once; 0 is off.
    pub presence_penalty: f32,
    /// Lowers each token for every time it was written; 0 is off.
    pub frequency_penalty: f32,
    /// Strength of the penalty on repeated runs of tokens (DRY); 0 is off.
    pub dry_multiplier: f32,
    /// How fast that penalty grows with the length of a run.
    pub dry_base: f32,
    /// Runs up to this length are free.
    pub dry_allowed_length: u32,
    /// How often the likeliest tokens are left out (XTC); 0 is off.
    pub xtc_probability: f32,
    /// A token counts as likely from this share on.
    pub xtc_threshold: f32,
    /// Most tokens of a reply.
    pub max_tokens: u32,
    /// None draws a new one for each reply, and each reply's record names it.
    pub seed: Option<u32>,
}
