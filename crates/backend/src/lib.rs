//! The contract between the engine and whatever computes.
//!
//! A [`Backend`] is one way to run a model (the CPU today, an NVIDIA card later). It loads a
//! [`Model`] into a [`Loaded`], which opens [`Session`]s; a session takes batches of rows and
//! gives back logits. Everything above this crate speaks only these types.
//!
//! What it deliberately does not do: it holds no kernel, starts no thread, chooses no token and
//! knows no architecture by name.
//!
//! Start reading at [`Session`]; [`paging`] is the bookkeeping that every state needs, and
//! `conformance` is the suite every backend has to pass.
#![forbid(unsafe_code)]

mod batch;
mod cancel;
pub mod conformance;
mod device;
mod error;
mod model;
mod options;
pub mod paging;
mod runs;
mod session;

pub use candor_arch::KvType;

pub use batch::{Batch, Feed, Row, RowOutput, Rows, SlotId, Want};
pub use cancel::CancelToken;
pub use device::{DeviceInfo, DeviceKind, DriverFault, Unavailable};
pub use error::{LoadError, OpenError, SessionError};
pub use model::{
    Backend, Loaded, Model, OpenOptions, Part, Precision, Progress, Step, Unsupported,
};
pub use runs::{Run, runs, tokens_per_slot};
pub use session::{Arithmetic, Numerics, Outcome, Session, TICKETS_MAX, Tap, Ticket};
