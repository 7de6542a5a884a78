//! The storage types of model weights: what each packed block means.
//!
//! Every type has one file under [`types`], with a plain-old-data struct, the
//! values that it stands for ([`Block::dequantize`]), a plain quantiser, and, for
//! the types of small integers, the product with 8-bit activations
//! ([`IntegerBlock::dot`]). These scalar definitions are the truth that faster
//! kernels are held against.
//!
//! This crate deliberately has no SIMD, no threads, no files and no unsafe code,
//! and its quantisers are simple ones, for test models and not for publishing.
//!
//! Start with [`types::q8_0`], then [`TYPES`].
#![forbid(unsafe_code)]

mod activation;
mod block;
mod half_bits;
mod names;
pub mod types;

pub use activation::{ACTIVATION_ELEMS, ActivationBlock, quantize_activations};
pub use block::{Block, DotFn, IntegerBlock, QuantType, describe, describe_integer};
pub use half_bits::Half;
pub use names::name_of;

/// Every type that this version can compute with, in the order of their numbers.
pub static TYPES: &[QuantType] = &[
    types::f32::TYPE,
    types::f16::TYPE,
    types::q4_0::TYPE,
    types::q4_1::TYPE,
    types::q5_0::TYPE,
    types::q5_1::TYPE,
    types::q8_0::TYPE,
    types::q2_k::TYPE,
    types::q3_k::TYPE,
    types::q4_k::TYPE,
    types::q5_k::TYPE,
    types::q6_k::TYPE,
    types::iq2_xxs::TYPE,
    types::iq2_xs::TYPE,
    types::iq3_xxs::TYPE,
    types::iq1_s::TYPE,
    types::iq4_nl::TYPE,
    types::iq3_s::TYPE,
    types::iq2_s::TYPE,
    types::iq4_xs::TYPE,
    types::iq1_m::TYPE,
    types::bf16::TYPE,
    types::tq1_0::TYPE,
    types::tq2_0::TYPE,
    types::mxfp4::TYPE,
    types::nvfp4::TYPE,
];

/// The type with this GGUF number, if this version can compute with it.
pub fn by_id(id: u32) -> Option<&'static QuantType> {
    TYPES.iter().find(|t| t.id == id)
}

/// The type with this name, in any letter case.
pub fn by_name(name: &str) -> Option<&'static QuantType> {
    TYPES.iter().find(|t| t.name.eq_ignore_ascii_case(name))
}
