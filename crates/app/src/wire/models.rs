//! Model files that are known, and what is to be said about them.

use serde::Serialize;
#[cfg(feature = "bindings")]
use ts_rs::TS;

use super::Detail;

/// A model file described, open or not.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct ModelDetails {
    /// File name as shown.
    pub name: String,
    /// What it is and what it would take; empty if it cannot be read.
    pub facts: Vec<Detail>,
    /// What stands against it, what matters most first; empty if all is well.
    pub findings: Vec<ModelFinding>,
    /// Whether there is room for it; none if that cannot be told.
    pub fit: Option<Fit>,
}

/// Whether there is room for a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Fit {
    /// In a word.
    pub verdict: FitVerdict,
    /// Where it would compute.
    pub place: FitPlace,
    /// Bytes that it takes: weights, the conversation, and what is computed with.
    pub needed_bytes: f64,
    /// Bytes that are free once the model that is open now has gone; none if nobody says.
    pub free_bytes: Option<f64>,
    /// Tokens of context that this is counted for; none where only the file's size is known.
    pub context: Option<u32>,
    /// With numbers, in a sentence.
    pub sentence: String,
}

/// Whether there is room, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "kebab-case")]
pub enum FitVerdict {
    /// There is.
    Fits,
    /// There is, with little to spare.
    Tight,
    /// There is not.
    DoesNotFit,
    /// The machine does not say what is free.
    Unknown,
}

/// Where a model would compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "kebab-case")]
pub enum FitPlace {
    /// In the memory of the machine.
    Memory,
    /// In the memory of a graphics card.
    Card,
}

/// The room for one model of the library.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct ModelFit {
    /// Its id.
    pub id: String,
    /// None if its file cannot be read.
    pub fit: Option<Fit>,
}

/// A folder whose models are listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct ModelFolder {
    /// Opaque; carries any path.
    pub id: String,
    /// As shown.
    pub path: String,
    /// The program's own, which cannot be removed.
    pub own: bool,
    /// How it stands.
    pub state: FolderState,
    /// Model files found in it, also deep inside.
    pub models: u32,
    /// What could not be looked at, or is not as it should be: one sentence each.
    pub problems: Vec<String>,
}

/// How a folder of models stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "kebab-case")]
pub enum FolderState {
    /// It is being looked through.
    Scanning,
    /// It was looked through.
    Ready,
    /// It is not there: its drive may be unplugged. What was found in it stays listed.
    Missing,
    /// It may not be read.
    Unreadable,
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
    /// It can be downloaded.
    Download {
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
