//! `cargo xtask speed`: how fast models are read and written on the processor beside llama.cpp, and
//! how the time of a token grows, into `docs/measurements`.
//!
//! The program that runs both engines in turns lies outside the repository, with llama.cpp. It is
//! called as `docs/measurements/llama-cpp.md` says, and prints a line of JSON for each model.

mod growth;
mod log;
mod plot;
mod ratios;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use log::Log;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{command, project};

const USAGE: &str = "\
Usage: cargo xtask speed [--rounds N] [--only ratios|growth] [--minutes N] PROGRAM MODEL...

  --minutes N   begin no run that would not end within them
  PROGRAM       runs llama.cpp and candor in turns; see docs/measurements/llama-cpp.md
  MODEL...      the files to measure; the time of a token against the context is that of the first
                two

The pages are written after each run. What was measured stays in the build folder (speed.jsonl): called
again with the same kernels (crates/arch, cpu and quant), the command goes on where it stood.";

/// Rounds where nothing is said.
const ROUNDS: usize = 5;

/// Tokens of a prompt whose reading is measured.
const PROMPT: usize = 512;

/// Models whose growth is drawn: a context of 16,384 tokens takes minutes to fill.
const GROWING: usize = 2;

/// What is to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Only {
    All,
    Ratios,
    Growth,
}

/// The two engines.
struct Pair {
    program: PathBuf,
    candor: PathBuf,
    rounds: usize,
}

/// What one model is measured with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Setting {
    threads: usize,
    /// Tokens before those that are written.
    depth: usize,
    /// Tokens of the prompt that is read by itself.
    prompt: usize,
    /// Tokens that are written.
    tokens: usize,
}

impl Pair {
    /// Runs both on a model, once.
    fn run(&self, model: &Path, setting: Setting) -> Result<Value> {
        let arguments = [
            ("--threads", setting.threads),
            ("--depth", setting.depth),
            ("-p", setting.prompt),
            ("-n", setting.tokens),
            ("--pairs", 1),
        ];
        let kept = command::program(&self.program, &[])
            .argument("--candor")
            .argument(&self.candor);
        let kept = arguments
            .into_iter()
            .fold(kept, |run, (word, number)| {
                run.argument(word).argument(number.to_string())
            })
            .argument(model)
            .run_and_keep()?;
        if let Some(failure) = kept.failure {
            bail!(failure);
        }
        let line = kept
            .text
            .lines()
            .find(|line| line.trim_start().starts_with('{'))
            .context("the program printed no line of JSON")?;
        serde_json::from_str(line).with_context(|| format!("not JSON: {line}"))
    }
}

/// A number somewhere in what a program printed.
fn number(value: &Value, path: &str) -> Result<f64> {
    let found = value.pointer(path).and_then(Value::as_f64);
    found.with_context(|| format!("no number at {path}"))
}

/// Measures, and writes the pages.
///
/// # Errors
/// If something needed is missing, or an engine fails.
pub(crate) fn speed(given: &[OsString]) -> Result<()> {
    let (mut rounds, mut only, mut minutes) = (ROUNDS, Only::All, None);
    let mut files = Vec::new();
    let mut words = given.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().map(|word| word.to_string_lossy().into_owned());
        match word.to_str() {
            Some("--rounds") => {
                let value = value().and_then(|value| value.parse().ok());
                rounds = value.context(USAGE)?;
            }
            Some("--minutes") => {
                let value = value().and_then(|value| value.parse().ok());
                minutes = Some(value.context(USAGE)?);
            }
            Some("--only") => {
                only = match value().as_deref() {
                    Some("ratios") => Only::Ratios,
                    Some("growth") => Only::Growth,
                    _ => bail!("{USAGE}"),
                }
            }
            _ => files.push(PathBuf::from(word)),
        }
    }
    let [program, models @ ..] = &files[..] else {
        bail!("{USAGE}");
    };
    if models.is_empty() {
        bail!("{USAGE}");
    }
    command::cargo(&["build", "--release", "--package", "candor"]).run()?;
    let target = project::target()?;
    let pair = Pair {
        program: program.clone(),
        candor: target.join("release").join("candor"),
        rounds,
    };
    let state = log::kernels(&pair.candor)?;
    let mut log = Log::open(target.join("speed.jsonl"), state, minutes)?;
    let cores = std::thread::available_parallelism()?.get();
    if only != Only::Growth {
        ratios::measure(&pair, &mut log, models, cores)?;
    }
    if only != Only::Ratios {
        let growing = &models[..models.len().min(GROWING)];
        growth::measure(&pair, &mut log, growing, cores)?;
    }
    Ok(())
}

fn keep(file: &str, text: &str) -> Result<()> {
    fs::write(project::root().join(file), text)?;
    println!("Written to {file}");
    Ok(())
}

/// The machine, the day and the commit, for the head of a page.
fn conditions() -> Result<String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let processors = read("/proc/cpuinfo");
    let named = processors
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let processor = named.map_or("unknown", |rest| rest.trim_start_matches(['\t', ' ', ':']));
    let cores = std::thread::available_parallelism()?;
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or("?");
    let commit = command::program("git", &["rev-parse", "--short", "HEAD"]).quiet_output()?;
    let days = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() / 86_400);
    let (commit, day) = (commit.trim(), date(days));
    Ok(format!(
        "{processor}, {cores} cores, load before {load}, {day}, commit {commit}."
    ))
}

/// The date of a day since 1970-01-01 (proleptic Gregorian; the algorithm is H. Hinnant's).
fn date(days: u64) -> String {
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_its_date() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (11_016, "2000-02-29"),
            (20_788, "2026-12-01"),
        ] {
            assert_eq!(date(days), expected);
        }
    }
}
