//! The operations: what a node does, and the weights that it reads.

use crate::features::RopeScaling;
use crate::graph::WeightId;

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
    /// The divisors in their stead where a session's context is longer than
    /// [`RopeScaling::LongRope`] says.
    pub long_factors: Option<WeightId>,
}

/// The function on the gate of a product; what the gate is for is taken as it is where nothing is
/// said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// x / (1 + exp(-x)).
    Silu,
    /// x / 2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))).
    Gelu,
    /// 1 / (1 + exp(-x)).
    Sigmoid,
    /// x / (1 + exp(-1.702 x)) with x at most 7; what it is for is held within -7 and 7 and becomes
    /// one larger (the model card and the published code of gpt-oss).
    ClampedSwiglu,
}

/// Over which experts the shares of the chosen ones are a softmax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shares {
    /// Over all: those of the chosen are less than one together.
    OfAll,
    /// Over the chosen, which is the same as those over all divided by their sum.
    OfChosen,
}

/// How the numbers that the router gives a row choose its experts. The largest are chosen, of equal
/// ones the lower expert.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Routing {
    /// How many are chosen.
    pub n_used: usize,
    /// What each of them counts.
    pub shares: Shares,
    /// What the shares are multiplied with.
    pub scale: f32,
}

/// What is added to the products of experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpertBiases {
    /// `[experts]`; takes part in the choice.
    pub router: WeightId,
    /// `[experts, inner]`.
    pub gate: WeightId,
    /// `[experts, inner]`.
    pub up: WeightId,
    /// `[experts, width]`.
    pub down: WeightId,
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
        /// Holds the scores within -c and c: they become c · tanh(score / c).
        softcap: Option<f32>,
        /// `[heads]`: a score for each head that is one more in its softmax and has no value.
        sinks: Option<WeightId>,
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
    /// router is multiplied in float32.
    Experts {
        /// `[experts, width]`.
        router: WeightId,
        /// `[experts, inner, width]`.
        gate: WeightId,
        /// `[experts, inner, width]`.
        up: WeightId,
        /// `[experts, width, inner]`.
        down: WeightId,
        /// Of all four.
        biases: Option<ExpertBiases>,
        /// From the router's numbers to the shares.
        routing: Routing,
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
        /// Holds them within -c and c: they become c · tanh(logit / c).
        softcap: Option<f32>,
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
            Self::RmsNorm { weight, .. } | Self::Logits { weight, .. } => vec![*weight],
            Self::Linear { weight, bias } => [Some(*weight), *bias].into_iter().flatten().collect(),
            Self::Rope(rope) => [rope.factors, rope.long_factors]
                .into_iter()
                .flatten()
                .collect(),
            Self::GatedFfn { gate, up, down, .. } => vec![*gate, *up, *down],
            Self::Experts {
                router,
                gate,
                up,
                down,
                biases,
                ..
            } => {
                let biases = biases.map(|b| [b.router, b.gate, b.up, b.down]);
                let matrices = [*router, *gate, *up, *down];
                matrices
                    .into_iter()
                    .chain(biases.into_iter().flatten())
                    .collect()
            }
            Self::CausalConv { weight, .. } => vec![*weight],
            Self::DeltaNet(net) => vec![net.a, net.dt],
            Self::Attention { sinks, .. } => sinks.iter().copied().collect(),
            Self::Add | Self::Scale { .. } | Self::Part { .. } | Self::Gate { .. } => Vec::new(),
        }
    }
}
