//! RmsNorm: of whole rows, with the forms in which matrices take them; or of each head.

use candor_arch::{Graph, NodeId, Op};

use crate::buffer::DevicePtr;
use crate::device::Fault;
use crate::forward::{Forward, Launch, Path};
use crate::launch::{Args, Grid, Kernel};
use crate::prepare::{Panels, Prepare};

pub(crate) fn prepare(p: &mut Prepare<'_>, nodes: &[NodeId]) -> Result<Box<dyn Launch>, Fault> {
    let node = p.node(nodes[0]);
    let Op::RmsNorm { weight, .. } = node.op else {
        unreachable!("only normalisations come here");
    };
    if p.vector(weight).len == node.width {
        Ok(Box::new(RowNorm::prepare(p, nodes[0], None)?))
    } else {
        Ok(Box::new(PartNorm::prepare(p, nodes[0])?))
    }
}

/// What is added to a row before it is normalised, and where the sum goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addend {
    /// Both inputs.
    pub(super) inputs: [DevicePtr; 2],
    pub(super) sum: DevicePtr,
}

/// Of whole rows.
pub(super) struct RowNorm {
    kernel: Kernel,
    /// What is normalised where nothing is added.
    x: DevicePtr,
    addend: Option<Addend>,
    weight: DevicePtr,
    eps: f32,
    out: DevicePtr,
    /// None where no matrix takes the row.
    panels: Option<Panels>,
    width: usize,
}

impl RowNorm {
    /// Of the node's input, or of the sum that it stands behind.
    pub(super) fn prepare(
        p: &mut Prepare<'_>,
        id: NodeId,
        addend: Option<Addend>,
    ) -> Result<Self, Fault> {
        let node = p.node(id);
        let Op::RmsNorm { weight, eps } = node.op else {
            unreachable!("only normalisations come here");
        };
        let panels = feeds_matrices(p.graph, id).then(|| p.panels(id));
        if panels.is_some() {
            p.fills_panels(id);
        }
        Ok(Self {
            kernel: p.kernel("rms_norm", "rms_norm_row")?,
            x: p.value(node.inputs[0]),
            addend,
            weight: p.vector(weight).ptr,
            eps,
            out: p.value(id),
            panels,
            width: node.width,
        })
    }
}

/// Whether something multiplies this node's value with a matrix.
fn feeds_matrices(graph: &Graph, id: NodeId) -> bool {
    graph.nodes.iter().any(|node| {
        let multiplies = matches!(
            node.op,
            Op::Linear { .. } | Op::GatedFfn { .. } | Op::Experts { .. } | Op::Logits { .. }
        );
        multiplies && node.inputs.contains(&id)
    })
}

/// Values of a row that a thread has at once.
const VALUES_OF_THREAD: usize = 4;

/// Threads of a warp, and the most of a block.
const WARP: usize = 32;
const THREADS_MAX: usize = 1024;

impl Launch for RowNorm {
    fn launch(&self, f: &Forward<'_>) -> Result<(), Fault> {
        let threads = self.width.div_ceil(VALUES_OF_THREAD);
        let threads = threads.next_multiple_of(WARP).min(THREADS_MAX);
        let (codes, halves) = match (f.path, &self.panels) {
            (_, None) => (None, None),
            (Path::Decode, Some(panels)) => (Some(&panels.codes), None),
            (Path::Prefill, Some(panels)) => (None, Some(&panels.halves)),
        };
        let [a, b, sum] = match self.addend {
            None => [Some(self.x), None, None],
            Some(Addend { inputs, sum }) => [Some(inputs[0]), Some(inputs[1]), Some(sum)],
        };
        let args = Args::new()
            .ptr_or_null(a)
            .ptr_or_null(b)
            .ptr_or_null(sum)
            .ptr(self.weight)
            .f32(self.eps)
            .ptr(self.out)
            .codes(codes)
            .halves(halves)
            .size(self.width);
        let grid = Grid::of(f.rows, threads as u32);
        f.device.launch(&self.kernel, grid, args)
    }
}

/// Of parts of a row, as long as the weight, each on its own.
pub(super) struct PartNorm {
    kernel: Kernel,
    x: DevicePtr,
    weight: DevicePtr,
    eps: f32,
    out: DevicePtr,
    part: usize,
    parts_of_row: usize,
}

/// Parts of a block: a warp each.
const PARTS: usize = 4;

impl PartNorm {
    pub(super) fn prepare(p: &mut Prepare<'_>, id: NodeId) -> Result<Self, Fault> {
        let node = p.node(id);
        let Op::RmsNorm { weight, eps } = node.op else {
            unreachable!("only normalisations come here");
        };
        let weight = p.vector(weight);
        Ok(Self {
            kernel: p.kernel("rms_norm", "rms_norm_parts")?,
            x: p.value(node.inputs[0]),
            weight: weight.ptr,
            eps,
            out: p.value(id),
            part: weight.len,
            parts_of_row: node.width / weight.len,
        })
    }
}

impl Launch for PartNorm {
    fn launch(&self, f: &Forward<'_>) -> Result<(), Fault> {
        let parts = f.rows * self.parts_of_row;
        let args = Args::new()
            .ptr(self.x)
            .ptr(self.weight)
            .f32(self.eps)
            .ptr(self.out)
            .size(self.part)
            .size(parts);
        let grid = Grid::of(parts.div_ceil(PARTS), (PARTS * WARP) as u32);
        f.device.launch(&self.kernel, grid, args)
    }
}
