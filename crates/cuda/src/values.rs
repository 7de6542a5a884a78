//! Where the values between the nodes live during a forward.

use candor_arch::{Graph, NodeId, Op, Plan, places};

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
        let place = places(graph, plan);
        let n_places = place.iter().max().map_or(0, |most| most + 1);
        let mut widest = vec![(0, 0); n_places];
        for (id, at) in place.iter().enumerate() {
            let need = needs(graph, NodeId(id));
            let most: &mut (usize, usize) = &mut widest[*at];
            *most = (most.0.max(need.0), most.1.max(need.1));
        }
        let mut layout = Layout::default();
        let offsets: Vec<(usize, usize)> = widest
            .iter()
            .map(|(value, panels)| (layout.place(*value), layout.place(*panels)))
            .collect();
        Self {
            base: DevicePtr(0),
            widths: graph.nodes.iter().map(|node| node.width).collect(),
            places: place.iter().map(|at| offsets[*at]).collect(),
            has_panels: vec![false; graph.nodes.len()],
            bytes: layout.bytes(),
        }
    }

    /// Memory for all of it.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// From here on in memory, with no panel filled yet.
    pub(crate) fn begin(&mut self, base: DevicePtr) {
        self.base = base;
        self.has_panels.fill(false);
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
