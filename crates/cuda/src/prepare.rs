//! What an operation finds when a session is opened: kernels and addresses are looked up once.
//!
//! Called twice for every step: first to learn how much memory the steps take, with addresses that
//! mean nothing, then with the true ones.

use candor_arch::{FORWARD_ROWS_MAX, Graph, Node, NodeId, WeightId};
use candor_backend::OpenOptions;

use crate::buffer::{DevicePtr, Layout};
use crate::device::{Device, Fault};
use crate::forward::DECODE_ROWS_MAX;
use crate::launch::Kernel;
use crate::state::{KvPlace, RecurrentPlace, StatePlan};
use crate::values::{PANEL_COLS, Values};
use crate::weights::{Matrix, Vector};

/// Rows that go through the steps together.
pub(crate) const ROWS_MAX: usize = FORWARD_ROWS_MAX;

/// Arrays of `int` that describe the rows of a forward, the same addresses for all forwards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepPtrs {
    /// `[rows]`: the token of each row.
    pub(crate) token: DevicePtr,
    /// `[rows]`: its position; -1 for a row past the batch's own, which has to write nothing but
    /// its own rows of values and scratch.
    pub(crate) position: DevicePtr,
    /// `[rows]`: its slot (0 where the position is -1).
    pub(crate) slot: DevicePtr,
    /// `[LOGITS_ROWS_MAX]`: rows of which logits are wanted, -1 behind them. The logits step reads
    /// `Forward::wanted` entries from here.
    pub(crate) want: DevicePtr,
    /// `[LOGITS_ROWS_MAX]`: for each entry of `want`, how many of the largest logits are wanted.
    pub(crate) top: DevicePtr,
    /// `[rows][4]`: slot, first row, rows, position of the first row, for rows of a slot that
    /// follow each other; rows is 0 behind the last.
    pub(crate) runs: DevicePtr,
    /// `[slots]`: which of the two copies of the recurrent state a forward reads first.
    pub(crate) source: DevicePtr,
    /// `[slots]`: which it writes; the same as `source` in later parts of a batch.
    pub(crate) target: DevicePtr,
}

/// Activations in 8 bits on the decode path: `int8 codes[DECODE_ROWS_MAX][stride]` and
/// `float scales[DECODE_ROWS_MAX][stride / 32]`; zeros with scale 0 past the width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodePanel {
    pub(crate) codes: DevicePtr,
    pub(crate) scales: DevicePtr,
    /// The width, rounded up to [`PANEL_COLS`].
    pub(crate) stride: usize,
}

/// Activations in float16 on the prefill path: `half values[ROWS_MAX][stride]`, zeros past the
/// width, and `float row_scales[ROWS_MAX]`: a value is `values * row_scale`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HalfPanel {
    pub(crate) halves: DevicePtr,
    pub(crate) row_scales: DevicePtr,
    /// The width, rounded up to [`PANEL_COLS`].
    pub(crate) stride: usize,
}

/// Both forms of a node's value. On each path its own is used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panels {
    pub(crate) codes: CodePanel,
    pub(crate) halves: HalfPanel,
}

/// Bytes of both forms of `width` values of every row.
pub(crate) fn panel_bytes(width: usize) -> usize {
    let mut layout = Layout::default();
    Panels::place(&mut layout, width);
    layout.bytes()
}

impl Panels {
    /// Lays them out; the addresses are offsets.
    pub(crate) fn place(layout: &mut Layout, width: usize) -> Self {
        let stride = width.next_multiple_of(PANEL_COLS);
        let mut place = |bytes| DevicePtr(layout.place(bytes) as u64);
        Self {
            codes: CodePanel {
                codes: place(DECODE_ROWS_MAX * stride),
                scales: place(DECODE_ROWS_MAX * stride / 32 * 4),
                stride,
            },
            halves: HalfPanel {
                halves: place(ROWS_MAX * stride * 2),
                row_scales: place(ROWS_MAX * 4),
                stride,
            },
        }
    }

    pub(crate) fn at(self, base: DevicePtr) -> Self {
        let at = |ptr: DevicePtr| base.plus(ptr.0 as usize);
        Self {
            codes: CodePanel {
                codes: at(self.codes.codes),
                scales: at(self.codes.scales),
                ..self.codes
            },
            halves: HalfPanel {
                halves: at(self.halves.halves),
                row_scales: at(self.halves.row_scales),
                ..self.halves
            },
        }
    }
}

/// A session in the making.
pub(crate) struct Prepare<'a> {
    pub(crate) device: &'a Device,
    pub(crate) graph: &'a Graph,
    pub(crate) options: OpenOptions,
    pub(crate) step: StepPtrs,
    pub(crate) weights: &'a crate::upload::Weights,
    pub(crate) values: &'a mut Values,
    pub(crate) state: &'a StatePlan,
    pub(crate) scratch: &'a mut Scratch,
    pub(crate) constants: &'a mut Constants,
}

