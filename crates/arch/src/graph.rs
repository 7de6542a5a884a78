//! The graph: nodes, the weights they need, and the state they keep.

use crate::features::RopeScaling;
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
    /// How they are stretched for more tokens than the model was first trained for.
    pub scaling: RopeScaling,
    /// A divisor for each frequency, from the file.
    pub factors: Option<WeightId>,
}

/// The function on the gate of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// x / (1 + exp(-x)).
    Silu,
    /// x / 2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))).
    Gelu,
    /// 1 / (1 + exp(-x)).
    Sigmoid,
}

/// Which key head a value head of a delta net reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// Neighbours share one: the head over the heads per key.
    Grouped,
    /// They take turns: the head modulo the number of keys.
    Cyclic,
}

/// An operation on a batch of rows, whatever their number.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// The row of the table that belongs to the token.
    Embed {
        /// `[vocabulary, width]`.
        table: WeightId,
    },
    /// x / sqrt(mean(x²) + eps) · weight, for each part of the row that is as long as the weight.
    RmsNorm {
        /// `[width]`, or `[head_dim]` where every head is normalised on its own.
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
    /// over the positions up to the row's own, or the last of them where the layer's state is a
    /// window.
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
    /// The sum over the chosen experts of share · down · (activation(gate · x) ⊙ (up · x)). The
    /// shares are softmax(router · x) in float32, of which the largest are chosen (ties to the
    /// lower expert) and divided by their sum.
    Experts {
        /// `[experts, width]`.
        router: WeightId,
        /// `[experts, inner, width]`.
        gate: WeightId,
        /// `[experts, inner, width]`.
        up: WeightId,
        /// `[experts, width, inner]`.
        down: WeightId,
        /// How many are chosen for each row.
        n_used: usize,
        /// Values between.
        inner: usize,
        /// The function on the gate.
        activation: Activation,
    },
    /// The sum of the two inputs.
    Add,
    /// factor · x.
    Scale {
        /// The factor.
        factor: f32,
    },
    /// Of every `period` values of the input, `len` values from `start`.
    Part {
        /// Divides the input's width.
        period: usize,
        /// Within a period.
        start: usize,
        /// Within a period.
        len: usize,
    },
    /// x ⊙ activation(gate). The gate (input 1) may be narrower: each of its values is then for
    /// as many neighbouring values of x.
    Gate {
        /// The function on the gate.
        activation: Activation,
    },
    /// silu of the weighted sum of each channel's last values, the row's own with the last weight.
    CausalConv {
        /// `[channels, taps]`.
        weight: WeightId,
        /// Values that are summed.
        taps: usize,
    },
    /// The gated delta rule. Inputs: queries, keys and values beside each other; alpha; beta.
    DeltaNet(DeltaNet),
    /// weight · x, for the rows of which somebody wants it.
    Logits {
        /// `[vocabulary, width]`.
        weight: WeightId,
    },
}

/// The gated delta rule. Each value head keeps a matrix S of `[state_size, state_size]` (values
/// by keys). For each row, with q and k of length one and β = sigmoid(beta):
/// S ← exp(a · ln(1 + exp(alpha + dt))) · S, S ← S + β · (v − S k) kᵀ, and it gives S q / √size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeltaNet {
    /// `[n_value_heads]`.
    pub a: WeightId,
    /// `[n_value_heads]`.
    pub dt: WeightId,
    /// Heads of queries and keys.
    pub n_key_heads: usize,
    /// Heads of values.
    pub n_value_heads: usize,
    /// Values of a head.
    pub state_size: usize,
    /// Which key belongs to which value head.
    pub key_order: KeyOrder,
    /// Added to the sum of squares of q and of k.
    pub eps: f32,
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
            Self::Experts { .. } => "Experts",
            Self::Add => "Add",
            Self::Scale { .. } => "Scale",
            Self::Part { .. } => "Part",
            Self::Gate { .. } => "Gate",
            Self::CausalConv { .. } => "CausalConv",
            Self::DeltaNet(_) => "DeltaNet",
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
            Self::Experts {
                router,
                gate,
                up,
                down,
                ..
            } => vec![*router, *gate, *up, *down],
            Self::CausalConv { weight, .. } => vec![*weight],
            Self::DeltaNet(net) => vec![net.a, net.dt],
            Self::Attention { .. }
            | Self::Add
            | Self::Scale { .. }
            | Self::Part { .. }
            | Self::Gate { .. } => Vec::new(),
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
    /// Key and value of the last tokens.
    Window {
        /// How many tokens a row sees, itself among them.
        tokens: usize,
        /// Heads of key and of value.
        n_kv_heads: usize,
        /// Values of a head.
        head_dim: usize,
    },
    /// What is left of all tokens together: the last inputs of a convolution, and a matrix for
    /// each head.
    Recurrent {
        /// Values of a row of the convolution.
        channels: usize,
        /// Values that it sums; it keeps one row less.
        taps: usize,
        /// Heads.
        n_heads: usize,
        /// Rows and columns of a head's matrix.
        state_size: usize,
    },
}

impl StateLayout {
    /// Values kept per token.
    pub fn values_per_token(&self) -> usize {
        match self {
            Self::Full {
                n_kv_heads,
                head_dim,
            }
            | Self::Window {
                n_kv_heads,
                head_dim,
                ..
            } => 2 * n_kv_heads * head_dim,
            Self::Recurrent { .. } => 0,
        }
    }

    /// Values kept per sequence, however many tokens it has.
    pub fn values_per_slot(&self) -> usize {
        match *self {
            Self::Full { .. } | Self::Window { .. } => 0,
            Self::Recurrent {
                channels,
                taps,
                n_heads,
                state_size,
            } => channels * (taps - 1) + n_heads * state_size * state_size,
        }
    }

    /// Tokens that have to be kept of a sequence of `tokens`.
    pub fn tokens_kept(&self, tokens: usize) -> usize {
        match *self {
            Self::Full { .. } => tokens,
            Self::Window { tokens: window, .. } => tokens.min(window),
            Self::Recurrent { .. } => 0,
        }
    }

    /// The kind, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Full { .. } => "full attention",
            Self::Window { .. } => "sliding window",
            Self::Recurrent { .. } => "recurrent",
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
