//! For tests: a machine with an NVIDIA card where there is none. A library that answers the calls
//! of the CUDA driver and runs the very PTX that ships, instruction by instruction.
//!
//! What it deliberately does not do: it keeps no time, and no program that users get contains it.
//! What it refuses, and where it differs from a card, the README lists.
//!
//! Start reading at `driver/mod.rs` for the calls, and at the README for how tests load it.
#![cfg(target_os = "linux")]

pub mod control;
mod driver;
pub mod exec;
pub mod fault;
pub mod folder;
pub mod memory;
mod mutation;
pub mod ptx;
pub mod scenario;
mod settings;

pub use control::{Counters, ENVIRONMENT, Library, LibraryError};
pub use folder::{Driver, Folder, driver_is_installed};
pub use mutation::{Change, Mutation};
pub use scenario::load_here;
pub use settings::{FailedCall, FailedLaunch, Settings, SettingsError, Wrong, WrongKernel};