impl<'a> Prepare<'a> {
    /// A node of the graph.
    pub(crate) fn node(&self, id: NodeId) -> &'a Node {
        self.graph.node(id)
    }

    /// A kernel by its module and name. The module is loaded if it is the first of it.
    pub(crate) fn kernel(&self, module: &str, name: &'static str) -> Result<Kernel, Fault> {
        self.device.kernel(module, name)
    }

    /// A kernel that takes so much dynamic shared memory.
    pub(crate) fn kernel_with_shared(
        &self,
        module: &str,
        name: &'static str,
        shared_bytes: usize,
    ) -> Result<Kernel, Fault> {
        let kernel = self.device.kernel(module, name)?;
        self.device.allow_shared(&kernel, shared_bytes)?;
        Ok(kernel)
    }

    /// Where a node's value lies: `float [ROWS_MAX][width]`. For the logits node
    /// `float [LOGITS_ROWS_MAX][vocabulary]`, row `i` belonging to entry `i` of
    /// [`StepPtrs::want`].
    pub(crate) fn value(&self, node: NodeId) -> DevicePtr {
        self.values.of(node)
    }

    /// Where a node's value lies in the forms that matrices are multiplied with. A producer that
    /// fills them on its way says so with [`Prepare::fills_panels`].
    pub(crate) fn panels(&self, node: NodeId) -> Panels {
        self.values.panels(node)
    }

    /// Whether a step before fills both forms of a node's value, each on its path. Where not, the
    /// asking step has to, and says so with [`Prepare::fills_panels`], so that no later one does
    /// it again.
    pub(crate) fn has_panels(&self, node: NodeId) -> bool {
        self.values.has_panels(node)
    }

    /// From here on, in the order of the steps, both forms of this node's value are filled.
    pub(crate) fn fills_panels(&mut self, node: NodeId) {
        self.values.fills_panels(node);
    }

    /// A matrix.
    pub(crate) fn matrix(&self, id: WeightId) -> Matrix {
        self.weights.matrix(id)
    }

    /// A vector, or a table of values used one by one.
    pub(crate) fn vector(&self, id: WeightId) -> Vector {
        self.weights.vector(id)
    }

    /// Memory for this step alone: the next step may have the same. Sizes are per call; several
    /// calls of one step do not overlap.
    pub(crate) fn scratch(&mut self, bytes: usize) -> DevicePtr {
        self.scratch.take(bytes)
    }

    /// Both forms of `width` inner values of every row, for this step alone.
    pub(crate) fn scratch_panels(&mut self, width: usize) -> Panels {
        let base = self.scratch(panel_bytes(width));
        Panels::place(&mut Layout::default(), width).at(base)
    }

    /// Memory that holds these values as long as the session: what a step computes once on the
    /// host, such as the frequencies of a rotation. The same values are kept once.
    pub(crate) fn constant(&mut self, values: Vec<f32>) -> DevicePtr {
        self.constants.keep(values)
    }

    /// Where an attention layer keeps keys and values.
    pub(crate) fn kv(&self, layer: usize) -> KvPlace {
        self.state.kv(layer)
    }

    /// Where a recurrent layer keeps its sums.
    pub(crate) fn recurrent(&self, layer: usize) -> RecurrentPlace {
        self.state.recurrent(layer)
    }
}

/// Memory that one step after the other uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scratch {
    base: DevicePtr,
    step: Layout,
    most: usize,
}

impl Scratch {
    pub(crate) fn new(base: DevicePtr) -> Self {
        Self {
            base,
            step: Layout::default(),
            most: 0,
        }
    }

    fn take(&mut self, bytes: usize) -> DevicePtr {
        let at = self.step.place(bytes);
        self.most = self.most.max(self.step.bytes());
        self.base.plus(at)
    }

    /// The next step begins.
    pub(crate) fn next_step(&mut self) {
        self.step = Layout::default();
    }

    /// What the hungriest step takes.
    pub(crate) fn bytes(&self) -> usize {
        self.most
    }
}

/// Values from the host that stay for the session.
#[derive(Debug, Default)]
pub(crate) struct Constants {
    base: Option<DevicePtr>,
    layout: Layout,
    kept: Vec<(usize, Vec<f32>)>,
}

impl Constants {
    /// The same from the start, now that there is memory for them.
    pub(crate) fn at(base: DevicePtr) -> Self {
        Self {
            base: Some(base),
            ..Self::default()
        }
    }

    fn keep(&mut self, values: Vec<f32>) -> DevicePtr {
        let base = self.base.unwrap_or(DevicePtr(0));
        let same = |kept: &&(usize, Vec<f32>)| {
            let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            bits(&kept.1) == bits(&values)
        };
        if let Some((at, _)) = self.kept.iter().find(same) {
            return base.plus(*at);
        }
        let at = self.layout.place(values.len() * 4);
        self.kept.push((at, values));
        base.plus(at)
    }

    /// Memory for all of them.
    pub(crate) fn bytes(&self) -> usize {
        self.layout.bytes()
    }

    /// Offset and values of each.
    pub(crate) fn kept(&self) -> &[(usize, Vec<f32>)] {
        &self.kept
    }
}
