//! One forward: what its launches get to know.

use candor_backend::Run;

use crate::device::{Device, Fault};

/// Rows of a batch up to which the decode kernels compute it. They read every weight once for all
/// of them; beyond that the tensor cores are faster.
pub(crate) const DECODE_ROWS_MAX: usize = 8;

/// Rows of logits that are computed at once.
pub(crate) const LOGITS_ROWS_MAX: usize = 32;

/// Which kernels compute a batch. A batch, not a part of one, decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Path {
    /// At most [`DECODE_ROWS_MAX`] rows: 8-bit activations (float32 ones with float weights).
    /// Launches are captured into a graph: they may depend on nothing but the fields of
    /// [`Forward`] that stay the same in a bucket (`rows`, `context`, `wanted`).
    Decode,
    /// More rows: float16 activations. Launched plainly.
    Prefill,
}

/// A forward, or the part of one that goes through the steps together.
pub(crate) struct Forward<'a> {
    pub(crate) device: &'a Device,
    pub(crate) path: Path,
    /// Rows to compute: 1, 2, 4 or 8 on the decode path, of which those past the batch's own have
    /// position -1; as many as there are on the prefill path (at most 512).
    pub(crate) rows: usize,
    /// No row's position + 1 is more. On the decode path a bucket.
    pub(crate) context: usize,
    /// Rows of logits that this launch of the logits step computes: entries of `StepPtrs::want`.
    pub(crate) wanted: usize,
    /// Prefill path only; empty on the decode path, where the device's copy says it.
    pub(crate) runs: &'a [Run],
}

impl Forward<'_> {
    /// Places of [`StepPtrs::runs`](crate::prepare::StepPtrs::runs) that may hold a run.
    pub(crate) fn runs_max(&self) -> usize {
        match self.path {
            // The same for all forwards of a bucket: each row may be a run of its own.
            Path::Decode => self.rows,
            Path::Prefill => self.runs.len(),
        }
    }
}

/// A step that is ready to run: kernels and pointers were looked up.
pub(crate) trait Launch {
    /// Enqueues it.
    fn launch(&self, forward: &Forward<'_>) -> Result<(), Fault>;
}
