//! Kernels of AVX-512 with VNNI.
#![expect(
    clippy::needless_range_loop,
    reason = "indices name registers, of which several arrays are walked together"
)]

mod attention;
mod floats;
mod linear;
mod ops;

use super::delta;
use super::kernels::{Isa, Kernels};
use candor_quant::types::{q4_0, q4_1, q4_k, q5_0, q5_1, q5_k, q6_k, q8_0};

pub(super) static KERNELS: Kernels = Kernels {
    name: "AVX-512",
    isa: Isa::Avx512,
    linear: [
        floats::floats::<floats::Single>,
        floats::floats::<floats::Half>,
        floats::floats::<floats::Brain>,
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
    delta: delta::avx512,
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
