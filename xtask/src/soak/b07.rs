//! Stop while a reply is written.

use anyhow::{Context, Result};

use super::Bench;
use super::figures::{Figure, all_within};
use super::program::StopAt;

const RUNS: usize = 100;

/// Tokens that are written before the Stop.
const BEFORE: usize = 20;

/// Tokens that may still come: those that were on their way when the key was pressed. The limit
/// of one more step is counted inside the engine, in its tests; from outside a line may already
/// be in the pipe.
const AFTER_MAX: usize = 3;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figure = Figure::new("Stop after 20 of 2,000 tokens, to the end of the process")
        .limit(all_within(500));
    for _ in 0..RUNS {
        let call = bench.candor.call(&["generate"]).word(&bench.small);
        let ran = call
            .words(&[
                "--json",
                "--prompt",
                "Count to one thousand.",
                "--max-tokens",
                "2000",
            ])
            .words(&["--ignore-eos", "--seed", "1"])
            .run_and_stop(StopAt::Lines(BEFORE))?;
        let (took, before) = ran.stopped.context("it was not stopped")?;
        figure.timed(took);
        let last = ran.last()?;
        let written = ran.lines.len().saturating_sub(1);
        if last["finish"] != "cancelled" {
            figure.fault(format!("it ended as {}", last["finish"]));
        }
        if written > before + AFTER_MAX {
            figure.fault(format!("{} tokens came after the Stop", written - before));
        }
        if last["text"].as_str().is_none_or(str::is_empty) {
            figure.fault("the part that was written is lost".to_owned());
        }
    }
    Ok(vec![figure])
}
