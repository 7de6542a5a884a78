//! What the commands that compute have in common: the choice of the backend, the setup, and what is
//! said of both.

use std::path::Path;
use std::sync::Arc;

use candor_app::headless::{
    self, Assumed, BackendWish, Cards, Choice, ChosenCards, DeviceKind, LoadedModel, Recall,
    Served, Setup, TextSide, Verdicts,
};
use candor_app::{Clock, PROBE_LIMIT, ProbeCommand};
use serde_json::{Value, json};

use crate::args::Common;
use crate::environment;
use crate::failure::{Exit, Failure, Report as FailureReport};

/// Decides what computes.
pub(crate) fn choose(common: &Common) -> Result<Choice, Failure> {
    let probe = probe()?;
    let (wish, card) = wished(common);
    Ok(headless::choose(wish, card, &probe, PROBE_LIMIT)?)
}

/// As [`choose`], where it is an answer that there is no card.
pub(crate) fn look(common: &Common) -> Result<Choice, Failure> {
    let probe = probe()?;
    let (wish, card) = wished(common);
    Ok(headless::look(wish, card, &probe, PROBE_LIMIT))
}

/// What is to compute, and which card: as the command says, else as the window's settings do.
fn wished(common: &Common) -> (BackendWish, Option<u32>) {
    let chosen = chosen(common);
    let wish = common.wish().unwrap_or_else(|| chosen.wish());
    (wish, common.device.or(chosen.card()))
}

/// What the window's settings say; nothing where the environment names no folder.
fn chosen(common: &Common) -> ChosenCards {
    let paths = environment::paths(common.data_dir.clone());
    paths.map_or_else(
        |_| ChosenCards::default(),
        |paths| ChosenCards::read(&paths.settings_file()),
    )
}

/// How this program asks for the driver.
pub(crate) fn probe() -> Result<ProbeCommand, Failure> {
    environment::probe_command().map_err(|error| {
        let message = format!("the program does not find itself: {error}");
        FailureReport::new(Exit::Failed, "probe", message).into()
    })
}

/// How a model is made ready with so much context, unless the user asks for another.
pub(crate) fn setup(
    common: &Common,
    choice: &Choice,
    clock: &Clock,
    context: Option<usize>,
) -> Setup {
    Setup {
        threads: common.threads(),
        precision: common.precision(),
        kv: common.kv(),
        text: TextSide::Needed,
        assumed: Assumed::default(),
        context: common.context().or(context),
        slots: 1,
        kept: 0,
        cards: Cards {
            choice: choice.clone(),
            verdicts: verdicts(common, clock),
            recall: Recall::Kept,
            check: common.check(),
            chosen: chosen(common),
            probe: None,
            unproven: None,
        },
        clock: clock.clone(),
        free_memory: Arc::new(environment::free_memory),
        with_sleep: Arc::new(environment::with_sleep),
    }
}

/// Where verdicts are kept; none where the environment names no folder.
pub(crate) fn verdicts(common: &Common, clock: &Clock) -> Option<Verdicts> {
    let paths = environment::paths(common.data_dir.clone()).ok()?;
    let cache: &Path = &paths.cache;
    Some(Verdicts::new(
        cache,
        clock.clone(),
        env!("CARGO_PKG_VERSION"),
    ))
}

/// What computed, for the JSON results. `model` is none if nothing was loaded.
pub(crate) fn backend_json(choice: &Choice, model: Option<&LoadedModel>) -> Value {
    let device = model.map(|model| &model.device);
    let kind = device.map_or(DeviceKind::Cpu, |device| device.kind);
    let reason = model
        .map(|model| choice.reason(model))
        .or_else(|| choice.no_card());
    let judged = model.map(|model| choice.judgement(model));
    json!({
        "requested": choice.wish.name(),
        "served": served_name(kind),
        "device": device.map(|device| &device.name),
        "reason": reason,
        "isa": device.map(|device| &device.isa),
        "threads": device.map(|device| device.threads),
        "kv": model.map(|model| model.kv.name()),
        "memory": model.map(headless::memory_json),
        "f2": judged.as_ref().map_or_else(headless::not_needed_json, headless::judgement_json),
    })
}

/// What computed a reply, which may have moved while it was written: `moved` is why.
pub(crate) fn reply_backend_json(
    choice: &Choice,
    model: Option<&LoadedModel>,
    served: &Served,
    moved: Option<&str>,
) -> Value {
    let mut backend = backend_json(choice, model);
    if model.is_some() {
        backend["served"] = json!(served_name(served.device));
    }
    if let Some(reason) = moved {
        backend["moved"] = json!({ "after_tokens": served.moved_at, "reason": reason });
        backend["reason"] = json!(format!("the GPU was given up ({reason}); the CPU wrote on"));
        // What is known is of the device that began.
        for field in ["device", "isa", "threads"] {
            backend[field] = Value::Null;
        }
    }
    backend
}

fn served_name(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Cpu => "cpu",
        DeviceKind::Gpu => "gpu",
    }
}
