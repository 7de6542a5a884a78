//! `cargo xtask speed`: how fast models are read and written on the processor beside llama.cpp, and
//! how the time of a token grows, into `docs/measurements`.
//!
//! The program that runs both engines in turns lies outside the repository, with llama.cpp. It is
//! called as `docs/measurements/llama-cpp.md` says, and prints a line of JSON for each model.

mod growth;
mod plot;
mod ratios;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{command, project};

const USAGE: &str = "\
Usage: cargo xtask speed [--rounds N] [--only ratios|growth] PROGRAM MODEL...

  PROGRAM    runs llama.cpp and candor in turns; see docs/measurements/llama-cpp.md
  MODEL...   the files to measure; the time of a token against the context is that of the first";

/// Rounds where nothing is said.
const ROUNDS: usize = 5;

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
#[derive(Clone, Copy)]
struct Setting {
    threads: usize,
    depth: usize,
}

impl Pair {
    /// Runs both on a model. `rounds` as many times as said.
    fn run(&self, model: &Path, setting: Setting, rounds: usize) -> Result<Value> {
        let arguments = [
            "--threads".to_owned(),
            setting.threads.to_string(),
            "--depth".to_owned(),
            setting.depth.to_string(),
            "--pairs".to_owned(),
            rounds.to_string(),
        ];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let kept = command::program(&self.program, &[])
            .argument("--candor")
            .argument(&self.candor);
        let kept = arguments
            .into_iter()
            .fold(kept, |run, word| run.argument(word))
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
    let (mut rounds, mut only, mut files) = (ROUNDS, Only::All, Vec::new());
    let mut words = given.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().map(|word| word.to_string_lossy().into_owned());
        match word.to_str() {
            Some("--rounds") => {
                let value = value().and_then(|value| value.parse().ok());
                rounds = value.context(USAGE)?;
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
    let Some(first) = models.first() else {
        bail!("{USAGE}");
    };
    command::cargo(&["build", "--release", "--package", "candor"]).run()?;
    let pair = Pair {
        program: program.clone(),
        candor: project::target()?.join("release").join("candor"),
        rounds,
    };
    let cores = std::thread::available_parallelism()?.get();
    if only != Only::Growth {
        keep(
            "docs/measurements/speed.md",
            &ratios::page(&pair, models, cores)?,
        )?;
    }
    if only != Only::Ratios {
        let (page, picture) = growth::pages(&pair, first, cores)?;
        keep("docs/measurements/growth.svg", &picture)?;
        keep("docs/measurements/growth.md", &page)?;
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
