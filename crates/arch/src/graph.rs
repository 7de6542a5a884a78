//! The graph: nodes, the weights they need, and the state they keep.

use std::fmt;

use crate::hparams::HParams;

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

/// A tensor that the graph needs from the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weight {
    /// Its canonical name.
    pub name: String,
    /// Outermost first: `[rows, columns]`, or `[length]`.
    pub dims: Vec<usize>,
    /// How it is used.
    pub kind: WeightKind,
}

/// Which two values of a head are turned together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeStyle {
    /// Neighbours: 0 with 1, 2 with 3.
    Adjacent,
    /// One from each half of the rotated part: 0 with n/2.
    Halves,
}

/// How positions are turned into angles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// Which values go together.
    pub style: RopeStyle,
    /// Values of a head.
    pub head_dim: usize,
    /// How many of them are rotated, from the front.
    pub n_rot: usize,
    /// The base of the frequencies.
    pub base: f32,
    /// A divisor for each frequency, from the file.
    pub factors: Option<WeightId>,
}

/// The function between the two halves of a gated feed-forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// x / (1 + exp(-x)).
    Silu,
}

/// An operation on a batch of rows, whatever their number.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// The row of the table that belongs to the token.
    Embed {
        /// `[vocabulary, width]`.
        table: WeightId,
    },
    /// x / sqrt(mean(x²) + eps) · weight.
    RmsNorm {
        /// `[width]`.
        weight: WeightId,
        /// Added to the mean of the squares.
        eps: f32,
    },
    /// weight · x + bias.
    Linear {
        /// `[outputs, inputs]`.
        weight: WeightId,
        /// `[outputs]`.
        bias: Option<WeightId>,
    },
    /// Turns every head by the angle of the row's position.
    Rope(Rope),
    /// Appends the row's key and value (inputs 1 and 2) to the layer's state, and gives for every
    /// head of the query (input 0) the mean of the values, weighted by softmax(scale · q · k),
    /// over the positions up to the row's own.
    Attention {
        /// Heads of the query.
        n_heads: usize,
        /// Heads of key and value; several query heads share one.
        n_kv_heads: usize,
        /// Values of a head.
        head_dim: usize,
        /// Factor of the scores.
        scale: f32,
    },
    /// down · (activation(gate · x) ⊙ (up · x)).
    GatedFfn {
        /// `[inner, width]`.
        gate: WeightId,
        /// `[inner, width]`.
        up: WeightId,
        /// `[width, inner]`.
        down: WeightId,
        /// Values between.
        inner: usize,
        /// The function on the gate.
        activation: Activation,
    },
    /// The sum of the two inputs.
    Add,
    /// weight · x, for the rows of which somebody wants it.
    Logits {
        /// `[vocabulary, width]`.
        weight: WeightId,
    },
}

impl Op {
    /// The name of the operation, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Embed { .. } => "Embed",
            Self::RmsNorm { .. } => "RmsNorm",
            Self::Linear { .. } => "Linear",
            Self::Rope(_) => "Rope",
            Self::Attention { .. } => "Attention",
            Self::GatedFfn { .. } => "GatedFfn",
            Self::Add => "Add",
            Self::Logits { .. } => "Logits",
        }
    }

    /// The weights it reads.
    pub fn weights(&self) -> Vec<WeightId> {
        match self {
            Self::Embed { table } => vec![*table],
            Self::RmsNorm { weight, .. } | Self::Logits { weight } => vec![*weight],
            Self::Linear { weight, bias } => [Some(*weight), *bias].into_iter().flatten().collect(),
            Self::Rope(rope) => rope.factors.into_iter().collect(),
            Self::GatedFfn { gate, up, down, .. } => vec![*gate, *up, *down],
            Self::Attention { .. } | Self::Add => Vec::new(),
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

/// What a layer remembers of the tokens before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateLayout {
    /// Key and value of every token.
    Full {
        /// Heads of key and of value.
        n_kv_heads: usize,
        /// Values of a head.
        head_dim: usize,
    },
}

impl StateLayout {
    /// Values kept per token.
    pub fn values_per_token(&self) -> usize {
        match self {
            Self::Full {
                n_kv_heads,
                head_dim,
            } => 2 * n_kv_heads * head_dim,
        }
    }

    /// The kind, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Full { .. } => "full attention",
        }
    }
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

    /// A needed vector.
    pub fn vector(&mut self, name: &str, length: usize) -> WeightId {
        self.weight(name, vec![length], WeightKind::Vector)
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
        if let Some(at) = self.weights.iter().position(|w| w.name == name) {
            return WeightId(at);
        }
        self.weights.push(Weight {
            name: name.to_owned(),
            dims,
            kind,
        });
        WeightId(self.weights.len() - 1)
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let h = &self.hparams;
        writeln!(
            f,
            "{}: {} layers, width {}, vocabulary {}, context {}",
            self.architecture, h.n_layers, h.width, h.vocabulary, h.context_length
        )?;
        for (i, node) in self.nodes.iter().enumerate() {
            write!(f, "%{i} {} [{}] = ", node.name, node.width)?;
            self.write_op(f, node)?;
            writeln!(f)?;
        }
        for (layer, layout) in self.state.iter().enumerate() {
            let StateLayout::Full {
                n_kv_heads,
                head_dim,
            } = layout;
            writeln!(f, "state {layer}: full, {n_kv_heads} heads of {head_dim}")?;
        }
        Ok(())
    }
}

impl Graph {
    fn write_op(&self, f: &mut fmt::Formatter<'_>, node: &Node) -> fmt::Result {
        let inputs: Vec<String> = node.inputs.iter().map(|i| format!("%{}", i.0)).collect();
        write!(f, "{}({})", node.op.name(), inputs.join(", "))?;
        for id in node.op.weights() {
            let weight = self.weight(id);
            let dims: Vec<String> = weight.dims.iter().map(usize::to_string).collect();
            write!(f, " {}[{}]", weight.name, dims.join("×"))?;
        }
        match &node.op {
            Op::RmsNorm { eps, .. } => write!(f, " eps {eps:e}"),
            Op::Rope(rope) => {
                let style = match rope.style {
                    RopeStyle::Adjacent => "adjacent",
                    RopeStyle::Halves => "halves",
                };
                write!(
                    f,
                    " {style} {} of {} base {}",
                    rope.n_rot, rope.head_dim, rope.base
                )
            }
            Op::Attention {
                n_heads,
                n_kv_heads,
                head_dim,
                scale,
            } => {
                write!(
                    f,
                    " heads {n_heads}/{n_kv_heads} of {head_dim} scale {scale}"
                )
            }
            Op::GatedFfn {
                activation: Activation::Silu,
                inner,
                ..
            } => {
                write!(f, " silu inner {inner}")
            }
            _ => Ok(()),
        }
    }
}
