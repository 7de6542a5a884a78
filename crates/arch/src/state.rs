//! What a layer keeps of the tokens that it has seen, and in which form.

/// The form of keys and values in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KvType {
    /// float32, for the exact path.
    F32,
    /// float16.
    F16,
    /// 8-bit codes with a float16 scale for every [`KvType::BLOCK`] values of a head; the last
    /// block of a head is shorter where the head is no multiple of that.
    Q8_0,
}

impl KvType {
    /// Values that share a scale in [`KvType::Q8_0`].
    pub const BLOCK: usize = 32;

    /// Bytes of one head's key, or of its value, of one token.
    pub fn head_bytes(self, head_dim: usize) -> usize {
        match self {
            Self::F32 => 4 * head_dim,
            Self::F16 => 2 * head_dim,
            Self::Q8_0 => head_dim + 2 * head_dim.div_ceil(Self::BLOCK),
        }
    }

    /// As options and results name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Q8_0 => "q8_0",
        }
    }
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
    /// Bytes of the keys and values of one token.
    pub fn bytes_per_token(&self, kv: KvType) -> usize {
        match *self {
            Self::Full {
                n_kv_heads,
                head_dim,
            }
            | Self::Window {
                n_kv_heads,
                head_dim,
                ..
            } => 2 * n_kv_heads * kv.head_bytes(head_dim),
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
