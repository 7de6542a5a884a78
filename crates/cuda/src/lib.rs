//! NVIDIA cards: so far only the question whether there is one.
//!
//! [`probe`] starts a child process of the program itself, which loads the driver and answers on
//! its standard output ([`probe_child`]). A driver that hangs or crashes takes down only that
//! child, and becomes a reason in plain words.
//!
//! What it deliberately does not do: it computes nothing. This version has no code that would use
//! a card, so every answer is an [`Unavailable`](candor_backend::Unavailable); where a card is
//! found the answer is `NotUsedYet`.
//!
//! Start reading at [`probe`]; `driver.rs` holds the calls into the driver and the only unsafe
//! code.

mod answer;
mod buffer;
mod codes;
mod device;
mod driver;
mod forward;
mod launch;
mod ops;
mod prepare;
mod probe;
mod ptx;
mod state;
mod symbols;
mod upload;
mod values;
mod weights;

pub use probe::{PROBE_ARGUMENT, PROBE_LIMIT, ProbeCommand, probe, probe_child};
