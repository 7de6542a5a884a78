//! What tests of every crate share: tiny model files made on the spot, and stand-ins.
//!
//! [`TinyModel`] writes valid GGUF files with seeded weights, so that no test needs
//! a download or a large file in the repository; [`damage`] spoils them the way
//! they are spoiled in the wild, and [`apr`] writes them as APR files.
//!
//! This crate is for tests only: nothing that ships depends on it, and it does not
//! use the model file reader, so that the two can disagree. Some parts stand behind features
//! of their names, so that the crates below can use the files without building more: the
//! `scripted` backend, `conformance`, which opens the files of the backends' suite, and `golden`, which puts the golden APR files together and holds them
//! against their hashes.
//!
//! Start with [`TinyModel`].
#![forbid(unsafe_code)]

pub mod apr;
#[cfg(feature = "conformance")]
mod conformance;
pub mod damage;
pub mod gguf;
#[cfg(feature = "golden")]
pub mod golden;
pub mod large;
mod model;
pub mod mutate;
mod random;
#[cfg(feature = "scripted")]
pub mod scripted;
pub mod unfit;
mod vocabulary;

#[cfg(feature = "conformance")]
pub use conformance::model_of;
pub use damage::Damage;
pub use model::{CHAT_TEMPLATE, TinyModel};
pub use random::Random;
pub use unfit::Unfit;
pub use vocabulary::{END_OF_TEXT, TURN_END, TURN_START};
