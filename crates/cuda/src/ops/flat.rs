//! Launches over values one by one, wherever they lie in a row; and a step of two launches.

use crate::device::Fault;
use crate::forward::{Forward, Launch};
use crate::launch::Grid;

/// Threads of a block, in all of these kernels.
const THREADS: u32 = 256;

/// Neighbouring values of a thread (kernels/include/flat.cuh).
const VALUES_OF_THREAD: usize = 4;

/// A launch over all rows as one run of values.
pub(super) struct Flat {
    pub(super) values: u64,
    pub(super) grid: Grid,
}

impl Flat {
    pub(super) fn of(f: &Forward<'_>, width: usize) -> Self {
        let values = f.rows * width;
        Self {
            values: values as u64,
            grid: Grid::of(
                values.div_ceil(THREADS as usize * VALUES_OF_THREAD),
                THREADS,
            ),
        }
    }
}

/// A launch with a thread for each value of each row.
pub(super) fn by_rows(f: &Forward<'_>, width: usize) -> Grid {
    Grid::of3([width.div_ceil(THREADS as usize), f.rows, 1], THREADS)
}

impl<A: Launch, B: Launch> Launch for (A, B) {
    fn launch(&self, forward: &Forward<'_>) -> Result<(), Fault> {
        self.0.launch(forward)?;
        self.1.launch(forward)
    }
}
