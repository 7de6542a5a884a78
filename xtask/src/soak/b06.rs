//! Stop while a model is loaded and while a long prompt is read.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::Bench;
use super::figures::{Figure, all_within, within};
use super::program::{Ran, StopAt};

/// The exit code for a call that was interrupted.
const INTERRUPTED: i32 = 130;

/// The prompt must take at least this long to read.
const READING_MIN: Duration = Duration::from_secs(20);

/// Tokens to start the search for such a prompt with.
const TOKENS_FIRST: usize = 1_000;
/// A longer prompt would not fit in the context of 32,768 that the model was trained with.
const TOKENS_MAX: usize = 32_000;
/// The search grows at most by this, and by less than the time that is missing: a token late in a
/// prompt takes longer than an early one, so a large step lands far beyond.
const GROWTH_MAX: f64 = 2.0;
/// Tokens grow with this power of the time, roughly.
const GROWTH_POWER: f64 = 0.7;

/// Stops at each of the places while the prompt is read: 99 in all, and one while loading.
const RUNS_EACH: usize = 33;
/// Stops while the model is loaded.
const RUNS_LOADING: usize = 20;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let prompt = bench.scratch.join("b06.ids");
    let reading = find_prompt(bench, &prompt)?;
    let shown = reading.as_secs_f64();
    println!("reading takes {shown:.1} s");
    let limits = |figure: Figure| figure.limit(within(95, 250)).limit(all_within(500));
    let mut figures = vec![limits(Figure::new(
        "Stop 20 ms after the start, while loading",
    ))];
    for _ in 0..RUNS_LOADING {
        if !stop(bench, &prompt, Duration::from_millis(20), &mut figures[0])? {
            bail!("nothing is loaded and read within 20 ms");
        }
    }
    let places = [
        ("500 ms", Duration::from_millis(500)),
        ("50 %", reading.mul_f64(0.5)),
        ("95 %", reading.mul_f64(0.95)),
    ];
    for (place, after) in places {
        let what = format!("Stop at {place} of reading a prompt of {shown:.0} s");
        let mut figure = limits(Figure::new(what));
        let mut after = after;
        for _ in 0..RUNS_EACH {
            // A machine that has less to do than a moment ago may be done before the Stop.
            while !stop(bench, &prompt, after, &mut figure)? {
                after = after.mul_f64(0.9);
            }
        }
        figures.push(figure);
    }
    Ok(figures)
}

/// Finds a prompt that takes long enough, writes it down, and says how long it takes.
fn find_prompt(bench: &Bench, path: &Path) -> Result<Duration> {
    let mut tokens = TOKENS_FIRST;
    loop {
        // Any ids will do: it is the reading that is measured. Not all the same, so that no
        // shortcut could be taken.
        let ids: Vec<String> = (0..tokens)
            .map(|at| (1_000 + at * 7 % 20_000).to_string())
            .collect();
        fs::write(path, ids.join(","))?;
        let ran = generate(bench, path, StopAt::Never)?;
        let ms = ran.last()?["stats"]["prefill_ms"]
            .as_f64()
            .context("prefill_ms")?;
        let took = Duration::from_secs_f64(ms / 1e3);
        if took >= READING_MIN || tokens >= TOKENS_MAX {
            return Ok(took);
        }
        let missing = READING_MIN.as_secs_f64() / took.as_secs_f64().max(0.1);
        let factor = (missing.powf(GROWTH_POWER) * 1.05).min(GROWTH_MAX);
        tokens = ((tokens as f64 * factor) as usize).clamp(tokens + 1, TOKENS_MAX);
    }
}

/// Whether the Stop came in time to be one.
fn stop(bench: &Bench, prompt: &Path, after: Duration, figure: &mut Figure) -> Result<bool> {
    let ran = generate(bench, prompt, StopAt::Time(after))?;
    let Some((took, _)) = ran.stopped else {
        return Ok(false);
    };
    figure.timed(took);
    if ran.exit != Some(INTERRUPTED) {
        figure.fault(format!(
            "stopped after {after:?}: exit {:?} {}",
            ran.exit,
            ran.errors.trim()
        ));
    }
    Ok(true)
}

fn generate(bench: &Bench, prompt: &Path, stop: StopAt) -> Result<Ran> {
    let ids = format!("@{}", prompt.display());
    let call = bench.candor.call(&["generate"]).word(&bench.coder);
    call.words(&["--json", "--max-tokens", "1", "--ids", &ids])
        .run_and_stop(stop)
}
