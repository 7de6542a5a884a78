//! Products of float32 activations with float weights.

use super::super::format::GROUP_ROWS;
use super::super::kernels::LinearTask;
use super::super::number::Number;
use super::lanes::Lanes;
use super::linear::{Corner, store_sums};

/// `R` rows times `C` registers of outputs, those behind the task's last group left out; gives
/// `R`.
///
/// # Safety
/// See [`super::super::kernels::LinearFn`]; the row and the `R - 1` after it must be rows of the
/// task, and the lanes of a column must lie in one group.
#[inline(always)]
pub(in crate::simd) unsafe fn floats<L: Lanes, N: Number, const C: usize, const R: usize>(
    task: &LinearTask,
    corner: Corner,
) -> usize {
    let corner = corner.of_columns::<L, C>();
    if corner.group >= task.groups.end {
        return R;
    }
    // SAFETY: every address below lies in a group of the matrix or in a row of the activations,
    // as the caller states.
    unsafe {
        let mut weights = [task.weights; C];
        for (c, weights) in weights.iter_mut().enumerate() {
            // A group that is not there is computed as the last one, and not stored.
            let (group, lane) = corner.column::<L>(c);
            let group = group.min(task.groups.end - 1);
            *weights = weights.add(group * task.group_bytes + lane * N::BYTES);
        }
        let acts = task.floats.add(corner.row * task.cols);
        let mut sums = [[L::splat(0.0); R]; C];
        for k in 0..task.cols {
            let mut numbers = [L::splat(0.0); C];
            for c in 0..C {
                numbers[c] = N::load::<L>(weights[c].add(k * GROUP_ROWS * N::BYTES));
            }
            for r in 0..R {
                let act = L::splat(*acts.add(r * task.cols + k));
                for c in 0..C {
                    sums[c][r] = L::mul_add(numbers[c], act, sums[c][r]);
                }
            }
        }
        store_sums::<L, C, R>(task, corner, &sums);
    }
    R
}
