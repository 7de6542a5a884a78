//! One forward: the walk over the plan's steps.

use candor_arch::{NodeId, Op, Pattern, Plan, Step, WeightId};
use candor_backend::{CancelToken, Feed, Row, RowOutput, Run, SessionError, Tap};

use crate::ops::{self, rope::Angles};
use crate::simd::{Kernels, Panel};
use crate::state::State;
use crate::threads::{Pool, TaskPanicked};
use crate::values::Values;
use crate::weights::{Matrix, PackedWeights, Weights};

/// Rows that go through the plan together.
pub(crate) const ROWS_MAX: usize = candor_arch::FORWARD_ROWS_MAX;

/// The patterns that the steps below know.
pub(crate) const PATTERNS: &[Pattern] = &[
    Pattern::SharedInput,
    Pattern::AddNorm,
    Pattern::RopeAttention,
];

/// What stays the same from forward to forward.
pub(crate) struct Machine<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) kernels: &'static Kernels,
    pub(crate) weights: &'a Weights,
    /// None on the exact path.
    pub(crate) packed: Option<&'a PackedWeights>,
    pub(crate) plan: &'a Plan,
}

impl<'a> Machine<'a> {
    /// A matrix in the form of the path.
    pub(crate) fn matrix(&self, id: WeightId) -> Matrix<'a> {
        self.expert(id, 0)
    }

    /// The matrix of one expert, likewise.
    pub(crate) fn expert(&self, id: WeightId, expert: usize) -> Matrix<'a> {
        let packed = self.packed.and_then(|packed| packed.matrix(id, expert));
        packed.unwrap_or_else(|| {
            let stored = self.weights.each_stored(id).nth(expert);
            Matrix::Stored(stored.expect("the graph has as many experts"))
        })
    }

    /// Whether float32 arithmetic is asked for.
    pub(crate) fn is_exact(&self) -> bool {
        self.packed.is_none()
    }
}

/// Memory that is used again from forward to forward.
pub(crate) struct Workspace {
    pub(crate) values: Values,
    /// One for each thread.
    pub(crate) threads: Vec<Vec<f32>>,
    /// The activations in 8 bits.
    pub(crate) panel: Panel,
    /// Inner values of an operation.
    pub(crate) inner: [Vec<f32>; 2],
    /// One for each way to rotate.
    pub(crate) angles: Vec<Angles>,
}

/// A forward under way.
pub(crate) struct Forward<'a> {
    pub(crate) machine: Machine<'a>,
    pub(crate) cancel: &'a CancelToken,
    pub(crate) work: &'a mut Workspace,
    pub(crate) state: &'a mut State,
    pub(crate) rows: &'a [Row],
    pub(crate) runs: &'a [Run],
}

/// Why a forward ended early.
#[derive(Debug)]
pub(crate) enum Stopped {
    Cancelled,
    Failed(SessionError),
}

impl From<TaskPanicked> for Stopped {
    fn from(_: TaskPanicked) -> Self {
        Self::Failed(SessionError::DeviceLost {
            reason: "a computing thread failed; this is a fault of the program".to_owned(),
        })
    }
}

impl Forward<'_> {
    /// Walks all steps and appends the outputs of the rows that want one.
    pub(crate) fn run(
        &mut self,
        outputs: &mut Vec<RowOutput>,
        mut tap: Option<&mut dyn Tap>,
    ) -> Result<(), Stopped> {
        ops::rope::prepare(self);
        for step in &self.machine.plan.steps {
            if self.cancel.is_cancelled() {
                return Err(Stopped::Cancelled);
            }
            self.step(step, outputs)?;
            if self.cancel.is_cancelled() {
                // The step may have left tiles out.
                return Err(Stopped::Cancelled);
            }
            if let Some(tap) = tap.as_deref_mut() {
                self.show(step, tap);
            }
        }
        Ok(())
    }

    /// Rows of this forward.
    pub(crate) fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// The token of a row.
    pub(crate) fn token(&self, row: usize) -> usize {
        let Feed::Token(token) = self.rows[row].feed;
        token as usize
    }

    fn step(&mut self, step: &Step, outputs: &mut Vec<RowOutput>) -> Result<(), Stopped> {
        match (step.pattern, &step.nodes[..]) {
            (Some(Pattern::SharedInput), nodes) => ops::linear::run(self, nodes),
            (Some(Pattern::AddNorm), &[sum, normed]) => ops::add::with_norm(self, sum, normed),
            (Some(Pattern::RopeAttention), &[q, k, mixed]) => {
                ops::rope::run(self, q)?;
                ops::rope::run(self, k)?;
                ops::attention::run(self, mixed)
            }
            (_, nodes) => nodes
                .iter()
                .try_for_each(|node| self.single(*node, outputs)),
        }
    }

    fn single(&mut self, id: NodeId, outputs: &mut Vec<RowOutput>) -> Result<(), Stopped> {
        match self.machine.weights.model.graph.node(id).op {
            Op::Embed { table } => ops::embed::run(self, id, table),
            Op::RmsNorm { weight, eps } => ops::rms_norm::run(self, id, weight, eps),
            Op::Linear { .. } => ops::linear::run(self, &[id]),
            Op::Rope(_) => ops::rope::run(self, id),
            Op::Attention { .. } => ops::attention::run(self, id),
            Op::GatedFfn { .. } => ops::gated_ffn::run(self, id),
            Op::Experts { .. } => ops::experts::run(self, id),
            Op::Add => ops::add::run(self, id),
            Op::Scale { factor } => ops::scale::run(self, id, factor),
            Op::Part { .. } => ops::part::run(self, id),
            Op::Gate { activation } => ops::gate::run(self, id, activation),
            Op::CausalConv { weight, taps } => ops::causal_conv::run(self, id, weight, taps),
            Op::DeltaNet(net) => ops::delta_net::run(self, id, net),
            Op::Logits { .. } => ops::logits::run(self, id, outputs),
        }
    }

    fn show(&self, step: &Step, tap: &mut dyn Tap) {
        let graph = &self.machine.weights.model.graph;
        for id in &step.nodes {
            let node = graph.node(*id);
            if !matches!(node.op, Op::Logits { .. }) {
                tap.output(
                    &node.name,
                    self.n_rows(),
                    node.width,
                    self.work.values.of(*id),
                );
            }
        }
    }
}

/// Values below which waking the other threads costs more than it saves.
const SPREAD_MIN: usize = 1 << 14;

/// Fills the rows of `out`, a few at a time, on all threads where that pays. `work` gets the
/// number of a row and its place.
pub(crate) fn each_row(
    machine: &Machine<'_>,
    cancel: &CancelToken,
    threads: &mut [Vec<f32>],
    out: (&mut [f32], usize),
    work: impl Fn(usize, &mut [f32]) + Sync,
) -> Result<(), Stopped> {
    let (values, width) = out;
    let n_rows = values.len() / width;
    let rows_per_part = if values.len() < SPREAD_MIN {
        n_rows
    } else {
        n_rows.div_ceil(4 * machine.pool.threads())
    };
    let parts = values.chunks_mut(rows_per_part.max(1) * width).enumerate();
    let mut parts: Vec<_> = parts.collect();
    machine
        .pool
        .each(&mut parts, threads, cancel, |_, (part_idx, part)| {
            for (i, row) in part.chunks_exact_mut(width).enumerate() {
                work(*part_idx * rows_per_part + i, row);
            }
        })?;
    Ok(())
}
