//! The numbers of a model: what the file says under whichever name, held against its shapes.

use crate::error::{AprError, ParseError};
use crate::index::Note;
use crate::metadata::{Metadata, MetadataError, Value};

use super::model::ByName;

/// A number, and the keys under which writers put it.
struct Key {
    name: &'static str,
    aliases: &'static [&'static str],
}

const WIDTH: Key = Key {
    name: "hidden_size",
    aliases: &["hidden_dim", "d_model", "n_embd", "model.hidden_size"],
};
const LAYERS: Key = Key {
    name: "num_layers",
    aliases: &[
        "n_layers",
        "num_hidden_layers",
        "n_layer",
        "model.num_layers",
    ],
};
const HEADS: Key = Key {
    name: "num_heads",
    aliases: &[
        "n_heads",
        "num_attention_heads",
        "n_head",
        "model.num_heads",
    ],
};
const KV_HEADS: Key = Key {
    name: "num_kv_heads",
    aliases: &["n_kv_heads", "num_key_value_heads", "model.num_kv_heads"],
};
const HEAD_DIM: Key = Key {
    name: "head_dim",
    aliases: &[],
};
const FFN_WIDTH: Key = Key {
    name: "intermediate_size",
    aliases: &[
        "ffn_dim",
        "intermediate_dim",
        "n_inner",
        "model.intermediate_size",
    ],
};
const CONTEXT: Key = Key {
    name: "max_position_embeddings",
    aliases: &[
        "max_seq_len",
        "context_length",
        "n_ctx",
        "model.max_position_embeddings",
    ],
};
const ROPE_BASE: Key = Key {
    name: "rope_theta",
    aliases: &["model.rope_theta"],
};
const NORM_EPS: Key = Key {
    name: "rms_norm_eps",
    aliases: &["layer_norm_eps", "norm_eps", "model.rms_norm_eps"],
};
const EXPERTS_USED: Key = Key {
    name: "num_experts_per_tok",
    aliases: &[],
};

impl Key {
    fn all(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// A count; `None` if the file has it under no name.
    fn count(&self, raw: &Metadata) -> Result<Option<usize>, MetadataError> {
        for key in self.all() {
            if let Some(found) = raw.find_u32(key)? {
                return Ok(Some(found as usize));
            }
        }
        Ok(None)
    }

    /// A count that has to be there and not zero.
    fn needed(&self, raw: &Metadata) -> Result<usize, ParseError> {
        let found = self.count(raw)?.filter(|n| *n > 0);
        found.ok_or_else(|| AprError::Missing { what: self.name }.into())
    }

    /// A number that has to be there; through `f32`, as GGUF has it.
    fn number(&self, raw: &Metadata) -> Result<f64, ParseError> {
        for key in self.all() {
            if let Some(found) = raw.find_f32(key)? {
                return Ok(f64::from(found));
            }
        }
        Err(AprError::Missing { what: self.name }.into())
    }

    fn refuse(&self, stated: usize) -> ParseError {
        AprError::Shapes {
            what: self.name,
            stated,
        }
        .into()
    }
}

/// Tokens of a context where the file does not say: the least that these families have.
const CONTEXT_DEFAULT: u64 = 2048;

/// The numbers of a model.
pub(super) struct Numbers {
    pub(super) width: usize,
    n_layers: usize,
    heads: Heads,
    ffn_width: usize,
    rope_base: f64,
    norm_eps: f64,
    context: Option<u64>,
    experts: Option<Experts>,
}

struct Heads {
    n: usize,
    n_kv: usize,
    dim: usize,
}

struct Experts {
    n: usize,
    /// By a token, which no shape tells.
    used: usize,
    /// Values inside one, if its tensors are there.
    ffn_width: Option<usize>,
}

/// How many values a tensor has.
fn elems(by_name: &ByName<'_>, name: &str) -> Option<usize> {
    by_name.get(name).map(|entry| entry.elems())
}

impl Numbers {
    /// Reads them.
    pub(super) fn read(
        raw: &Metadata,
        by_name: &ByName<'_>,
        architecture: &str,
    ) -> Result<Self, ParseError> {
        let width = width(raw, by_name)?;
        let rows = |name: &str| elems(by_name, name).map_or(0, |elems| elems / width);
        let ffn_width = match rows("blk.0.ffn_gate.weight") {
            0 => FFN_WIDTH.count(raw)?.unwrap_or(0),
            found => found,
        };
        let n_experts = rows("blk.0.ffn_gate_inp.weight");
        let stacked_rows = rows("blk.0.ffn_gate_exps.weight");
        let has_experts = n_experts > 0 || architecture == "qwen3moe";
        Ok(Self {
            width,
            n_layers: n_layers(raw, by_name)?,
            heads: Heads::read(raw, by_name, width)?,
            ffn_width,
            rope_base: ROPE_BASE.number(raw)?,
            norm_eps: NORM_EPS.number(raw)?,
            context: CONTEXT.count(raw)?.filter(|n| *n > 0).map(|n| n as u64),
            experts: has_experts
                .then(|| Experts::read(raw, n_experts, stacked_rows))
                .transpose()?,
        })
    }

