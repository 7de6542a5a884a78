//! `candor verify`: holds the GPU against the CPU.

use std::path::PathBuf;
use std::sync::Arc;

use candor_app::headless::{
    self, Assumed, Ends, LoadStage, Prompt, Recall, Setup, Step, TextSide, VerdictKind,
    Verification, Vocabulary,
};
use serde_json::{Value, json};

use crate::args::Common;
use crate::environment;
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::output::{Form, Output, notice};
use crate::session::{look, setup};

/// Tokens of context beside a text: what is judged is longer where the text is short, and one step
/// more.
const SPARE_TOKENS: usize = 512;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The model file
    model: PathBuf,
    /// The text that both compute [default: a built-in one]
    #[arg(long, value_name = "STR", allow_hyphen_values = true)]
    prompt: Option<String>,
}

pub(crate) fn run(
    args: &Args,
    common: &Common,
    interrupts: &Arc<Interrupts>,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let cancel = interrupts.listen()?;
    // A file that cannot be used is refused before anything is said of a card.
    let probe = probe(args)?;
    let choice = look(common)?;
    let need = probe
        .as_ref()
        .map_or(0, Vec::len)
        .saturating_add(SPARE_TOKENS);
    let mut setup = setup(common, &choice, &environment::clock(), Some(need));
    setup.text = TextSide::IdsOnly;
    // Asked for by name, so the processor is asked too.
    setup.cards.recall = Recall::Nothing;
    setup.cards.probe = probe;
    // Nothing else is to be told of than the card.
    setup.cards.choice.wish = headless::BackendWish::Gpu;
    let mut told = 0;
    let mut watch = |stage: LoadStage, done: u64, total: u64| {
        if stage == LoadStage::Checking && total > 0 && tenths(done, total) > told {
            told = tenths(done, total);
            notice(&format!(
                "checking the GPU against the CPU, {done} of {total}"
            ));
        }
        Step::Go
    };
    let found = verified(&setup, args, &cancel, &mut watch)?;
    match output.form() {
        Form::Json => output.json(&as_json(&found))?,
        Form::Text => as_text(&found, output)?,
    }
    Ok(match found.kind {
        VerdictKind::Accepted => Exit::Done,
        VerdictKind::Rejected => Exit::Rejected,
        VerdictKind::NotJudged | VerdictKind::NotNeeded => Exit::NotJudged,
    })
}

fn verified(
    setup: &Setup,
    args: &Args,
    cancel: &headless::CancelToken,
    watch: &mut dyn FnMut(LoadStage, u64, u64) -> Step,
) -> Result<Verification, Failure> {
    Ok(headless::verify(setup, &args.model, cancel, watch)?)
}

/// The tokens of the text that was given.
fn probe(args: &Args) -> Result<Option<Vec<u32>>, Failure> {
    let text = match &args.prompt {
        Some(_) => TextSide::Needed,
        None => TextSide::IdsOnly,
    };
    let vocabulary = Vocabulary::open_as(&args.model, &Assumed::default(), text)?;
    let Some(prompt) = &args.prompt else {
        return Ok(None);
    };
    let ids = vocabulary.encode(&Prompt::typed(prompt.as_str()), Ends::Chat)?;
    Ok(Some(ids))
}

fn tenths(done: u64, total: u64) -> u64 {
    done.saturating_mul(10) / total
}

fn as_json(found: &Verification) -> Value {
    let mut all = json!({
        "verdict": found.kind.name(),
        "mode": null,
        "date": null,
        "positions": 0,
        "ways": 0,
        "min_cosine": null,
        "max_kl": null,
        "mean_kl": null,
        "argmax_agreement": null,
        "near_ties": null,
        "first_bad": null,
        "reference_ms": null,
        "candidate_ms": null,
        "device": found.device,
        "driver": found.driver,
        "reason": found.reason,
    });
    if let Some(report) = &found.report {
        all["mode"] = json!(report.mode.name());
        for (name, value) in headless::report_json(report) {
            all[name] = value;
        }
    }
    all
}

fn as_text(found: &Verification, output: &mut Output) -> Result<(), Failure> {
    let verdict = match found.kind {
        VerdictKind::Accepted => "accepted",
        VerdictKind::Rejected => "rejected",
        VerdictKind::NotJudged | VerdictKind::NotNeeded => "not judged",
    };
    output.line(&format!("{verdict}: {}", found.reason))?;
    if let Some(report) = &found.report {
        // Its first line says the same in other words.
        for line in report.to_string().lines().skip(1) {
            output.line(line)?;
        }
    }
    if let Some(driver) = &found.driver {
        output.line(&format!("driver: {driver}"))?;
    }
    Ok(())
}
