//! Stages that say of single tokens whether and how gladly they are taken.

use super::sampling::within;
use super::{Pool, Sampling, SamplingError};

/// Tokens with a bias in one request: as many as other servers take, and few enough to look
/// through for every token.
pub const BIASES_MAX: usize = 1_024;
/// The largest bias either way, beside −∞: the range of the OpenAI API. It as good as forces a
/// token, or forbids it.
pub const BIAS_MAX: f32 = 100.0;

/// Why a bias is none.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum BiasError {
    /// Too many.
    #[error("{found} tokens have a bias; at most {max} may")]
    TooMany {
        /// As given.
        found: usize,
        /// [`BIASES_MAX`].
        max: usize,
    },
    /// A token that the model does not have.
    #[error("the bias of token {token} is outside the vocabulary of {vocabulary}")]
    UnknownToken {
        /// As given.
        token: u32,
        /// Size of the vocabulary.
        vocabulary: usize,
    },
    /// A number outside its bounds.
    #[error(transparent)]
    Value(#[from] SamplingError),
}

/// Holds biases against their bounds.
pub(super) fn check(bias: &[(u32, f32)], vocabulary: usize) -> Result<(), BiasError> {
    if bias.len() > BIASES_MAX {
        return Err(BiasError::TooMany {
            found: bias.len(),
            max: BIASES_MAX,
        });
    }
    for &(token, value) in bias {
        if token as usize >= vocabulary {
            return Err(BiasError::UnknownToken { token, vocabulary });
        }
        if value != f32::NEG_INFINITY {
            within(("logit bias", value, -BIAS_MAX, BIAS_MAX))?;
        }
    }
    Ok(())
}

/// Tokens for each word of a mask.
const WORD: usize = u32::BITS as usize;

/// Forbids what the grammar does not allow.
pub(super) fn grammar(_: &Sampling, pool: &mut Pool<'_>) {
    let Some(allowed) = pool.given.allowed else {
        return;
    };
    let words = allowed.iter().copied().chain(std::iter::repeat(0));
    for (logits, word) in pool.logits.chunks_mut(WORD).zip(words) {
        match word {
            u32::MAX => {}
            0 => logits.fill(f32::NEG_INFINITY),
            _ => {
                for (bit, logit) in logits.iter_mut().enumerate() {
                    if word >> bit & 1 == 0 {
                        *logit = f32::NEG_INFINITY;
                    }
                }
            }
        }
    }
}

/// Adds what was asked for.
pub(super) fn logit_bias(_: &Sampling, pool: &mut Pool<'_>) {
    for &(id, bias) in pool.bias {
        if let Some(logit) = pool.logits.get_mut(id as usize) {
            *logit += bias;
        }
    }
}
