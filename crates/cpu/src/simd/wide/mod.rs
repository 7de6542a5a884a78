//! The kernels that all families of wide registers share, written over [`Lanes`].
#![expect(
    clippy::needless_range_loop,
    reason = "indices name registers, of which several arrays are walked together"
)]

mod attention;
mod coded;
mod floats;
mod lanes;
mod linear;
mod rows;

pub(super) use attention::{AttendTile, attend, attend_by, join};
pub(super) use coded::unfold;
pub(super) use floats::floats;
pub(super) use lanes::{Lanes, lanes};
pub(super) use linear::{Acts, Corner, Part, integers, unpack, walk};
pub(super) use rows::{add, quantize, rms_norm, silu_mul, to_half};

/// The shared kernels, compiled for the instructions of a family; how many queries are attended to
/// at once is listed from one on, and the columns of a delta net that are taken at once.
macro_rules! entries {
    ($lanes:ident, $features:literal, queries $($queries:literal)*, columns $columns:literal) => {
        use super::attention::{AttendTask, Join};
        use super::coded::Unfold;
        use super::delta::{DeltaStep, columns_by};
        use super::panel::PanelRow;
        use super::wide::{self, AttendTile};

        #[target_feature(enable = $features)]
        unsafe fn integer_tile<B: Interleave, const C: usize, const R: usize>(
            task: &LinearTask,
            corner: Corner,
        ) -> usize {
            // SAFETY: passed on from the caller.
            unsafe { wide::integers::<$lanes, B, C, R>(task, corner) }
        }

        #[target_feature(enable = $features)]
        unsafe fn float_tile<N: Number, const C: usize, const R: usize>(
            task: &LinearTask,
            corner: Corner,
        ) -> usize {
            // SAFETY: passed on from the caller.
            unsafe { wide::floats::<$lanes, N, C, R>(task, corner) }
        }

        #[target_feature(enable = $features)]
        unsafe fn attend_tile<const R: usize>(task: &AttendTask, first: usize) -> usize {
            // SAFETY: passed on from the caller.
            unsafe { wide::attend::<$lanes, R>(task, first) }
        }

        unsafe fn attend(task: &AttendTask) {
            const TILES: &[AttendTile] = &[$(attend_tile::<$queries>),*];
            // SAFETY: passed on from the caller.
            unsafe { wide::attend_by::<$lanes>(task, TILES) }
        }

        #[target_feature(enable = $features)]
        unsafe fn join(task: &mut Join<'_>) {
            // SAFETY: passed on from the caller.
            unsafe { wide::join::<$lanes>(task) }
        }

        #[target_feature(enable = $features)]
        unsafe fn quantize(row: &[f32], out: PanelRow<'_>) {
            // SAFETY: passed on from the caller.
            unsafe { wide::quantize::<$lanes>(row, out) }
        }

        #[target_feature(enable = $features)]
        unsafe fn rms_norm(row: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
            // SAFETY: passed on from the caller.
            unsafe { wide::rms_norm::<$lanes>(row, weight, eps, out) }
        }

        #[target_feature(enable = $features)]
        unsafe fn silu_mul(gate: &mut [f32], up: &[f32]) {
            // SAFETY: passed on from the caller.
            unsafe { wide::silu_mul::<$lanes>(gate, up) }
        }

        #[target_feature(enable = $features)]
        unsafe fn add(sum: &mut [f32], addend: &[f32]) {
            wide::add(sum, addend);
        }

        #[target_feature(enable = $features)]
        unsafe fn to_half(values: &[f32], out: &mut [u16]) {
            // SAFETY: passed on from the caller.
            unsafe { wide::to_half::<$lanes>(values, out) }
        }

        #[target_feature(enable = $features)]
        unsafe fn delta(step: &mut DeltaStep<'_>) {
            columns_by::<$columns>(step);
        }

        #[target_feature(enable = $features)]
        unsafe fn unfold(task: &mut Unfold<'_>) {
            // SAFETY: passed on from the caller.
            unsafe { wide::unfold::<$lanes>(task) }
        }

        /// The table of the family.
        const fn table(name: &'static str, isa: Isa) -> Kernels {
            Kernels {
                name,
                isa,
                linear: linear_table::<$lanes>(),
                quantize,
                rms_norm,
                silu_mul,
                add,
                to_half,
                attend,
                join,
                delta,
                unfold,
            }
        }
    };
}
pub(super) use entries;
