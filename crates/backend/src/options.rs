//! The bounds of a session's options, the same for every backend.

use crate::error::OpenError;
use crate::model::OpenOptions;

/// Slots of a session: more conversations at once than one machine can serve.
const SLOTS_MAX: usize = 256;

/// Tokens of a context, and of a state: positions stay exact in float32.
const TOKENS_MAX: usize = 1 << 24;

impl OpenOptions {
    /// Holds the numbers against their bounds.
    ///
    /// # Errors
    /// [`OpenError::Option`] names the first that is outside.
    pub fn check(&self) -> Result<(), OpenError> {
        within("the context length", self.ctx_len, TOKENS_MAX)?;
        within("the number of slots", self.slots_max, SLOTS_MAX)?;
        within("the tokens of the state", self.state_tokens, TOKENS_MAX)
    }
}

fn within(what: &'static str, found: usize, max: usize) -> Result<(), OpenError> {
    if (1..=max).contains(&found) {
        return Ok(());
    }
    Err(OpenError::Option {
        what,
        found,
        min: 1,
        max,
    })
}
