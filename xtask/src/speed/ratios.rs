//! The table of ratios.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::Result;

use super::log::{Log, Run, name};
use super::{PROMPT, Pair, Setting, conditions, keep};

/// Tokens before writing: as many as make attention the larger part of a small model.
const DEPTH: usize = 4_096;

/// Tokens that are written after them; each round does it four times.
const DEEP_TOKENS: usize = 16;

/// Tokens that are written after nothing.
const TOKENS: usize = 32;

/// The same prompt is read in every setting without a context; beside a context nobody looks at it.
const SHORT_PROMPT: usize = 16;

const FILE: &str = "docs/measurements/speed.md";

/// On all cores with nothing before and with a full context, then on one.
fn settings(cores: usize) -> Vec<Setting> {
    let empty = |threads| Setting {
        threads,
        depth: 0,
        prompt: PROMPT,
        tokens: TOKENS,
    };
    let deep = Setting {
        depth: DEPTH,
        prompt: SHORT_PROMPT,
        tokens: DEEP_TOKENS,
        ..empty(cores)
    };
    let mut settings = vec![empty(cores), deep];
    if cores > 1 {
        settings.push(empty(1));
    }
    settings
}

/// Measures every model. The rounds are outermost, and the page is written after each run, so that
/// it is whole as early as can be, and better the longer it goes on.
pub(super) fn measure(pair: &Pair, log: &mut Log, models: &[PathBuf], cores: usize) -> Result<()> {
    let settings = settings(cores);
    let head = conditions()?;
    let names: Vec<String> = models.iter().map(|model| name(model)).collect();
    keep(FILE, &page(&head, log, &names, &settings))?;
    for round in 1..=pair.rounds {
        for setting in &settings {
            for model in models {
                match log.measure(pair, (model, *setting), round)? {
                    Some(false) => {}
                    Some(true) => keep(FILE, &page(&head, log, &names, &settings))?,
                    None => return Ok(()),
                }
            }
        }
    }
    Ok(())
}

fn page(head: &str, log: &Log, models: &[String], settings: &[Setting]) -> String {
    let mut text = format!(
        "# Speed beside llama.cpp\n\nWritten by `cargo xtask speed`. {head} Rounds of one state of the \
         kernels stand together, whenever they were run. Medians of them, with the least and the greatest; Candor ÷ llama.cpp, above 1 Candor is faster, and of \
         memory below 1 it needs less.\n\n\
         | model | threads | context | rounds | reading {PROMPT} | writing | memory | Candor, tokens a \
         second | llama.cpp |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
    );
    let (mut logs, mut bandwidths) = (Vec::new(), Vec::new());
    for setting in settings {
        for model in models {
            let runs = log.of(model, *setting);
            if runs.is_empty() {
                continue;
            }
            text.push_str(&line(model, *setting, &runs));
            logs.push(middle(&runs, |run| run.writing).1.ln());
            if setting.prompt == PROMPT {
                logs.push(middle(&runs, |run| run.reading).1.ln());
            }
            bandwidths.extend(runs);
        }
    }
    if !logs.is_empty() {
        let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
        let (least, middle, most) = middle(&bandwidths, |run| run.bandwidth / 1e9);
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "\nThe geometric mean of all ratios of speed is {mean:.2}. Memory was read at {middle:.0} \
             GB/s ({least:.0}–{most:.0}), measured beside each run."
        );
    }
    text
}

fn line(model: &str, setting: Setting, runs: &[&Run]) -> String {
    let ratio = |of: fn(&Run) -> f64| {
        let (least, middle, most) = middle(runs, of);
        format!("× {middle:.2} ({least:.2}–{most:.2})")
    };
    let is_read = setting.prompt == PROMPT;
    let reading = if is_read {
        ratio(|run| run.reading)
    } else {
        "–".to_owned()
    };
    let rates = |of: fn(&Run) -> [f64; 2]| {
        let [reading, writing] = [0, 1].map(|at| middle(runs, |run| of(run)[at]).1);
        if is_read {
            format!("{reading:.0} / {writing:.1}")
        } else {
            format!("– / {writing:.1}")
        }
    };
    format!(
        "| {model} | {} | {} | {} | {reading} | {} | × {:.2} | {} | {} |\n",
        setting.threads,
        setting.depth,
        runs.len(),
        ratio(|run| run.writing),
        middle(runs, |run| run.memory).1,
        rates(|run| run.ours),
        rates(|run| run.theirs),
    )
}

/// The least, the median and the greatest of something; there is one at least.
pub(super) fn middle(runs: &[&Run], of: impl Fn(&Run) -> f64) -> (f64, f64, f64) {
    let mut all: Vec<f64> = runs.iter().map(|run| of(run)).collect();
    all.sort_by(f64::total_cmp);
    let half = all.len() / 2;
    let median = if all.len().is_multiple_of(2) {
        (all[half - 1] + all[half]) / 2.0
    } else {
        all[half]
    };
    (all[0], median, all[all.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::super::log::{log_of, sample};
    use super::*;

    #[test]
    fn a_page_has_a_line_for_each_model_and_setting_that_was_measured() {
        let settings = settings(2);
        let log = log_of(vec![
            sample("m", settings[0], [2.0, 1.0]),
            sample("m", settings[0], [4.0, 1.5]),
            sample("m", settings[0], [3.0, 2.0]),
            sample("m", settings[1], [9.0, 2.0]),
        ]);
        let models = ["m".to_owned(), "n".to_owned()];
        let text = page("Head.", &log, &models, &settings);
        let rows: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("| m"))
            .collect();
        assert_eq!(
            rows[1..],
            [
                "| m | 2 | 0 | 3 | × 3.00 (2.00–4.00) | × 1.50 (1.00–2.00) | × 0.90 | 1500 / 60.0 | \
                 500 / 40.0 |",
                "| m | 2 | 4096 | 1 | – | × 2.00 (2.00–2.00) | × 0.90 | – / 80.0 | – / 40.0 |",
            ]
        );
        // The cube root of 3 · 1.5 · 2.
        assert!(text.contains("ratios of speed is 2.08. Memory was read at 50 GB/s (50–50)"));
        assert!(!text.contains("| n |"));
    }
}
