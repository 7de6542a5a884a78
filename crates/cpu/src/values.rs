//! Where the values between the nodes live during a forward.

use candor_arch::{Graph, NodeId, Plan, places};

/// Gives every node a buffer, and buffers to several nodes whose values are not needed at the
/// same time.
pub(crate) struct Values {
    /// By node.
    place: Vec<usize>,
    buffers: Vec<Vec<f32>>,
}

impl Values {
    pub(crate) fn new(graph: &Graph, plan: &Plan) -> Self {
        let place = places(graph, plan);
        let n_buffers = place.iter().max().map_or(0, |most| most + 1);
        Self {
            place,
            buffers: vec![Vec::new(); n_buffers],
        }
    }

    /// What a node gave.
    pub(crate) fn of(&self, node: NodeId) -> &[f32] {
        &self.buffers[self.place[node.0]]
    }

    /// A node's buffer, to be filled with `len` values and put back.
    pub(crate) fn take(&mut self, node: NodeId, len: usize) -> Vec<f32> {
        let mut buffer = std::mem::take(&mut self.buffers[self.place[node.0]]);
        buffer.resize(len, 0.0);
        buffer
    }

    /// Puts a buffer back.
    pub(crate) fn put(&mut self, node: NodeId, buffer: Vec<f32>) {
        self.buffers[self.place[node.0]] = buffer;
    }
}
