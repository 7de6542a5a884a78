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
mod backend;
mod buffer;
mod codes;
mod device;
mod driver;
mod enqueue;
mod forward;
mod launch;
mod loaded;
mod machine;
mod ops;
mod outputs;
mod pace;
mod prepare;
mod probe;
mod ptx;
mod session;
mod state;
mod steps;
mod symbols;
mod upload;
mod values;
mod weights;

pub use answer::CudaDevice;
pub use backend::CudaBackend;
pub use probe::{PROBE_ARGUMENT, PROBE_LIMIT, ProbeCommand, find, probe, probe_child, understand};
