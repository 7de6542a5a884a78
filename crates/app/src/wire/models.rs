//! Model files that are known, and what is to be said about them.

use serde::Serialize;
#[cfg(feature = "bindings")]
use ts_rs::TS;

use super::Detail;

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
