//! Kernels of AVX2, FMA and F16C.
//!
//! Measured on one core of Zen 5 (3.9 GHz): a prompt 260 * 10^9 operations a second with Q4_K, 240
//! Q4_0, 190 Q5_0, 165 Q8_0 and Q6_K, 230 MXFP4, 190 Q3_K, 180 Q2_K, 150 IQ4_XS; a reply 20 to 38
//! GB/s.
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

/// The family. A register is half a group of outputs.
#[derive(Clone, Copy)]
pub(super) struct Avx2;

pub(super) static KERNELS: Kernels = table("AVX2", Isa::Avx2);

/// Whether this machine can run them.
pub(super) fn present() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
}

entries!(Avx2, "avx2,fma,f16c", queries 1 2 3 4, columns 32);

impl Linear for Avx2 {
    unsafe fn integers<B: Interleave>(task: &LinearTask) {
        // SAFETY: passed on from the caller; the walk keeps to the rows and groups of the task.
        walk(task, 1, |corner, rows| unsafe {
            match rows {
                4.. => {
                    integer_tile::<B, 1, 4>(task, corner);
                    integer_tile::<B, 1, 4>(task, corner.second_half())
                }
                2.. => integer_tile::<B, 2, 2>(task, corner),
                _ => integer_tile::<B, 2, 1>(task, corner),
            }
        });
    }

    unsafe fn floats<N: Number>(task: &LinearTask) {
        // Each sum is one chain of additions, and a chain waits four cycles for itself: eight of
        // them keep both adders busy.
        // SAFETY: as above.
        walk(task, 4, |corner, rows| unsafe {
            match rows {
                4.. => {
                    float_tile::<N, 2, 4>(task, corner);
                    float_tile::<N, 2, 4>(task, corner.right_by(1));
                    float_tile::<N, 2, 4>(task, corner.right_by(2));
                    float_tile::<N, 2, 4>(task, corner.right_by(3))
                }
                _ => float_tile::<N, 8, 1>(task, corner),
            }
        });
    }
}
