//! One file per architecture, and the table of them.

use crate::architecture::Architecture;

pub mod deepseek;
pub mod gemma2;
pub mod gemma3;
pub mod gpt_oss;
pub mod granite;
pub mod llama;
pub mod olmo2;
pub mod phi3;
pub mod qwen2;
pub mod qwen3;
pub mod qwen35;
pub mod qwen3moe;
pub mod qwen3next;
pub mod smollm3;

/// Every architecture that this version knows.
pub static ALL: &[&Architecture] = &[
    &llama::LLAMA,
    &qwen2::QWEN2,
    &qwen3::QWEN3,
    &qwen3moe::QWEN3MOE,
    &gemma2::GEMMA2,
    &gemma3::GEMMA3,
    &qwen35::QWEN35,
    &qwen35::QWEN35MOE,
    &qwen3next::QWEN3NEXT,
    &olmo2::OLMO2,
    &phi3::PHI3,
    &granite::GRANITE,
    &granite::GRANITEMOE,
    &smollm3::SMOLLM3,
    &deepseek::DEEPSEEK,
    &gpt_oss::GPT_OSS,
];
