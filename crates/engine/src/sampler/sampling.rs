//! How tokens are chosen, as the user says it, and the bounds of that.

use super::{DRY_LENGTH_MAX, DRY_WINDOW_MAX};

/// Above this every distribution is flat already.
pub const TEMPERATURE_MAX: f32 = 10.0;
/// Below 1 a penalty rewards repetition; a tenth is beyond any sensible use.
pub const REPEAT_PENALTY_MIN: f32 = 0.1;
/// Above this a repeated token is as good as forbidden.
pub const REPEAT_PENALTY_MAX: f32 = 10.0;
/// Of the presence and the frequency penalty, either way: the range of the OpenAI API.
pub const PENALTY_MAX: f32 = 2.0;
/// A penalty of so much forbids the token already at the shortest repetition.
pub const DRY_MULTIPLIER_MAX: f32 = 100.0;
/// Below 1 a longer repetition would cost less than a shorter one.
pub const DRY_BASE_MIN: f32 = 1.0;
/// Above this the second token of a repetition is as good as forbidden.
pub const DRY_BASE_MAX: f32 = 10.0;

/// How the next token is chosen, as the user says it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// 0 takes the best token, the lowest id on ties; of the other numbers, only the penalties and
    /// DRY then count.
    pub temperature: f32,
    /// Keeps the `top_k` best; 0 keeps all.
    pub top_k: usize,
    /// Keeps the best tokens that together reach this probability; 1 keeps all.
    pub top_p: f32,
    /// Keeps tokens with at least this share of the best one's probability; 0 keeps all.
    pub min_p: f32,
    /// Divides (negative: multiplies) the logits of tokens seen lately; 1 changes nothing.
    pub repeat_penalty: f32,
    /// Taken once off the logits of tokens seen lately; 0 changes nothing.
    pub presence_penalty: f32,
    /// Taken off the logits of tokens seen lately, for each time; 0 changes nothing.
    pub frequency_penalty: f32,
    /// What going on with a repetition of the allowed length costs; 0 switches DRY off.
    pub dry_multiplier: f32,
    /// By how much each further token of a repetition makes going on with it dearer.
    pub dry_base: f32,
    /// Repetitions shorter than this cost nothing.
    pub dry_allowed_length: usize,
    /// Tokens that DRY looks back over; 0 for all.
    pub dry_window: usize,
    /// How often the top choices are left out; 0 for never.
    pub xtc_probability: f32,
    /// From which probability on a token is a top choice. Above a half nothing can be left out.
    pub xtc_threshold: f32,
    /// Same seed, same reply.
    pub seed: u64,
}

impl Sampling {
    /// The best token each time. Every number but the temperature changes nothing; those that
    /// need another to count have their usual values.
    pub fn greedy() -> Self {
        Self {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repeat_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            dry_multiplier: 0.0,
            dry_base: 1.75,
            dry_allowed_length: 2,
            dry_window: 0,
            xtc_probability: 0.0,
            xtc_threshold: 0.1,
            seed: 0,
        }
    }

    /// Whether a penalty counts.
    pub(super) fn penalises(&self) -> bool {
        self.repeat_penalty != 1.0 || self.presence_penalty != 0.0 || self.frequency_penalty != 0.0
    }

    /// Whether repetitions cost something.
    pub(crate) fn is_dry(&self) -> bool {
        self.dry_multiplier != 0.0
    }

    /// # Errors
    /// [`SamplingError`] for the first number outside its bounds (a NaN is outside of all).
    pub(super) fn check(&self) -> Result<(), SamplingError> {
        let length_max = DRY_LENGTH_MAX as f32;
        let window_max = DRY_WINDOW_MAX as f32;
        let bounds = [
            ("temperature", self.temperature, 0.0, TEMPERATURE_MAX),
            ("top-p", self.top_p, 0.0, 1.0),
            ("min-p", self.min_p, 0.0, 1.0),
            (
                "repeat penalty",
                self.repeat_penalty,
                REPEAT_PENALTY_MIN,
                REPEAT_PENALTY_MAX,
            ),
            (
                "presence penalty",
                self.presence_penalty,
                -PENALTY_MAX,
                PENALTY_MAX,
            ),
            (
                "frequency penalty",
                self.frequency_penalty,
                -PENALTY_MAX,
                PENALTY_MAX,
            ),
            (
                "DRY multiplier",
                self.dry_multiplier,
                0.0,
                DRY_MULTIPLIER_MAX,
            ),
            ("DRY base", self.dry_base, DRY_BASE_MIN, DRY_BASE_MAX),
            (
                "DRY allowed length",
                self.dry_allowed_length as f32,
                1.0,
                length_max,
            ),
            ("DRY window", self.dry_window as f32, 0.0, window_max),
            ("XTC probability", self.xtc_probability, 0.0, 1.0),
            ("XTC threshold", self.xtc_threshold, 0.0, 1.0),
        ];
        bounds.into_iter().try_for_each(within)
    }
}

/// A number outside its bounds.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{what} is {found}; it has to be between {min} and {max}")]
pub struct SamplingError {
    /// Which number.
    pub what: &'static str,
    /// As given.
    pub found: f32,
    /// The least allowed.
    pub min: f32,
    /// The most allowed.
    pub max: f32,
}

/// Holds a named number against its bounds.
pub(super) fn within(
    (what, found, min, max): (&'static str, f32, f32, f32),
) -> Result<(), SamplingError> {
    if (min..=max).contains(&found) {
        return Ok(());
    }
    Err(SamplingError {
        what,
        found,
        min,
        max,
    })
}
