//! `candor verify`: holds the GPU against the CPU. This version has no code for graphics cards, so
//! the answer is always that it could not be judged, and why.

use std::path::PathBuf;

use candor_app::headless::{self, BackendWish, Choice, Unavailable, Vocabulary};
use candor_app::{PROBE_LIMIT, compose};
use serde_json::json;

use crate::args::Common;
use crate::environment;
use crate::failure::{Exit, Failure, Report};
use crate::output::{Form, Output};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The model file
    model: PathBuf,
    /// The text that both compute [default: a built-in one]
    #[arg(long, value_name = "STR", allow_hyphen_values = true)]
    prompt: Option<String>,
}

pub(crate) fn run(args: &Args, common: &Common, output: &mut Output) -> Result<Exit, Failure> {
    // A file that cannot be used is refused before anything is said of a card.
    let vocabulary = Vocabulary::open(&args.model)?;
    if let Some(prompt) = &args.prompt {
        vocabulary.encode(
            &headless::Prompt::typed(prompt.as_str()),
            headless::Ends::Chat,
        )?;
    }
    let why = match common.wish() {
        BackendWish::Cpu => Unavailable::ChosenByUser,
        BackendWish::Auto | BackendWish::Gpu => {
            let probe = environment::probe_command().map_err(|error| {
                let message = format!("the program does not find itself: {error}");
                Failure::from(Report::new(Exit::Failed, "probe", message))
            })?;
            compose::probe(&probe, PROBE_LIMIT)
        }
    };
    let (device, driver) = match &why {
        Unavailable::NotUsedYet { device } => (Some(device.clone()), None),
        Unavailable::DriverTooOld { found, .. } => (None, Some(found.clone())),
        _ => (None, None),
    };
    let reason = Choice {
        wish: common.wish(),
        why,
    }
    .reason();
    match output.form() {
        Form::Json => output.json(&json!({
            "verdict": "not_judged",
            "mode": null,
            "positions": 0,
            "min_cosine": null,
            "max_kl": null,
            "argmax_agreement": null,
            "first_bad": null,
            "reference_ms": null,
            "candidate_ms": null,
            "device": device,
            "driver": driver,
            "reason": reason,
        }))?,
        Form::Text => output.line(&format!("not judged: {reason}"))?,
    }
    Ok(Exit::NotJudged)
}
