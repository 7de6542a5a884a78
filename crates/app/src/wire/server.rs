//! The server that answers other programs, as the window switches it.

use serde::{Deserialize, Serialize};
#[cfg(feature = "bindings")]
use ts_rs::TS;

/// The port where nobody asks for another.
pub const SERVER_PORT_DEFAULT: u16 = 11_711;

/// How the user wants programs to be answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(rename_all = "camelCase", default)]
pub struct ServerSettings {
    /// Whether they are.
    pub on: bool,
    /// Where on this computer.
    pub port: u16,
    /// What every request has to carry; empty for nothing.
    pub key: String,
    /// Web pages that may ask, such as `http://localhost:3000`.
    pub origins: Vec<String>,
    /// Whether programs may open other models.
    pub may_load: bool,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            on: false,
            port: SERVER_PORT_DEFAULT,
            key: String::new(),
            origins: Vec::new(),
            may_load: false,
        }
    }
}

/// How the server is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(TS))]
#[serde(
    rename_all = "kebab-case",
    rename_all_fields = "camelCase",
    tag = "state"
)]
pub enum ServerState {
    /// Nobody wants it.
    Off,
    /// It answers.
    Listening {
        /// Where, as a program has to be told.
        address: String,
        /// Requests that are being answered or wait.
        requests: u32,
    },
    /// Another program has the port.
    PortTaken {
        /// The port.
        port: u16,
        /// One that is free.
        free: Option<u16>,
    },
    /// The system refused it.
    Failed {
        /// What it said.
        why: String,
    },
}
