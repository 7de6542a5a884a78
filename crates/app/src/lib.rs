//! The product: what every shell calls.
//!
//! An [`App`] keeps conversations, settings and the library of models, loads models into the
//! engine and turns messages into replies. Shells translate its calls and the [`wire`] types into
//! their own world and decide nothing.
//!
//! What it deliberately does not do: it knows no window and no protocol, reads neither the
//! environment nor a clock, and computes nothing.
//!
//! Start reading at `turns.rs`, one chat message from the question to the stored reply.
#![forbid(unsafe_code)]

mod app;
mod banner;
#[cfg(feature = "bindings")]
pub mod bindings;
mod block_on;
mod chat_settings;
pub mod compose;
mod config;
mod conversations;
mod details;
pub mod diagnostics;
mod downloads;
mod error;
mod facts;
mod file_hash;
mod fit;
mod folders;
mod forward;
pub mod headless;
mod library;
mod loading;
pub mod logs;
pub mod machine;
mod models;
mod news;
mod parts;
mod path_id;
mod paths;
mod prompt;
mod record;
mod replay;
mod replay_notes;
pub mod service;
mod settings;
mod status;
mod talk;
mod turn;
mod turns;
mod upkeep;
mod verdicts;
pub mod wire;
mod words;
mod writer;

pub use app::App;
pub use candor_engine::guard::Power;
pub use compose::{PROBE_ARGUMENT, PROBE_LIMIT, ProbeCommand, probe_child};
pub use config::{AppConfig, Clock, Machine};
pub use downloads::{Network, StarterDownload};
pub use error::Error;
pub use forward::{Attached, TurnReader};
pub use news::{Listener, News};
pub use paths::{AppPaths, PathRequest, System};
pub use replay::ReplayReader;
pub use replay_notes::{EndNote, ReplayNotes};
pub use talk::looks_like_model;
pub use words::{Phrase, Tongue};
