//! The numbers that only some families have.

/// How the frequencies of a rotation are stretched for a longer context.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RopeScaling {
    /// They are not.
    None,
    /// Every position is divided by the factor.
    Linear {
        /// How many times as long the context became.
        factor: f32,
    },
    /// YaRN (Peng and others, 2023): slow rotations as linear, fast ones as they were, those
    /// between in between; and everything longer by 1 + ln(factor) / 10.
    Yarn {
        /// How many times as long the context became.
        factor: f32,
        /// Tokens before.
        trained_context: usize,
    },
    /// LongRoPE (Ding and others, 2024): each frequency has a divisor of its own in the file, one
    /// for sessions of up to the context that was trained for, one for longer ones.
    LongRope {
        /// Tokens before.
        trained_context: usize,
        /// What queries and keys are multiplied with in either case.
        length: f32,
    },
}

impl RopeScaling {
    /// What queries and keys are multiplied with, since attention over more tokens is flatter.
    pub fn length(&self) -> f64 {
        match self {
            Self::None | Self::Linear { .. } => 1.0,
            Self::Yarn { factor, .. } => 1.0 + 0.1 * f64::from(*factor).ln(),
            Self::LongRope { length, .. } => f64::from(*length),
        }
    }
}

/// Attention to the last tokens only, in most layers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// How many tokens a row sees, itself among them.
    pub tokens: usize,
    /// Of so many layers, the last sees all tokens.
    pub period: usize,
    /// Base of the frequencies in the layers with a window.
    pub rope_base: f32,
}

impl Window {
    /// Whether a layer sees all tokens.
    pub fn is_global(&self, layer: usize) -> bool {
        (layer + 1).is_multiple_of(self.period)
    }
}

/// A feed-forward of experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Experts {
    /// How many there are.
    pub count: usize,
    /// How many a row goes through.
    pub used: usize,
    /// Values inside one.
    pub inner: usize,
    /// Values inside the one that every row goes through beside them; 0 if there is none.
    pub shared_inner: usize,
    /// What the shares are multiplied with.
    pub scale: f32,
    /// Layers at the front whose feed-forward is an ordinary one.
    pub dense_layers: usize,
}

/// Factors on the way of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scales {
    /// Of the embeddings.
    pub embedding: f32,
    /// Of what a layer adds to its input.
    pub residual: f32,
    /// Of the logits.
    pub logits: f32,
}

/// Bounds that scores and logits come near and never reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softcaps {
    /// Of the attention's scores.
    pub attention: f32,
    /// Of the logits.
    pub logits: f32,
}

/// Layers that keep a recurrent state instead of keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recurrence {
    /// Of so many layers, the last is one of attention.
    pub attention_period: usize,
    /// Values that the convolution sums.
    pub conv_taps: usize,
    /// Values of a head.
    pub state_size: usize,
    /// Heads of queries and keys.
    pub n_key_heads: usize,
    /// Heads of values.
    pub n_value_heads: usize,
}

/// What a dense decoder does not need to say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Features {
    /// Of the rotation.
    pub rope_scaling: RopeScaling,
    /// Where attention is local.
    pub window: Option<Window>,
    /// Where the feed-forward is one of experts.
    pub experts: Option<Experts>,
    /// Where layers are recurrent.
    pub recurrence: Option<Recurrence>,
    /// Where rows are scaled on their way.
    pub scales: Option<Scales>,
    /// Where scores and logits are bounded.
    pub softcaps: Option<Softcaps>,
}

impl Features {
    /// None of them.
    pub const NONE: Self = Self {
        rope_scaling: RopeScaling::None,
        window: None,
        experts: None,
        recurrence: None,
        scales: None,
        softcaps: None,
    };

    /// One of each, small: for graphs that tests make.
    pub const SMALL: Self = Self {
        rope_scaling: RopeScaling::None,
        window: Some(Window {
            tokens: 20,
            period: 2,
            rope_base: 1_000.0,
        }),
        experts: Some(Experts {
            count: 5,
            used: 2,
            inner: 256,
            shared_inner: 256,
            scale: 1.5,
            dense_layers: 1,
        }),
        recurrence: Some(Recurrence {
            attention_period: 2,
            conv_taps: 4,
            state_size: 32,
            n_key_heads: 2,
            n_value_heads: 4,
        }),
        scales: Some(Scales {
            embedding: 6.0,
            residual: 0.5,
            logits: 0.25,
        }),
        softcaps: Some(Softcaps {
            attention: 20.0,
            logits: 10.0,
        }),
    };
}
