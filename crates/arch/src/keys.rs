//! Getters for the metadata under one architecture's prefix, each with its bounds.

use candor_modelfile::{Index, Value};

use crate::error::ArchError;
use crate::features::{Experts, RopeScaling};
use crate::hparams::limits::{CONTEXT_MAX, EXPERTS_MAX, FFN_WIDTH_MAX, LAYERS_MAX, VOCABULARY_MAX};

/// Settings of YaRN beside the factor, as its paper has them. Others are refused.
const YARN_USUAL: &[(&str, f32)] = &[
    ("rope.scaling.yarn_ext_factor", 1.0),
    ("rope.scaling.yarn_attn_factor", 1.0),
    ("rope.scaling.yarn_beta_fast", 32.0),
    ("rope.scaling.yarn_beta_slow", 1.0),
    ("rope.scaling.yarn_log_multiplier", 0.0),
];

/// Softmax over all experts, as `expert_gating_func` numbers it (llama.cpp).
const GATING_SOFTMAX: u64 = 1;

/// Softmax over the chosen ones, likewise.
const GATING_SOFTMAX_OF_CHOSEN: u64 = 3;

/// The metadata under one architecture's prefix.
pub(crate) struct Keys<'a> {
    pub(crate) index: &'a Index,
}

impl Keys<'_> {
    fn key(&self, stem: &str) -> String {
        format!("{}.{stem}", self.index.architecture)
    }

    pub(crate) fn find(&self, stem: &str) -> Result<Option<u64>, ArchError> {
        Ok(self.index.metadata.find_u64(&self.key(stem))?)
    }

    /// A number from 1 to `max` that has to be there.
    pub(crate) fn count(&self, stem: &str, max: usize) -> Result<usize, ArchError> {
        let found = self.index.metadata.u64(&self.key(stem))?;
        self.within(stem, usize::try_from(found).unwrap_or(usize::MAX), max)
    }

    pub(crate) fn count_or(
        &self,
        stem: &str,
        max: usize,
        otherwise: usize,
    ) -> Result<usize, ArchError> {
        match self.find(stem)? {
            Some(_) => self.count(stem, max),
            None => Ok(otherwise),
        }
    }

    pub(crate) fn within(&self, stem: &str, found: usize, max: usize) -> Result<usize, ArchError> {
        if (1..=max).contains(&found) {
            return Ok(found);
        }
        Err(self.bad(stem, format!("1 to {max}"), found.to_string()))
    }

    pub(crate) fn divides(&self, stem: &str, part: usize, whole: usize) -> Result<(), ArchError> {
        if whole.is_multiple_of(part) {
            return Ok(());
        }
        Err(self.bad(stem, format!("{part} to divide {whole}"), whole.to_string()))
    }

    pub(crate) fn equals(&self, stem: &str, expected: usize) -> Result<(), ArchError> {
        match self.find(stem)? {
            Some(found) if found != expected as u64 => {
                Err(self.bad(stem, expected.to_string(), found.to_string()))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn positive(&self, stem: &str, otherwise: Option<f32>) -> Result<f32, ArchError> {
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
    pub(crate) fn vocabulary(&self) -> Result<usize, ArchError> {
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

    pub(crate) fn refuse_experts(&self) -> Result<(), ArchError> {
        match self.find("expert_count")? {
            None | Some(0) => Ok(()),
            Some(n) => Err(ArchError::Unsupported {
                key: self.key("expert_count"),
                found: n.to_string(),
            }),
        }
    }

    /// The experts of a feed-forward.
    pub(crate) fn experts(&self) -> Result<Experts, ArchError> {
        self.experts_of(self.count("expert_feed_forward_length", FFN_WIDTH_MAX)?)
    }

    /// The experts of a feed-forward, of which the family says how wide they are. One that is for
    /// all rows, and layers without a choice, are for the families that have them.
    pub(crate) fn experts_of(&self, inner: usize) -> Result<Experts, ArchError> {
        // A choice among groups first, and functions other than softmax.
        self.refuse_other_count("expert_group_count", 1)?;
        self.refuse_other_count("expert_group_used_count", 1)?;
        match self.find("expert_gating_func")? {
            None | Some(GATING_SOFTMAX | GATING_SOFTMAX_OF_CHOSEN) => {}
            Some(other) => {
                return Err(self.unsupported("expert_gating_func", &other.to_string()));
            }
        }
        let count = self.count("expert_count", EXPERTS_MAX)?;
        let scale = self.float("expert_weights_scale")?;
        Ok(Experts {
            count,
            used: self.count("expert_used_count", count)?,
            inner,
            shared_inner: 0,
            scale: match scale {
                // Nothing was to be said.
                None | Some(0.0) => 1.0,
                Some(_) => self.positive("expert_weights_scale", None)?,
            },
            dense_layers: 0,
        })
    }

    /// The experts of a feed-forward with one for all rows.
    pub(crate) fn experts_with_shared(&self) -> Result<Experts, ArchError> {
        let experts = self.experts()?;
        let shared = "expert_shared_feed_forward_length";
        Ok(Experts {
            shared_inner: self.count_or(shared, FFN_WIDTH_MAX, experts.inner)?,
            ..experts
        })
    }

    /// Of how many layers the last sees all tokens. Files say so with a number, or with a list of
    /// the layers that have a window.
    pub(crate) fn window_period(
        &self,
        n_layers: usize,
        otherwise: usize,
    ) -> Result<usize, ArchError> {
        let stem = "attention.sliding_window_pattern";
        let windowed: Vec<bool> = match self.index.metadata.value(&self.key(stem)) {
            Some(Value::Bools(flags)) => flags.clone(),
            Some(Value::Integers(flags)) => flags.iter().map(|flag| *flag != 0).collect(),
            _ => return self.count_or(stem, LAYERS_MAX, otherwise),
        };
        let regular = |period: &usize| {
            let layers = windowed.iter().enumerate();
            layers
                .take(n_layers)
                .all(|(layer, windowed)| *windowed != (layer + 1).is_multiple_of(*period))
        };
        // One more than the layers: all of them have a window.
        (windowed.len() >= n_layers)
            .then(|| (1..=n_layers + 1).find(regular))
            .flatten()
            .ok_or_else(|| self.unsupported(stem, "a list that does not repeat itself"))
    }

    /// Refuses a count that would change the results in a way that is not computed.
    pub(crate) fn refuse_other_count(&self, stem: &str, usual: u64) -> Result<(), ArchError> {
        match self.find(stem)? {
            Some(found) if found != usual => Err(ArchError::Unsupported {
                key: self.key(stem),
                found: found.to_string(),
            }),
            _ => Ok(()),
        }
    }

    /// Scaled positions change every result, so what is not computed is refused by its name.
    pub(crate) fn rope_scaling(&self, context: usize) -> Result<RopeScaling, ArchError> {
        // In every kind, queries and keys would be multiplied with it.
        self.refuse_other("rope.scaling.attn_factor", 1.0)?;
        // Files that name a factor only are of the time when there was one kind.
        let kind = self.text("rope.scaling.type")?.unwrap_or("linear");
        let factor = match self.float("rope.scaling.factor")? {
            Some(factor) => Some(factor),
            None => self.float("rope.scale_linear")?,
        };
        let factor = factor.filter(|factor| *factor != 0.0).unwrap_or(1.0);
        if !(factor.is_finite() && factor > 0.0) {
            let expected = "a positive number".to_owned();
            return Err(self.bad("rope.scaling.factor", expected, factor.to_string()));
        }
        match kind {
            "none" => Ok(RopeScaling::None),
            "linear" if factor == 1.0 => Ok(RopeScaling::None),
            "linear" => Ok(RopeScaling::Linear { factor }),
            "yarn" => {
                for (stem, usual) in YARN_USUAL {
                    self.refuse_other(stem, *usual)?;
                }
                let trained_context =
                    self.count_or("rope.scaling.original_context_length", CONTEXT_MAX, context)?;
                Ok(RopeScaling::Yarn {
                    factor,
                    trained_context,
                })
            }
            _ => Err(self.unsupported("rope.scaling.type", &format!("{kind:?}"))),
        }
    }

    /// Refuses a number that would change the results in a way that is not computed.
    pub(crate) fn refuse_other(&self, stem: &str, usual: f32) -> Result<(), ArchError> {
        match self.float(stem)? {
            Some(found) if found != usual => Err(ArchError::Unsupported {
                key: self.key(stem),
                found: found.to_string(),
            }),
            _ => Ok(()),
        }
    }

    fn float(&self, stem: &str) -> Result<Option<f32>, ArchError> {
        Ok(self.index.metadata.find_f32(&self.key(stem))?)
    }

    pub(crate) fn flag(&self, stem: &str) -> Result<Option<bool>, ArchError> {
        Ok(self.index.metadata.find_bool(&self.key(stem))?)
    }

    pub(crate) fn text(&self, stem: &str) -> Result<Option<&str>, ArchError> {
        Ok(self.index.metadata.find_str(&self.key(stem))?)
    }

    pub(crate) fn unsupported(&self, stem: &str, found: &str) -> ArchError {
        ArchError::Unsupported {
            key: self.key(stem),
            found: found.to_owned(),
        }
    }

    pub(crate) fn bad(&self, stem: &str, expected: String, found: String) -> ArchError {
        ArchError::OutOfBounds {
            key: self.key(stem),
            expected,
            found,
        }
    }
}
