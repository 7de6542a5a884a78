//! The user's choices.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
#[cfg(feature = "bindings")]
use ts_rs::TS;

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
