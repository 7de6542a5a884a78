//! What a search finds.

use serde::Serialize;
#[cfg(feature = "bindings")]
use ts_rs::TS;

/// One place where the words were found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// Where.
    pub conversation: i64,
    /// Its title, in pieces.
    pub title: Vec<Piece>,
    /// Which message; none if the title was found.
    pub message: Option<i64>,
    /// The words around, in pieces; empty if the title was found.
    pub snippet: Vec<Piece>,
}

/// A piece of a text, found or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Piece {
    /// The words.
    pub text: String,
    /// Whether they were looked for.
    pub hit: bool,
}
