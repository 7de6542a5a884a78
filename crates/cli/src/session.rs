//! What the commands that compute have in common: the choice of the backend and the setup.

use std::sync::Arc;

use candor_app::headless::{self, Assumed, Choice, LoadedModel, Setup, TextSide};
use candor_app::{Clock, PROBE_LIMIT};
use serde_json::{Value, json};

use crate::args::Common;
use crate::environment;
use crate::failure::{Exit, Failure, Report};

/// Decides what computes.
pub(crate) fn choose(common: &Common) -> Result<Choice, Failure> {
    let probe = environment::probe_command().map_err(|error| {
        let message = format!("the program does not find itself: {error}");
        Failure::from(Report::new(Exit::Failed, "probe", message))
    })?;
    Ok(headless::choose(common.wish(), &probe, PROBE_LIMIT)?)
}

/// How a model is made ready with so much context, unless the user asks for another.
pub(crate) fn setup(common: &Common, clock: &Clock, context: Option<usize>) -> Setup {
    Setup {
        threads: common.threads(),
        precision: common.precision(),
        kv: common.kv(),
        text: TextSide::Needed,
        assumed: Assumed::default(),
        context: common.context().or(context),
        slots: 1,
        clock: clock.clone(),
        free_memory: Arc::new(environment::free_memory),
    }
}

/// What computed, for the JSON results. `model` is none if nothing was loaded.
pub(crate) fn backend_json(choice: &Choice, model: Option<&LoadedModel>) -> Value {
    let device = model.map(|model| &model.device);
    json!({
        "requested": choice.wish.name(),
        "served": "cpu",
        "device": device.map(|device| &device.name),
        "reason": choice.reason(),
        "isa": device.map(|device| &device.isa),
        "threads": device.map(|device| device.threads),
        "kv": model.map(|model| model.kv.name()),
        // The processor is the reference: there is nothing to hold it against.
        "f2": { "verdict": "not_needed", "mode": null },
    })
}
