//! Models that can be had from Hugging Face or a mirror of it, and their downloads.

use serde::Serialize;
#[cfg(feature = "bindings")]
use ts_rs::TS;

use super::Fit;

/// A place on the hub that has model files.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct HubModel {
    /// "owner/name".
    pub repo: String,
    /// How often it was downloaded; none if the hub does not say.
    pub downloads: Option<f64>,
    /// How many people liked it.
    pub likes: Option<f64>,
    /// The day of its last change, as the hub writes it; empty if it does not say.
    pub updated: String,
    /// Whether its owner asks for an account first.
    pub gated: bool,
}

/// The model files of one place.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct HubListing {
    /// "owner/name".
    pub repo: String,
    /// Smallest first.
    pub files: Vec<HubFile>,
}

/// A model as it is offered: one file, or all parts of a split one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct HubFile {
    /// Path in its place; of a split model that of the first part.
    pub path: String,
    /// Name as shown.
    pub name: String,
    /// Number of files.
    pub parts: u32,
    /// Bytes of all of them.
    pub size_bytes: f64,
    /// Whether the hub names checksums for all of them.
    pub checked: bool,
    /// Whether there is room for it, as far as its size tells.
    pub fit: Option<Fit>,
    /// Its id in the library, if it is there already.
    pub id: Option<String>,
}

/// A download.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Download {
    /// Number.
    pub id: u32,
    /// File name as shown.
    pub name: String,
    /// Where it comes from: "owner/name".
    pub repo: String,
    /// Bytes that are here.
    pub received_bytes: f64,
    /// Bytes of all of it.
    pub total_bytes: f64,
    /// How it stands.
    pub state: DownloadState,
    /// Of late; none while nothing comes.
    pub bytes_per_second: Option<f64>,
    /// Seconds until it is whole, at this speed.
    pub left_s: Option<f64>,
    /// What there is to say of it: why it waits, or why it failed.
    pub message: Option<String>,
    /// Its id in the library once it is whole.
    pub model: Option<String>,
}

/// How a download stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "kebab-case")]
pub enum DownloadState {
    /// Behind others.
    Queued,
    /// Bytes come.
    Running,
    /// The connection broke; it is tried again soon.
    Waiting,
    /// What came is held against the checksum.
    Checking,
    /// By the user, or because the program was closed.
    Paused,
    /// It will not come by itself; the message says why.
    Failed,
    /// It is whole, and in the library.
    Done,
}
