//! The local server: the protocols that editors, agents and scripts speak, over one engine.
//!
//! [`bind`] takes a port for a [`ServerConfig`]; [`Bound::serve`] answers there, from a
//! [`Source`](candor_app::service::Source) of models, until it is stopped. OpenAI's, Anthropic's and
//! Ollama's routes are translations of the same thing: a request becomes an `Ask`, its reply a
//! course of pieces that the protocol writes its own way.
//!
//! What it deliberately does not do: it computes nothing, keeps nothing, reads no environment, and
//! leaves no work behind when a client leaves.
//!
//! Start reading at `ask.rs`, one request from its body to the engine; `course.rs` follows the
//! reply, `stream.rs` sends it, `door.rs` says who may come in. Each protocol has a file in `wire`
//! (what it looks like) and one in `routes` (what its paths do).
#![forbid(unsafe_code)]

mod ask;
mod body;
mod config;
mod course;
mod door;
mod fault;
mod gate;
mod listen;
mod metrics;
mod routes;
mod shared;
mod stream;
mod switch;
mod told;
mod wire;

pub use config::{Access, Patience, QUEUE_DEFAULT, ServerConfig};
pub use listen::{Bound, PORT_DEFAULT, Running, StartError, bind};
pub use switch::{Parts, Switch};
