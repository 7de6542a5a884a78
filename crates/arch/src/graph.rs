//! The graph: nodes, the weights they need, and the state they keep.

use crate::hparams::HParams;

pub use crate::builder::GraphBuilder;
pub use crate::op::{
    Activation, DeltaNet, ExpertBiases, KeyOrder, Op, Rope, RopeStyle, Routing, Shares,
};
pub use crate::state::StateLayout;

/// A node of one graph, which is also the name of the value it gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub usize);

/// A weight of one graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WeightId(pub usize);

/// What may stand in a weight's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightKind {
    /// Rows that rows of activations are multiplied with; any storage type.
    Matrix,
    /// Values used one by one; a floating-point type.
    Vector,
}

/// Some rows of a tensor, where a file keeps several matrices as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsOf {
    /// The first of them.
    pub first: usize,
    /// How many the tensor has.
    pub total: usize,
}

/// A tensor, or a part of one, that the graph needs from the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weight {
    /// The tensor's canonical name.
    pub name: String,
    /// Outermost first: `[rows, columns]`, or `[length]`.
    pub dims: Vec<usize>,
    /// How it is used.
    pub kind: WeightKind,
    /// Which rows of the tensor it is; the whole of it where nothing is said.
    pub part: Option<RowsOf>,
}

impl Weight {
    /// The dimensions of the tensor.
    pub fn tensor_dims(&self) -> Vec<usize> {
        let mut dims = self.dims.clone();
        if let (Some(part), Some(rows)) = (self.part, dims.first_mut()) {
            *rows = part.total;
        }
        dims
    }

    /// Of so many bytes of the tensor, those that are its own.
    pub fn bytes_of(&self, tensor: std::ops::Range<usize>) -> std::ops::Range<usize> {
        match (self.part, self.dims.first()) {
            (Some(part), Some(rows)) => {
                let row = tensor.len() / part.total;
                let start = tensor.start + part.first * row;
                start..start + rows * row
            }
            _ => tensor,
        }
    }
}

/// One operation in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Dotted, such as `blk.7.attn_out`.
    pub name: String,
    /// What it does.
    pub op: Op,
    /// The nodes whose values it takes; all of them stand earlier.
    pub inputs: Vec<NodeId>,
    /// The layer it belongs to.
    pub layer: Option<usize>,
    /// Values per row that it gives.
    pub width: usize,
}

/// What to compute for a model: data that every backend reads the same way.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// The architecture's name, as in the file.
    pub architecture: String,
    /// The numbers that shape it.
    pub hparams: HParams,
    /// In an order in which they can run.
    pub nodes: Vec<Node>,
    /// Every tensor that is needed.
    pub weights: Vec<Weight>,
    /// One entry per layer.
    pub state: Vec<StateLayout>,
}

impl Graph {
    /// A node by its number.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// A weight by its number.
    pub fn weight(&self, id: WeightId) -> &Weight {
        &self.weights[id.0]
    }
}
