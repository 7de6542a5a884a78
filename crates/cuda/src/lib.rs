//! NVIDIA cards: whether there is one that works, and a backend that computes on it.
//!
//! [`find`] starts a child process of the program itself, which loads the driver and answers on its
//! standard output ([`probe_child`]). A driver that hangs or crashes takes down only that child, and
//! becomes a reason in plain words. Only what the child has seen becomes a [`CudaBackend`].
//!
//! The backend uploads the weights as they are in the file, keeps the state of its sessions in the
//! card's memory, and launches the kernels that the program carries as PTX (`kernels/`). A token is
//! one launch of a captured graph; a prompt is launched step by step, so that it can be stopped.
//! Prompts are multiplied in float16 on the tensor cores, replies with 8-bit activations.
//!
//! What it deliberately does not do: it computes nothing in float32 from end to end (the processor
//! is the reference), keeps no keys in 8 bits, splits no model over cards, and needs nothing of
//! CUDA but the driver.
//!
//! One thread of each card calls the driver (`card/`); whoever asks it gives it up where the driver
//! does not answer any more, and the card is lost to the process then.
//!
//! Start reading at [`CudaBackend`], then `session.rs` and `enqueue.rs`; `ops/` has one file per
//! operation, `device/` and `launch.rs` the calls into the driver, `probe.rs` and `driver.rs` the
//! child.

mod answer;
mod backend;
mod buffer;
mod card;
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
pub use card::{Cards, Patience};
pub use probe::{PROBE_ARGUMENT, PROBE_LIMIT, ProbeCommand, find, probe_child, understand};
