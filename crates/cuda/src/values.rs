//! Where the values between the nodes live during a forward.

use candor_arch::{Graph, NodeId, Op, Plan};

use crate::buffer::{DevicePtr, Layout};
use crate::forward::LOGITS_ROWS_MAX;
use crate::prepare::{Panels, ROWS_MAX, panel_bytes};

/// Activations that are multiplied with matrices are padded to whole blocks of every type.
pub(crate) const PANEL_COLS: usize = 256;

/// Gives every node a place, and places to several nodes whose values are not needed at the same
/// time. A place holds the value in float32 and both forms in which matrices take it.
pub(crate) struct Values {
    base: DevicePtr,
    widths: Vec<usize>,
    /// By node: offsets of the value and of its other forms.
    places: Vec<(usize, usize)>,
    has_panels: Vec<bool>,
    bytes: usize,
}

impl Values {
    /// Lays everything out; the addresses are offsets until [`Values::at`].
    pub(crate) fn new(graph: &Graph, plan: &Plan) -> Self {
        let last_use = last_uses(graph, plan);
        let mut place = vec![0; graph.nodes.len()];
        let mut widest: Vec<(usize, usize)> = Vec::new();
        let mut free = Vec::new();
        for (step_idx, step) in plan.steps.iter().enumerate() {
            for node in &step.nodes {
                let need = needs(graph, *node);
                let buffer = free.pop().unwrap_or_else(|| {
                    widest.push((0, 0));
                    widest.len() - 1
                });
                place[node.0] = buffer;
                let (value, panels) = widest[buffer];
                widest[buffer] = (value.max(need.0), panels.max(need.1));
            }
            // What this step used last is free for the next one, not for this one's outputs.
            let done = (0..graph.nodes.len()).filter(|node| last_use[*node] == step_idx);
            free.extend(done.map(|node| place[node]));
        }
        let mut layout = Layout::default();
        let of_buffers: Vec<(usize, usize)> = widest
            .iter()
            .map(|(value, panels)| (layout.place(*value), layout.place(*panels)))
            .collect();
        Self {
            base: DevicePtr(0),
            widths: graph.nodes.iter().map(|node| node.width).collect(),
            places: place.iter().map(|buffer| of_buffers[*buffer]).collect(),
            has_panels: vec![false; graph.nodes.len()],
            bytes: layout.bytes(),
        }
    }

    /// Memory for all of it.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The same in memory, with no panel filled yet.
    pub(crate) fn at(mut self, base: DevicePtr) -> Self {
        self.base = base;
        self.has_panels.fill(false);
        self
    }

    pub(crate) fn of(&self, node: NodeId) -> DevicePtr {
        self.base.plus(self.places[node.0].0)
    }

    pub(crate) fn panels(&self, node: NodeId) -> Panels {
        let base = self.base.plus(self.places[node.0].1);
        Panels::place(&mut Layout::default(), self.widths[node.0]).at(base)
    }

    pub(crate) fn has_panels(&self, node: NodeId) -> bool {
        self.has_panels[node.0]
    }

    pub(crate) fn fills_panels(&mut self, node: NodeId) {
        self.has_panels[node.0] = true;
    }
}

/// Bytes of a node's value, and of its other forms.
fn needs(graph: &Graph, id: NodeId) -> (usize, usize) {
    let node = graph.node(id);
    match node.op {
        Op::Logits { .. } => (LOGITS_ROWS_MAX * node.width * 4, 0),
        _ => (ROWS_MAX * node.width * 4, panel_bytes(node.width)),
    }
}

/// For each node, the last step that reads it: its own where nobody does.
fn last_uses(graph: &Graph, plan: &Plan) -> Vec<usize> {
    let mut last = vec![0; graph.nodes.len()];
    for (step_idx, step) in plan.steps.iter().enumerate() {
        for node in &step.nodes {
            last[node.0] = step_idx;
            for input in &graph.node(*node).inputs {
                last[input.0] = step_idx;
            }
        }
    }
    last
}
