//! Kernels without special instructions: for other machines, and for when a check fails.

mod attention;
mod linear;
mod ops;

use super::kernels::{Isa, Kernels};

pub(super) static KERNELS: Kernels = Kernels {
    name: "portable",
    isa: Isa::Portable,
    linear: [
        linear::f32,
        linear::f16,
        linear::bf16,
        linear::integers::<3>,
        linear::integers::<4>,
        linear::integers::<5>,
        linear::integers::<6>,
        linear::integers::<7>,
        linear::integers::<8>,
        linear::integers::<9>,
        linear::integers::<10>,
    ],
    quantize: ops::quantize,
    rms_norm: ops::rms_norm,
    silu_mul: ops::silu_mul,
    add: ops::add,
    to_half: ops::to_half,
    attend: attention::attend,
};
