//! The numbers that shape a graph, read from the metadata and bounded.

use candor_modelfile::Index;

use crate::error::ArchError;

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
}

use limits::{
    CONTEXT_MAX, FFN_WIDTH_MAX, HEAD_DIM_MAX, HEADS_MAX, LAYERS_MAX, VOCABULARY_MAX, WIDTH_MAX,
};

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
        keys.refuse_scaling()?;
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
            ffn_width: keys.count("feed_forward_length", FFN_WIDTH_MAX)?,
            vocabulary: keys.vocabulary()?,
            context_length: keys.count("context_length", CONTEXT_MAX)?,
            norm_eps: keys.positive("attention.layer_norm_rms_epsilon", None)?,
            rope_base: keys.positive("rope.freq_base", Some(ROPE_BASE_DEFAULT))?,
            attention_scale: keys
                .positive("attention.scale", Some(1.0 / (head_dim as f32).sqrt()))?,
        })
    }
}

/// The metadata under one architecture's prefix.
struct Keys<'a> {
    index: &'a Index,
}

impl Keys<'_> {
    fn key(&self, stem: &str) -> String {
        format!("{}.{stem}", self.index.architecture)
    }

    fn find(&self, stem: &str) -> Result<Option<u64>, ArchError> {
        Ok(self.index.metadata.find_u64(&self.key(stem))?)
    }

    /// A number from 1 to `max` that has to be there.
    fn count(&self, stem: &str, max: usize) -> Result<usize, ArchError> {
        let found = self.index.metadata.u64(&self.key(stem))?;
        self.within(stem, usize::try_from(found).unwrap_or(usize::MAX), max)
    }

    fn count_or(&self, stem: &str, max: usize, otherwise: usize) -> Result<usize, ArchError> {
        match self.find(stem)? {
            Some(_) => self.count(stem, max),
            None => Ok(otherwise),
        }
    }

    fn within(&self, stem: &str, found: usize, max: usize) -> Result<usize, ArchError> {
        if (1..=max).contains(&found) {
            return Ok(found);
        }
        Err(self.bad(stem, format!("1 to {max}"), found.to_string()))
    }

    fn divides(&self, stem: &str, part: usize, whole: usize) -> Result<(), ArchError> {
        if whole.is_multiple_of(part) {
            return Ok(());
        }
        Err(self.bad(stem, format!("{part} to divide {whole}"), whole.to_string()))
    }

    fn equals(&self, stem: &str, expected: usize) -> Result<(), ArchError> {
        match self.find(stem)? {
            Some(found) if found != expected as u64 => {
                Err(self.bad(stem, expected.to_string(), found.to_string()))
            }
            _ => Ok(()),
        }
    }

    fn positive(&self, stem: &str, otherwise: Option<f32>) -> Result<f32, ArchError> {
        let key = self.key(stem);
        let found = match (self.index.metadata.find_f32(&key)?, otherwise) {
            (Some(found), _) => found,
            (None, Some(value)) => value,
            (None, None) => self.index.metadata.f32(&key)?,
        };
        if found.is_finite() && found > 0.0 {
            return Ok(found);
        }
        Err(self.bad(stem, "a positive number".to_owned(), found.to_string()))
    }

    /// The embedding table decides, since ids are rows of it.
    fn vocabulary(&self) -> Result<usize, ArchError> {
        let table = self.index.tensor("token_embd.weight");
        let rows = table.and_then(|t| match t.dims[..] {
            [rows, _] => Some(rows),
            _ => None,
        });
        let rows = rows.ok_or(ArchError::NoEmbedding)?;
        if (1..=VOCABULARY_MAX).contains(&rows) {
            return Ok(rows);
        }
        Err(ArchError::OutOfBounds {
            key: "rows of token_embd.weight".to_owned(),
            expected: format!("1 to {VOCABULARY_MAX}"),
            found: rows.to_string(),
        })
    }

    fn refuse_experts(&self) -> Result<(), ArchError> {
        match self.find("expert_count")? {
            None | Some(0) => Ok(()),
            Some(n) => Err(ArchError::Unsupported {
                key: self.key("expert_count"),
                found: n.to_string(),
            }),
        }
    }

    /// Scaled positions change every result, so what is not computed is refused by its name.
    fn refuse_scaling(&self) -> Result<(), ArchError> {
        let key = self.key("rope.scaling.type");
        if let Some(kind) = self.index.metadata.find_str(&key)?
            && kind != "none"
        {
            return Err(ArchError::Unsupported {
                key,
                found: format!("{kind:?}"),
            });
        }
        for stem in ["rope.scaling.factor", "rope.scale_linear"] {
            let key = self.key(stem);
            if let Some(factor) = self.index.metadata.find_f32(&key)?
                && factor != 1.0
                && factor != 0.0
            {
                return Err(ArchError::Unsupported {
                    key,
                    found: factor.to_string(),
                });
            }
        }
        Ok(())
    }

    fn bad(&self, stem: &str, expected: String, found: String) -> ArchError {
        ArchError::OutOfBounds {
            key: self.key(stem),
            expected,
            found,
        }
    }
}
