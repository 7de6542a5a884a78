//! `candor perplexity`: how well the model predicts a text.

use std::path::PathBuf;
use std::sync::Arc;

use candor_app::headless::{Ends, Prompt, Vocabulary};
use serde_json::json;

use crate::args::Common;
use crate::environment;
use crate::failure::{Exit, Failure};
use crate::input;
use crate::interrupt::Interrupts;
use crate::output::{Form, Output};
use crate::session::{choose, setup};

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["ids", "text"]))]
pub(crate) struct Args {
    /// The model file
    model: PathBuf,
    /// The tokens; nothing is added
    #[arg(long, value_name = "LIST|@FILE")]
    ids: Option<String>,
    /// The text
    #[arg(long, value_name = "STR|@FILE", allow_hyphen_values = true)]
    text: Option<String>,
}

pub(crate) fn run(
    args: &Args,
    common: &Common,
    interrupts: &Arc<Interrupts>,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let cancel = interrupts.listen()?;
    let choice = choose(common)?;
    let ids = match (&args.ids, &args.text) {
        (Some(ids), _) => input::ids(ids)?,
        (None, text) => {
            let text = input::text(text.as_deref().unwrap_or_default())?;
            Vocabulary::open(&args.model)?.encode(&Prompt::typed(text), Ends::Chat)?
        }
    };
    if ids.len() < 2 {
        return Err(Failure::usage(
            "at least two tokens are needed: one predicts the next",
        ));
    }
    let setup = setup(common, &choice, &environment::clock(), Some(ids.len()));
    let mut model = setup.direct(&args.model, &cancel, &mut |_, _, _| super::GO)?;
    let mut sum = 0.0;
    model.logits(&ids, 0, &cancel, &mut |position, logits| {
        if let Some(&next) = ids.get(position + 1) {
            sum += super::log_sum_exp(logits) - f64::from(logits[next as usize]);
        }
    })?;
    let mean = sum / (ids.len() - 1) as f64;
    let (tokens, ppl) = (ids.len(), mean.exp());
    match output.form() {
        Form::Json => {
            output.json(&json!({ "tokens": tokens, "mean_nll": mean, "ppl": ppl }))?;
        }
        Form::Text => {
            output.line(&format!(
                "{tokens} tokens, mean nll {mean:.4}, perplexity {ppl:.3}"
            ))?;
        }
    }
    Ok(Exit::Done)
}
