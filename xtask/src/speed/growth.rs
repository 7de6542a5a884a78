//! How the time of a token grows with the context and shrinks with threads.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::Result;

use super::log::{Log, Run, name};
use super::plot::{Line, plot};
use super::ratios::middle;
use super::{Pair, Setting, conditions, keep};

/// Tokens before writing.
const DEPTHS: [usize; 8] = [128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384];

/// Rounds of each: the lines are long, and their form is what counts.
const ROUNDS: usize = 1;

/// Nobody looks at how a prompt is read here.
const PROMPT: usize = 16;

/// Tokens that are written after each context; a round does it four times.
const TOKENS: usize = 16;

const FOLDER: &str = "docs/measurements";

fn setting(threads: usize, depth: usize) -> Setting {
    Setting {
        threads,
        depth,
        prompt: PROMPT,
        tokens: TOKENS,
    }
}

/// Measures every model, the shortest contexts first, and writes page and pictures after each run.
pub(super) fn measure(pair: &Pair, log: &mut Log, models: &[PathBuf], cores: usize) -> Result<()> {
    let head = conditions()?;
    let names: Vec<String> = models.iter().map(|model| name(model)).collect();
    for depth in DEPTHS {
        for threads in (1..=cores).rev() {
            for model in models {
                let what = (model.as_path(), setting(threads, depth));
                match log.measure(pair, what, ROUNDS)? {
                    Some(false) => {}
                    Some(true) => write(&head, log, &names, cores)?,
                    None => return Ok(()),
                }
            }
        }
    }
    write(&head, log, &names, cores)
}

fn write(head: &str, log: &Log, models: &[String], cores: usize) -> Result<()> {
    keep(
        &format!("{FOLDER}/growth.md"),
        &page(head, log, models, cores),
    )?;
    for (number, model) in models.iter().enumerate() {
        let lines = lines(log, model, cores);
        if lines.iter().any(|line| line.points.len() > 1) {
            let picture = plot("tokens of context", "ms for a token", &lines);
            keep(&format!("{FOLDER}/{}", picture_of(number)), &picture)?;
        }
    }
    Ok(())
}

fn picture_of(number: usize) -> String {
    format!("growth-{}.svg", number + 1)
}

/// Milliseconds for a token, from its tokens a second.
fn milliseconds(runs: &[&Run], of: impl Fn(&Run) -> f64) -> f64 {
    1e3 / middle(runs, of).1
}

fn page(head: &str, log: &Log, models: &[String], cores: usize) -> String {
    let mut text = format!(
        "# How the time of a token grows\n\nWritten by `cargo xtask speed`. {head} One round for each \
         figure; milliseconds for a token that is written.\n"
    );
    for (number, model) in models.iter().enumerate() {
        // Writing into a string cannot fail.
        let _ = write!(
            text,
            "\n## {model}\n\n![Time of a token against the context]({})\n\n\
             | context | threads | Candor | llama.cpp | ratio |\n| --- | --- | --- | --- | --- |\n",
            picture_of(number)
        );
        for threads in 1..=cores {
            for depth in DEPTHS {
                let runs = log.of(model, setting(threads, depth));
                if runs.is_empty() {
                    continue;
                }
                let ours = milliseconds(&runs, |run| run.ours[1]);
                let theirs = milliseconds(&runs, |run| run.theirs[1]);
                let ratio = theirs / ours;
                let _ = writeln!(
                    text,
                    "| {depth} | {threads} | {ours:.2} | {theirs:.2} | × {ratio:.2} |"
                );
            }
        }
    }
    text
}

fn lines(log: &Log, model: &str, cores: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for threads in 1..=cores {
        let suffix = if threads == 1 { "thread" } else { "threads" };
        for (engine, of) in [
            ("Candor", (|run| run.ours[1]) as fn(&Run) -> f64),
            ("llama.cpp", |run| run.theirs[1]),
        ] {
            let point = |depth| {
                let runs = log.of(model, setting(threads, depth));
                (!runs.is_empty()).then(|| (depth as f64, milliseconds(&runs, of)))
            };
            lines.push(Line {
                name: format!("{engine}, {threads} {suffix}"),
                points: DEPTHS.into_iter().filter_map(point).collect(),
            });
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::log::{log_of, sample};
    use super::*;

    #[test]
    fn what_was_measured_is_in_the_table_and_the_picture() {
        let log = log_of(vec![
            sample("m", setting(1, 128), [1.0, 2.0]),
            sample("m", setting(1, 256), [1.0, 4.0]),
        ]);
        let text = page("Head.", &log, &["m".to_owned()], 2);
        assert!(text.contains(
            "\n| 128 | 1 | 12.50 | 25.00 | × 2.00 |\n| 256 | 1 | 6.25 | 25.00 | × 4.00 |\n"
        ));
        let lines = lines(&log, "m", 2);
        let counts: Vec<usize> = lines.iter().map(|line| line.points.len()).collect();
        assert_eq!(counts, [2, 2, 0, 0]);
    }
}