    /// The heads of Q or K, matrix or bias.
    pub(super) fn heads_of(&self, name: &str) -> Option<usize> {
        if name.contains(".attn_q.") {
            Some(self.heads.n)
        } else if name.contains(".attn_k.") {
            Some(self.heads.n_kv)
        } else {
            None
        }
    }

    /// Experts of a layer, if there are any.
    pub(super) fn n_experts(&self) -> Option<usize> {
        self.experts.as_ref().map(|experts| experts.n)
    }

    /// GGUF's entries.
    pub(super) fn metadata(
        &self,
        architecture: &str,
        raw: &Metadata,
        notes: &mut Vec<Note>,
    ) -> Result<Metadata, MetadataError> {
        let mut metadata = Metadata::new();
        metadata.set(
            "general.architecture".to_owned(),
            Value::Text(architecture.to_owned()),
        );
        for key in ["name", "license", "description"] {
            if let Some(text) = raw.find_str(key)? {
                metadata.set(format!("general.{key}"), Value::Text(text.to_owned()));
            }
        }
        let context = self.context.unwrap_or_else(|| {
            notes.push(Note::Context {
                assumed: CONTEXT_DEFAULT,
            });
            CONTEXT_DEFAULT
        });
        let mut set =
            |key: &str, value: Value| metadata.set(format!("{architecture}.{key}"), value);
        let whole = |n: usize| Value::Integer(n as i128);
        set("block_count", whole(self.n_layers));
        set("context_length", Value::Integer(i128::from(context)));
        set("embedding_length", whole(self.width));
        set("feed_forward_length", whole(self.ffn_width));
        set("attention.head_count", whole(self.heads.n));
        set("attention.head_count_kv", whole(self.heads.n_kv));
        set("attention.key_length", whole(self.heads.dim));
        set("attention.value_length", whole(self.heads.dim));
        set("rope.freq_base", Value::Float(self.rope_base));
        set(
            "attention.layer_norm_rms_epsilon",
            Value::Float(self.norm_eps),
        );
        if let Some(experts) = &self.experts {
            set("expert_count", whole(experts.n));
            set("expert_used_count", whole(experts.used));
            if let Some(width) = experts.ffn_width {
                set("expert_feed_forward_length", whole(width));
            }
        }
        Ok(metadata)
    }
}

fn width(raw: &Metadata, by_name: &ByName<'_>) -> Result<usize, ParseError> {
    let of_norm = elems(by_name, "output_norm.weight");
    match (WIDTH.count(raw)?, of_norm) {
        (Some(stated), Some(found)) if stated != found => Err(WIDTH.refuse(stated)),
        (Some(0), None) => Err(WIDTH.refuse(0)),
        (Some(width), _) | (None, Some(width)) => Ok(width),
        (None, None) => Err(AprError::Missing { what: WIDTH.name }.into()),
    }
}

fn n_layers(raw: &Metadata, by_name: &ByName<'_>) -> Result<usize, ParseError> {
    let layer_of = |name: &&str| -> Option<usize> {
        let (layer, _) = name.strip_prefix("blk.")?.split_once('.')?;
        layer.parse().ok()
    };
    let last = by_name.keys().filter_map(layer_of).max();
    let found = last.map_or(0, |layer| layer.saturating_add(1));
    match LAYERS.count(raw)? {
        Some(stated) if stated != found => Err(LAYERS.refuse(stated)),
        _ => Ok(found),
    }
}

impl Heads {
    fn read(raw: &Metadata, by_name: &ByName<'_>, width: usize) -> Result<Self, ParseError> {
        let (n, n_kv) = (HEADS.needed(raw)?, KV_HEADS.needed(raw)?);
        let rows = |name: &str| elems(by_name, name).map_or(0, |elems| elems / width);
        let (q, k) = (rows("blk.0.attn_q.weight"), rows("blk.0.attn_k.weight"));
        let of_norm = elems(by_name, "blk.0.attn_q_norm.weight");
        let dim = HEAD_DIM.count(raw)?.or(of_norm).unwrap_or(q / n);
        let fits = |rows: usize, n: usize| rows > 0 && n.checked_mul(dim) == Some(rows);
        if !fits(q, n) {
            return Err(HEADS.refuse(n));
        }
        if !fits(k, n_kv) {
            return Err(KV_HEADS.refuse(n_kv));
        }
        Ok(Self { n, n_kv, dim })
    }
}

impl Experts {
    /// Of `n` experts, whose gates have so many rows together.
    fn read(raw: &Metadata, n: usize, stacked_rows: usize) -> Result<Self, ParseError> {
        let used = EXPERTS_USED.needed(raw)?;
        if used > n {
            return Err(EXPERTS_USED.refuse(used));
        }
        let ffn_width = stacked_rows.checked_div(n).filter(|width| *width > 0);
        Ok(Self { n, used, ffn_width })
    }
}
