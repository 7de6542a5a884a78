//! One file per architecture, and the table of them.

use crate::architecture::Architecture;

pub mod gemma3;
pub mod llama;
pub mod qwen2;
pub mod qwen3;
pub mod qwen35;
pub mod qwen3moe;
pub mod qwen3next;

/// Every architecture that this version knows.
pub static ALL: &[&Architecture] = &[
    &llama::LLAMA,
    &qwen2::QWEN2,
    &qwen3::QWEN3,
    &qwen3moe::QWEN3MOE,
    &gemma3::GEMMA3,
    &qwen35::QWEN35,
    &qwen35::QWEN35MOE,
    &qwen3next::QWEN3NEXT,
];
