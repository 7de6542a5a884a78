//! A reply that is written once more, to see whether it comes out the same.

use serde::Serialize;
#[cfg(feature = "bindings")]
use ts_rs::TS;

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
