//! The numbers that shape a graph, read from the metadata and bounded.

use candor_modelfile::Index;

use crate::error::ArchError;
use crate::features::Features;
use crate::keys::Keys;

/// Bounds of what a file may say. They are far above every published model and keep products of
/// any three of them, and the graph itself, within what a 64-bit machine can hold.
pub mod limits {
    /// Layers: each becomes some ten nodes.
    pub const LAYERS_MAX: usize = 1_024;
    /// Values of a row between layers.
    pub const WIDTH_MAX: usize = 1 << 17;
    /// Heads of a layer.
    pub const HEADS_MAX: usize = 1_024;
    /// Values of a head.
    pub const HEAD_DIM_MAX: usize = 1_024;
    /// Values inside the feed-forward.
    pub const FFN_WIDTH_MAX: usize = 1 << 20;
    /// Tokens of a vocabulary; ids are 32-bit, and a row of logits should stay below 16 MiB.
    pub const VOCABULARY_MAX: usize = 1 << 22;
    /// Tokens that a model was trained for: positions stay exact in float32.
    pub const CONTEXT_MAX: usize = 1 << 24;
    /// Experts of a layer.
    pub const EXPERTS_MAX: usize = 4_096;
    /// Values that a convolution sums: each is a row of the state.
    pub const CONV_TAPS_MAX: usize = 64;
}

use limits::{CONTEXT_MAX, FFN_WIDTH_MAX, HEAD_DIM_MAX, HEADS_MAX, LAYERS_MAX, WIDTH_MAX};

/// The numbers of a dense decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct HParams {
    /// Layers.
    pub n_layers: usize,
    /// Values of a row between layers.
    pub width: usize,
    /// Heads of the query.
    pub n_heads: usize,
    /// Heads of key and value.
    pub n_kv_heads: usize,
    /// Values of a head.
    pub head_dim: usize,
    /// Values of a head that are rotated.
    pub n_rot: usize,
    /// Values inside the feed-forward.
    pub ffn_width: usize,
    /// Tokens.
    pub vocabulary: usize,
    /// Tokens that the model was trained for.
    pub context_length: usize,
    /// Of the normalisations.
    pub norm_eps: f32,
    /// Of the rotation's frequencies.
    pub rope_base: f32,
    /// Factor of the attention scores.
    pub attention_scale: f32,
    /// What only some families have.
    pub features: Features,
}

/// Base of the frequencies where the file says nothing: the original Llama's.
const ROPE_BASE_DEFAULT: f32 = 10_000.0;

impl HParams {
    /// Reads what dense decoders of the llama form have.
    ///
    /// # Errors
    /// [`ArchError`], naming the key, what was expected and what was found.
    pub fn dense(index: &Index) -> Result<Self, ArchError> {
        let keys = Keys { index };
        keys.refuse_experts()?;
        let mut h = Self::decoder(&keys)?;
        h.features.rope_scaling = keys.rope_scaling(h.context_length)?;
        Ok(h)
    }

    /// Reads what every family has.
    pub(crate) fn decoder(keys: &Keys<'_>) -> Result<Self, ArchError> {
        let width = keys.count("embedding_length", WIDTH_MAX)?;
        let n_heads = keys.count("attention.head_count", HEADS_MAX)?;
        let n_kv_heads = keys.count_or("attention.head_count_kv", HEADS_MAX, n_heads)?;
        keys.divides("attention.head_count_kv", n_kv_heads, n_heads)?;
        let head_dim = match keys.find("attention.key_length")? {
            Some(_) => keys.count("attention.key_length", HEAD_DIM_MAX)?,
            None => {
                keys.divides("attention.head_count", n_heads, width)?;
                keys.within("embedding_length", width / n_heads, HEAD_DIM_MAX)?
            }
        };
        keys.equals("attention.value_length", head_dim)?;
        let n_rot = keys.count_or("rope.dimension_count", head_dim, head_dim)?;
        keys.divides("rope.dimension_count", 2, n_rot)?;
        Ok(Self {
            n_layers: keys.count("block_count", LAYERS_MAX)?,
            width,
            n_heads,
            n_kv_heads,
            head_dim,
            n_rot,
            ffn_width: match keys.find("expert_count")? {
                None | Some(0) => keys.count("feed_forward_length", FFN_WIDTH_MAX)?,
                // The experts have a width of their own.
                Some(_) => keys.count_or("feed_forward_length", FFN_WIDTH_MAX, width)?,
            },
            vocabulary: keys.vocabulary()?,
            context_length: keys.count("context_length", CONTEXT_MAX)?,
            norm_eps: keys.positive("attention.layer_norm_rms_epsilon", None)?,
            rope_base: keys.positive("rope.freq_base", Some(ROPE_BASE_DEFAULT))?,
            attention_scale: keys
                .positive("attention.scale", Some(1.0 / (head_dim as f32).sqrt()))?,
            features: Features::NONE,
        })
    }
}
