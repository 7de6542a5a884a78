//! Options that say how tokens are chosen and what a reply has to look like, beyond the few that
//! everybody sets.

use std::path::PathBuf;

use candor_app::headless::{
    Constraint, DRY_BASE_MAX, DRY_BASE_MIN, DRY_LENGTH_MAX, DRY_MULTIPLIER_MAX, DRY_WINDOW_MAX,
    PENALTY_MAX, Sampling,
};

use crate::bounds;
use crate::failure::Failure;
use crate::input;

/// Penalties, DRY and XTC.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct FurtherArgs {
    /// Taken once off the logits of tokens seen lately
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_hyphen_values = true,
        value_parser = bounds::number(-PENALTY_MAX, PENALTY_MAX))]
    presence_penalty: f32,
    /// Taken off the logits of tokens seen lately, for each time
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_hyphen_values = true,
        value_parser = bounds::number(-PENALTY_MAX, PENALTY_MAX))]
    frequency_penalty: f32,
    /// What going on with a repetition costs; 0 switches DRY off
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_hyphen_values = true,
        value_parser = bounds::number(0.0, DRY_MULTIPLIER_MAX))]
    dry_multiplier: f32,
    /// By how much each further token of a repetition makes that dearer
    #[arg(long, value_name = "X", default_value_t = 1.75, allow_hyphen_values = true,
        value_parser = bounds::number(DRY_BASE_MIN, DRY_BASE_MAX))]
    dry_base: f32,
    /// Repetitions of fewer tokens cost nothing
    #[arg(long, value_name = "N", default_value_t = 2, allow_negative_numbers = true,
        value_parser = bounds::whole(1, DRY_LENGTH_MAX))]
    dry_allowed_length: usize,
    /// Tokens that DRY looks back over; 0 for all
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true,
        value_parser = bounds::whole(0, DRY_WINDOW_MAX))]
    dry_window: usize,
    /// How often the top choices are left out; 0 for never
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_hyphen_values = true,
        value_parser = bounds::number(0.0, 1.0))]
    xtc_probability: f32,
    /// From which probability on a token is a top choice
    #[arg(long, value_name = "P", default_value_t = 0.1, allow_hyphen_values = true,
        value_parser = bounds::number(0.0, 1.0))]
    xtc_threshold: f32,
}

impl FurtherArgs {
    /// All that is not said here changes nothing.
    pub(crate) fn sampling(&self) -> Sampling {
        Sampling {
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            dry_multiplier: self.dry_multiplier,
            dry_base: self.dry_base,
            dry_allowed_length: self.dry_allowed_length,
            dry_window: self.dry_window,
            xtc_probability: self.xtc_probability,
            xtc_threshold: self.xtc_threshold,
            ..Sampling::greedy()
        }
    }
}

/// What a reply has to look like.
#[derive(Clone, Debug, clap::Args)]
#[group(multiple = false)]
pub(crate) struct HeldArgs {
    /// A JSON schema that the reply follows
    #[arg(long, value_name = "FILE")]
    json_schema: Option<PathBuf>,
    /// A regular expression that the whole reply matches
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    regex: Option<String>,
    /// A grammar that the reply follows, in llguidance's form of Lark
    #[arg(long, value_name = "FILE")]
    grammar: Option<PathBuf>,
}

impl HeldArgs {
    pub(crate) fn constraint(&self) -> Result<Option<Constraint>, Failure> {
        if let Some(path) = &self.json_schema {
            let schema = serde_json::from_str(&input::file_text(path)?).map_err(|error| {
                Failure::usage(format!("{}: this is not JSON: {error}", path.display()))
            })?;
            return Ok(Some(Constraint::JsonSchema(schema)));
        }
        if let Some(path) = &self.grammar {
            return Ok(Some(Constraint::Lark(input::file_text(path)?)));
        }
        Ok(self.regex.clone().map(Constraint::Regex))
    }
}
