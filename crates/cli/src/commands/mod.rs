//! One file for each subcommand.

pub(crate) mod bench;
pub(crate) mod chat;
pub(crate) mod doctor;
pub(crate) mod generate;
pub(crate) mod inspect;
pub(crate) mod logits;
pub(crate) mod perplexity;
pub(crate) mod render;
pub(crate) mod serve;
pub(crate) mod tokenize;
pub(crate) mod verify;

use std::sync::Arc;

use candor_app::headless::Step;

use crate::args::{Cli, Command};
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::output::Output;

/// Runs the subcommand that was asked for.
pub(crate) fn run(
    cli: Cli,
    interrupts: &Arc<Interrupts>,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let common = &cli.common;
    match &cli.command {
        Command::Inspect(args) => inspect::run(args, common, output),
        Command::Tokenize(args) => tokenize::run(args, output),
        Command::Render(args) => render::run(args, output),
        Command::Logits(args) => logits::run(args, common, interrupts, output),
        Command::Perplexity(args) => perplexity::run(args, common, interrupts, output),
        Command::Generate(args) => generate::run(args, common, interrupts, output),
        Command::Chat(args) => chat::run(args, common, interrupts, output),
        Command::Verify(args) => verify::run(args, common, interrupts, output),
        Command::Serve(args) => serve::run(args, common, interrupts, output),
        Command::Bench(args) => bench::run(args, common, interrupts, output),
        Command::Doctor(args) => doctor::run(args, common, output),
    }
}

/// The answer of a load's watcher that never stops it: Ctrl-C has a flag of its own.
const GO: Step = Step::Go;

/// Log of the sum of the exponentials, without overflow.
fn log_sum_exp(logits: &[f32]) -> f64 {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits
        .iter()
        .map(|&logit| f64::from(logit - most).exp())
        .sum();
    f64::from(most) + sum.ln()
}
