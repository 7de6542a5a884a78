//! One file per architecture, and the table of them.

use crate::architecture::Architecture;

pub mod llama;
pub mod qwen2;

/// Every architecture that this version knows.
pub static ALL: &[&Architecture] = &[&llama::LLAMA, &qwen2::QWEN2];
