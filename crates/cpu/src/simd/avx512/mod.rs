//! Kernels of AVX-512 with VNNI.

mod linear;

use super::kernels::{Isa, Kernels};
use super::portable;
use candor_quant::types::{q4_0, q4_1, q4_k, q5_0, q5_1, q5_k, q6_k, q8_0};

pub(super) static KERNELS: Kernels = Kernels {
    name: "AVX-512",
    isa: Isa::Avx512,
    linear: [
        portable::KERNELS.linear[0],
        portable::KERNELS.linear[1],
        portable::KERNELS.linear[2],
        linear::integers::<q4_0::Q4_0>,
        linear::integers::<q4_1::Q4_1>,
        linear::integers::<q5_0::Q5_0>,
        linear::integers::<q5_1::Q5_1>,
        linear::integers::<q8_0::Q8_0>,
        linear::integers::<q4_k::Q4K>,
        linear::integers::<q5_k::Q5K>,
        linear::integers::<q6_k::Q6K>,
    ],
    quantize: portable::KERNELS.quantize,
    rms_norm: portable::KERNELS.rms_norm,
    silu_mul: portable::KERNELS.silu_mul,
    add: portable::KERNELS.add,
    to_half: portable::KERNELS.to_half,
    attend: portable::KERNELS.attend,
};

/// Whether this machine can run them.
pub(super) fn present() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
}
