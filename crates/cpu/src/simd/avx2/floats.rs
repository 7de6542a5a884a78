//! Products of float32 activations with float weights.

use std::arch::x86_64::*;

use super::super::format::GROUP_ROWS;
use super::super::kernels::LinearTask;
use super::linear::{LANES, store};

/// A float type of weights.
pub(super) trait Number {
    const BYTES: usize;

    /// 8 of them, as float32.
    ///
    /// # Safety
    /// They must be there, and the machine must have AVX2 and F16C.
    unsafe fn load(at: *const u8) -> __m256;
}

/// IEEE single precision.
pub(super) struct Single;
/// IEEE half precision.
pub(super) struct Half;
/// The upper half of single precision.
pub(super) struct Brain;

impl Number for Single {
    const BYTES: usize = 4;

    #[inline(always)]
    unsafe fn load(at: *const u8) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_loadu_ps(at.cast()) }
    }
}

impl Number for Half {
    const BYTES: usize = 2;

    #[inline(always)]
    unsafe fn load(at: *const u8) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(at.cast())) }
    }
}

impl Number for Brain {
    const BYTES: usize = 2;

    #[inline(always)]
    unsafe fn load(at: *const u8) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe {
            let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(at.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide))
        }
    }
}

/// # Safety
/// See [`super::super::kernels::LinearFn`].
pub(super) unsafe fn floats<N: Number>(task: &LinearTask) {
    // Each sum is one chain of additions, and a chain waits four cycles for itself: eight of
    // them keep both adders busy.
    let mut group = task.groups.start;
    while group < task.groups.end {
        let mut row = task.rows.start;
        while row < task.rows.end {
            // SAFETY: passed on from the caller; the rows and groups are those of the task.
            row += unsafe {
                match task.rows.end - row {
                    4.. => {
                        tile::<N, 1, 4>(task, group, row);
                        tile::<N, 1, 4>(task, group + 1, row);
                        tile::<N, 1, 4>(task, group + 2, row);
                        tile::<N, 1, 4>(task, group + 3, row)
                    }
                    _ => tile::<N, 4, 1>(task, group, row),
                }
            };
        }
        group += 4;
    }
}

/// `R` rows times `G` groups from `first` on, those behind the task's last one left out; gives
/// `R`.
///
/// # Safety
/// See [`super::super::kernels::LinearFn`]; `row` and the `R - 1` after it must be rows of the task.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn tile<N: Number, const G: usize, const R: usize>(
    task: &LinearTask,
    first: usize,
    row: usize,
) -> usize {
    if first >= task.groups.end {
        return R;
    }
    // SAFETY: every address below lies in a group of the matrix or in a row of the activations,
    // as the caller states.
    unsafe {
        let mut weights = [task.weights; G];
        for (g, weights) in weights.iter_mut().enumerate() {
            // A group that is not there is computed as the last one, and not stored.
            let group = (first + g).min(task.groups.end - 1);
            *weights = weights.add(group * task.group_bytes);
        }
        let acts = task.floats.add(row * task.cols);
        let mut sums = [[[_mm256_setzero_ps(); R]; 2]; G];
        for k in 0..task.cols {
            for g in 0..G {
                let at = weights[g].add(k * GROUP_ROWS * N::BYTES);
                let numbers = [N::load(at), N::load(at.add(LANES * N::BYTES))];
                for r in 0..R {
                    let act = _mm256_set1_ps(*acts.add(r * task.cols + k));
                    sums[g][0][r] = _mm256_fmadd_ps(numbers[0], act, sums[g][0][r]);
                    sums[g][1][r] = _mm256_fmadd_ps(numbers[1], act, sums[g][1][r]);
                }
            }
        }
        for (group, sums) in (first..task.groups.end).zip(&sums) {
            for (half, sums) in sums.iter().enumerate() {
                let lanes = task.lanes(group).saturating_sub(half * LANES).min(LANES);
                for (r, sum) in sums.iter().enumerate() {
                    let place = (row + r) * task.width + group * GROUP_ROWS + half * LANES;
                    store(task.out.wrapping_add(place), *sum, lanes);
                }
            }
        }
    }
    R
}
