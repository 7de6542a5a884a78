//! Getters for the metadata under one architecture's prefix, each with its bounds.

use candor_modelfile::Index;

use crate::error::ArchError;
use crate::features::{Experts, RopeScaling};
use crate::hparams::limits::{CONTEXT_MAX, EXPERTS_MAX, FFN_WIDTH_MAX, VOCABULARY_MAX};

/// Settings of YaRN beside the factor, as its paper has them. Others are refused.
const YARN_USUAL: &[(&str, f32)] = &[
    ("rope.scaling.attn_factor", 1.0),
    ("rope.scaling.yarn_ext_factor", 1.0),
    ("rope.scaling.yarn_attn_factor", 1.0),
    ("rope.scaling.yarn_beta_fast", 32.0),
    ("rope.scaling.yarn_beta_slow", 1.0),
    ("rope.scaling.yarn_log_multiplier", 0.0),
];

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

    /// The experts of a feed-forward without one for all rows.
    pub(crate) fn experts(&self) -> Result<Experts, ArchError> {
        self.refuse_other_count("expert_shared_count", 0)?;
        let count = self.count("expert_count", EXPERTS_MAX)?;
        Ok(Experts {
            count,
            used: self.count("expert_used_count", count)?,
            inner: self.count("expert_feed_forward_length", FFN_WIDTH_MAX)?,
            shared_inner: 0,
        })
    }

    /// The experts of a feed-forward with one for all rows.
    pub(crate) fn experts_with_shared(&self) -> Result<Experts, ArchError> {
        let count = self.count("expert_count", EXPERTS_MAX)?;
        let inner = self.count("expert_feed_forward_length", FFN_WIDTH_MAX)?;
        let shared = "expert_shared_feed_forward_length";
        Ok(Experts {
            count,
            used: self.count("expert_used_count", count)?,
            inner,
            shared_inner: self.count_or(shared, FFN_WIDTH_MAX, inner)?,
        })
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
        let key = self.key("rope.scaling.type");
        // Files that name a factor only are of the time when there was one kind.
        let kind = self.index.metadata.find_str(&key)?.unwrap_or("linear");
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
            _ => Err(ArchError::Unsupported {
                key,
                found: format!("{kind:?}"),
            }),
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
