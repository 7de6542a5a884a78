//! The product: what every shell calls.
//!
//! An [`App`](crate) keeps conversations, settings and the library of models, loads models into
//! the engine and turns messages into replies. Shells translate its calls and the
//! [`wire`] types into their own world and decide nothing.
//!
//! What it deliberately does not do: it knows no window and no protocol, reads neither the
//! environment nor a clock, and computes nothing.
//!
//! Start reading at `turns.rs`, one chat message from the question to the stored reply.
#![forbid(unsafe_code)]

mod config;
mod conversations;
mod error;
mod path_id;
mod paths;
mod settings;
pub mod wire;

pub use candor_cuda::{PROBE_ARGUMENT, PROBE_LIMIT, ProbeCommand, probe_child};
pub use config::{AppConfig, Clock};
pub use error::Error;
pub use paths::{AppPaths, PathRequest, System};
