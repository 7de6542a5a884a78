//! What a layer keeps of the tokens that it has seen, and in which form.

/// Tokens of a page, in which a state is allotted.
pub const PAGE_TOKENS: usize = 256;

/// Checkpoints of a slot. Each holds a copy of the recurrent state, some 50 MB in a model of nine
/// billion weights; the newest are those that a rewound conversation comes back to.
pub const CHECKPOINTS_MAX: usize = 4;

/// Rows that go through a plan together: enough that dequantised weights are used often, few
/// enough that their values stay in the second-level caches.
pub const FORWARD_ROWS_MAX: usize = 512;

/// Rows of a batch of which a window may hold pages until they are committed.
const BATCH_TOKENS: usize = 2 * FORWARD_ROWS_MAX;

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

/// How large a state is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSizes {
    /// How keys and values are kept.
    pub kv: KvType,
    /// Tokens that one slot may hold.
    pub ctx_len: usize,
    /// Independent sequences.
    pub slots: usize,
    /// Tokens that all slots together may hold.
    pub tokens: usize,
    /// That compute.
    pub threads: usize,
}

impl StateSizes {
    /// Of one sequence, which may be as long as the state.
    pub fn of_one(tokens: usize, kv: KvType, threads: usize) -> Self {
        Self {
            kv,
            ctx_len: tokens,
            slots: 1,
            tokens,
            threads,
        }
    }

    /// What all slots take when they are full, checkpoints and all.
    pub fn pool_bytes(self, layouts: &[StateLayout]) -> u64 {
        let of_layer = |layout: &StateLayout| -> u64 {
            let of_token = layout.bytes_per_token(self.kv) as u64;
            let tokens = self.pages(layout).saturating_mul(PAGE_TOKENS);
            let keys_and_values = of_token.saturating_mul(tokens as u64);
            // Both copies and the checkpoints are float32.
            let summed = (layout.values_per_slot() as u64)
                .saturating_mul((2 + CHECKPOINTS_MAX) as u64 * 4)
                .saturating_mul(self.slots as u64);
            keys_and_values.saturating_add(summed)
        };
        layouts.iter().map(of_layer).fold(0, u64::saturating_add)
    }

    /// Pages of keys and values that a layer may hold, all slots and their checkpoints together.
    pub fn pages(self, layout: &StateLayout) -> usize {
        let all_tokens = self.tokens.next_multiple_of(PAGE_TOKENS);
        // Of each checkpoint, and of the end, what a window sees, in whole pages.
        let kept = layout
            .tokens_kept(all_tokens)
            .saturating_add(2 * PAGE_TOKENS);
        let of_slot = kept
            .saturating_mul(1 + CHECKPOINTS_MAX)
            .saturating_add(BATCH_TOKENS);
        let tokens = of_slot.saturating_mul(self.slots).min(all_tokens);
        tokens.div_ceil(PAGE_TOKENS)
    }

    /// What the threads take to read keys and values in 8 bits: each unfolds those that one head
    /// sees.
    pub fn unfolded_bytes(self, layouts: &[StateLayout]) -> u64 {
        if self.kv != KvType::Q8_0 {
            return 0;
        }
        let of_layer = |layout: &StateLayout| match *layout {
            StateLayout::Full { head_dim, .. } | StateLayout::Window { head_dim, .. } => {
                let kept = layout.tokens_kept(self.ctx_len);
                let tokens = kept.saturating_add(2 * PAGE_TOKENS).min(self.ctx_len);
                let tokens = tokens.next_multiple_of(PAGE_TOKENS);
                (2 * KvType::F16.head_bytes(head_dim) as u64).saturating_mul(tokens as u64)
            }
            StateLayout::Recurrent { .. } => 0,
        };
        let widest = layouts.iter().map(of_layer).max();
        widest.unwrap_or(0).saturating_mul(self.threads as u64)
    }
}
