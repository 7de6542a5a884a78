//! The banner, the open model and what a window needs when it opens.

use serde::Serialize;
#[cfg(feature = "bindings")]
use ts_rs::TS;

use super::{
    ConversationSummary, Download, ModelEntry, ModelFolder, RunningTurn, Settings, Starter, Unsent,
};

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
    /// Folders that are looked through, the program's own first.
    pub folders: Vec<ModelFolder>,
    /// Downloads, newest first.
    pub downloads: Vec<Download>,
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
    /// Ends the reply that is being written, so that the other model can be loaded.
    SwitchNow,
    /// Ends the reply that is waited for.
    StopOther,
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
