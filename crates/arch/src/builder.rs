//! Writes a graph, node by node.

use crate::graph::{Graph, Node, NodeId, RowsOf, StateLayout, Weight, WeightId, WeightKind};
use crate::hparams::HParams;

/// Collects nodes and weights.
pub struct GraphBuilder<'a> {
    present: &'a dyn Fn(&str) -> bool,
    nodes: Vec<Node>,
    weights: Vec<Weight>,
    state: Vec<StateLayout>,
}

impl<'a> GraphBuilder<'a> {
    /// An empty graph; `present` says whether the file has a tensor of that name, which decides
    /// about the weights that an architecture may do without.
    pub fn new(present: &'a dyn Fn(&str) -> bool) -> Self {
        Self {
            present,
            nodes: Vec::new(),
            weights: Vec::new(),
            state: Vec::new(),
        }
    }

    /// A needed matrix. Asking again for the same name gives the same weight.
    pub fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> WeightId {
        self.weight(name, vec![rows, columns], WeightKind::Matrix)
    }

    /// Some rows of a needed matrix that holds several beside each other, all of `columns`.
    pub fn matrix_rows(
        &mut self,
        name: &str,
        rows: usize,
        part: RowsOf,
        columns: usize,
    ) -> WeightId {
        self.add(Weight {
            name: name.to_owned(),
            dims: vec![rows, columns],
            kind: WeightKind::Matrix,
            part: Some(part),
        })
    }

    /// A needed vector.
    pub fn vector(&mut self, name: &str, length: usize) -> WeightId {
        self.weight(name, vec![length], WeightKind::Vector)
    }

    /// A needed matrix of one row, which files keep as a vector.
    pub fn row(&mut self, name: &str, columns: usize) -> WeightId {
        self.weight(name, vec![columns], WeightKind::Matrix)
    }

    /// Needed values of several dimensions that are used one by one.
    pub fn table(&mut self, name: &str, dims: &[usize]) -> WeightId {
        self.weight(name, dims.to_vec(), WeightKind::Vector)
    }

    /// A matrix for each expert.
    pub fn expert_matrices(
        &mut self,
        name: &str,
        n_experts: usize,
        rows: usize,
        columns: usize,
    ) -> WeightId {
        self.weight(name, vec![n_experts, rows, columns], WeightKind::Matrix)
    }

    /// A vector, if the file has it.
    pub fn optional_vector(&mut self, name: &str, length: usize) -> Option<WeightId> {
        (self.present)(name).then(|| self.vector(name, length))
    }

    /// A matrix, if the file has it.
    pub fn optional_matrix(&mut self, name: &str, rows: usize, columns: usize) -> Option<WeightId> {
        (self.present)(name).then(|| self.matrix(name, rows, columns))
    }

    /// Appends a node.
    ///
    /// # Panics
    /// If an input does not stand earlier, which is a fault of the architecture's code.
    pub fn node(&mut self, node: Node) -> NodeId {
        let id = NodeId(self.nodes.len());
        assert!(
            node.inputs.iter().all(|i| *i < id),
            "inputs of {} stand earlier",
            node.name
        );
        self.nodes.push(node);
        id
    }

    /// Values per row that a node gives.
    pub fn width(&self, id: NodeId) -> usize {
        self.nodes[id.0].width
    }

    /// Rows of a weight, over all but the last of its dimensions.
    pub fn rows(&self, id: WeightId) -> usize {
        let dims = &self.weights[id.0].dims;
        dims[..dims.len() - 1].iter().product()
    }

    /// Appends the state of the next layer.
    pub fn state(&mut self, layout: StateLayout) {
        self.state.push(layout);
    }

    /// The finished graph.
    pub fn finish(self, architecture: &str, hparams: HParams) -> Graph {
        Graph {
            architecture: architecture.to_owned(),
            hparams,
            nodes: self.nodes,
            weights: self.weights,
            state: self.state,
        }
    }

    fn weight(&mut self, name: &str, dims: Vec<usize>, kind: WeightKind) -> WeightId {
        self.add(Weight {
            name: name.to_owned(),
            dims,
            kind,
            part: None,
        })
    }

    fn add(&mut self, weight: Weight) -> WeightId {
        let same = |w: &Weight| w.name == weight.name && w.part == weight.part;
        if let Some(at) = self.weights.iter().position(same) {
            return WeightId(at);
        }
        self.weights.push(weight);
        WeightId(self.weights.len() - 1)
    }
}
