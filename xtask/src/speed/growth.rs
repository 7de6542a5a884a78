//! How the time of a token grows with the context and shrinks with threads.

use std::fmt::Write;
use std::path::Path;

use anyhow::Result;

use super::plot::{Line, plot};
use super::{Pair, Setting, conditions, number};

/// Tokens before writing.
const DEPTHS: [usize; 8] = [128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384];

/// Rounds of each: the lines are long, and their form is what counts.
const ROUNDS: usize = 1;

/// Measures a model; gives the page and its picture.
pub(super) fn pages(pair: &Pair, model: &Path, cores: usize) -> Result<(String, String)> {
    let name = model.file_stem().unwrap_or_default().to_string_lossy();
    let mut text = format!(
        "# How the time of a token grows\n\nWritten by `cargo xtask speed`. {} {name}, one round for \
         each figure; milliseconds for a token that is written.\n\n\
         ![Time of a token against the context](growth.svg)\n\n\
         | context | threads | Candor | llama.cpp | ratio |\n| --- | --- | --- | --- | --- |\n",
        conditions()?
    );
    let mut lines = Vec::new();
    for threads in 1..=cores {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for depth in DEPTHS {
            let row = pair.run(model, Setting { threads, depth }, ROUNDS)?;
            let of = number(&row, "/last/ours/decode/0/tokens_per_second/median")?;
            let other = number(&row, "/last/theirs/decode/tokens_per_second")?;
            let (of, other) = (1e3 / of, 1e3 / other);
            writeln!(
                text,
                "| {depth} | {threads} | {of:.2} | {other:.2} | × {:.2} |",
                other / of
            )?;
            ours.push((depth as f64, of));
            theirs.push((depth as f64, other));
        }
        let suffix = if threads == 1 { "thread" } else { "threads" };
        for (engine, points) in [("Candor", ours), ("llama.cpp", theirs)] {
            lines.push(Line {
                name: format!("{engine}, {threads} {suffix}"),
                points,
            });
        }
    }
    Ok((text, plot("tokens of context", "ms for a token", &lines)))
}
