//! Kernels of AVX-512 with VNNI.
//!
//! Measured on one core of Zen 5 (3.9 GHz; at most 1,000 * 10^9 operations a second of 8-bit
//! products and 250 of float32, 31 GB/s read from small pages): a prompt 740 GOP/s with Q4_0, 700
//! Q8_0, 670 Q4_K, 650 Q5_0, 600 Q5_K, 510 Q6_K, 230 F16 and BF16, 800 IQ4_NL, 780 MXFP4, 770
//! IQ4_XS, 600 Q3_K, 460 Q2_K; a reply 27 to 36 GB/s with each type. Attention with heads of 64 and seven queries to a key head: 177 GOP/s for 512 positions at
//! once, 28 GB/s of keys and values for one position that sees 4,000.
#![expect(
    clippy::needless_range_loop,
    reason = "indices name registers, of which several arrays are walked together"
)]

mod lanes;
mod products;

use super::interleave::Interleave;
use super::kernels::{Isa, Kernels, Linear, LinearTask, linear_table};
use super::number::Number;
use super::wide::{Corner, entries, walk};

/// The family. A register is a group of outputs.
#[derive(Clone, Copy)]
pub(super) struct Avx512;

pub(super) static KERNELS: Kernels = table("AVX-512", Isa::Avx512);

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

entries!(
    Avx512,
    "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma,f16c",
    queries 1 2 3 4 5 6 7 8,
    columns 64
);

impl Linear for Avx512 {
    unsafe fn integers<B: Interleave>(task: &LinearTask) {
        // SAFETY: passed on from the caller; the walk keeps to the rows and groups of the task.
        walk(task, 2, |corner, rows| unsafe {
            match rows {
                6.. => integer_tile::<B, 2, 6>(task, corner),
                4.. => integer_tile::<B, 2, 4>(task, corner),
                2.. => integer_tile::<B, 2, 2>(task, corner),
                _ => integer_tile::<B, 2, 1>(task, corner),
            }
        });
    }

    unsafe fn floats<N: Number>(task: &LinearTask) {
        // Few rows take more groups together, since each sum is one chain of additions: a chain
        // waits four cycles for itself, so eight of them keep both adders busy.
        // SAFETY: as above.
        walk(task, 4, |corner, rows| unsafe {
            match rows {
                6.. => {
                    float_tile::<N, 2, 6>(task, corner);
                    float_tile::<N, 2, 6>(task, corner.right_by(2))
                }
                2.. => float_tile::<N, 4, 2>(task, corner),
                _ => float_tile::<N, 4, 1>(task, corner),
            }
        });
    }
}
