//! Kernels without special instructions: for other machines, and for when a check fails.

mod attention;
mod linear;
mod ops;

use candor_quant::types::{q4_0, q4_1, q4_k, q5_0, q5_1, q5_k, q6_k, q8_0};

use super::delta;
use super::kernels::{Isa, Kernels};

pub(super) use ops::to_half;

pub(super) static KERNELS: Kernels = Kernels {
    name: "portable",
    isa: Isa::Portable,
    linear: [
        linear::f32,
        linear::f16,
        linear::bf16,
        linear::integers::<q4_0::Q4_0>,
        linear::integers::<q4_1::Q4_1>,
        linear::integers::<q5_0::Q5_0>,
        linear::integers::<q5_1::Q5_1>,
        linear::integers::<q8_0::Q8_0>,
        linear::integers::<q4_k::Q4K>,
        linear::integers::<q5_k::Q5K>,
        linear::integers::<q6_k::Q6K>,
    ],
    quantize: ops::quantize,
    rms_norm: ops::rms_norm,
    silu_mul: ops::silu_mul,
    add: ops::add,
    to_half: ops::to_half,
    attend: attention::attend,
    delta: delta::portable,
};
