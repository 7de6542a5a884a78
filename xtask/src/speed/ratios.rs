//! The table of ratios.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Pair, Setting, conditions, number};

/// Tokens before writing: none, and as many as make attention the larger part of a small model.
const DEPTHS: [usize; 2] = [0, 4_096];

/// Measures every model on all cores and on one.
pub(super) fn page(pair: &Pair, models: &[PathBuf], cores: usize) -> Result<String> {
    let mut text = format!(
        "# Speed beside llama.cpp, table\n\nWritten by `cargo xtask speed`. {} Medians of {} rounds, \
         with the least and the greatest; Candor ÷ llama.cpp, above 1 Candor is faster, and of \
         memory below 1 it needs less.\n\n\
         | model | threads | context | reading 512 | writing | memory | Candor, tokens a second | \
         llama.cpp |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
        conditions()?,
        pair.rounds
    );
    let mut logs = Vec::new();
    let mut bandwidths = Vec::new();
    for model in models {
        for threads in if cores > 1 { vec![cores, 1] } else { vec![1] } {
            for depth in DEPTHS {
                let row = pair.run(model, Setting { threads, depth }, pair.rounds)?;
                logs.push(number(&row, "/prefill_ratio")?.ln());
                logs.push(number(&row, "/decode_ratio")?.ln());
                text.push_str(&line(&row, Setting { threads, depth })?);
                bandwidths.push(number(&row, "/last/ours/bandwidth_bytes_per_second")?);
            }
        }
    }
    let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    bandwidths.sort_by(f64::total_cmp);
    let bandwidth = bandwidths[bandwidths.len() / 2] / 1e9;
    writeln!(
        text,
        "\nThe geometric mean of all ratios of speed is {mean:.2}. Memory is read at \
         {bandwidth:.0} GB/s, the median of what was measured beside each row."
    )?;
    Ok(text)
}

fn line(row: &Value, Setting { threads, depth }: Setting) -> Result<String> {
    let name = row["model"].as_str().context("a model's name")?;
    let rates = |engine: &str, what: &str| -> Result<f64> {
        let at = format!("/last/{engine}/{what}/tokens_per_second");
        number(row, &at).or_else(|_| {
            number(
                row,
                &format!("/last/{engine}/{what}/0/tokens_per_second/median"),
            )
        })
    };
    Ok(format!(
        "| {} | {threads} | {depth} | {} | {} | × {:.2} | {:.0} / {:.1} | {:.0} / {:.1} |\n",
        name.trim_end_matches(".gguf"),
        ratio(row, "prefill")?,
        ratio(row, "decode")?,
        number(row, "/memory_ratio")?,
        rates("ours", "prefill")?,
        rates("ours", "decode")?,
        rates("theirs", "prefill")?,
        rates("theirs", "decode")?,
    ))
}

/// The median with the least and the greatest.
fn ratio(row: &Value, what: &str) -> Result<String> {
    let all = row[format!("{what}_ratios")].as_array();
    let all = all.context("the ratios of the rounds")?;
    let all: Vec<f64> = all.iter().filter_map(Value::as_f64).collect();
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = all.iter().copied().fold(0.0, f64::max);
    let median = number(row, &format!("/{what}_ratio"))?;
    Ok(format!("× {median:.2} ({least:.2}–{greatest:.2})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_becomes_a_line() {
        let row = serde_json::json!({
            "model": "m.gguf", "prefill_ratio": 2.0, "decode_ratio": 1.5, "memory_ratio": 0.9,
            "prefill_ratios": [1.9, 2.0, 2.2], "decode_ratios": [1.5],
            "last": {
                "ours": {
                    "prefill": [{"tokens_per_second": {"median": 1000.0}}],
                    "decode": [{"tokens_per_second": {"median": 60.5}}],
                },
                "theirs": {
                    "prefill": {"tokens_per_second": 500.0},
                    "decode": {"tokens_per_second": 40.25},
                },
            },
        });
        let setting = Setting {
            threads: 2,
            depth: 4096,
        };
        assert_eq!(
            line(&row, setting).unwrap(),
            "| m | 2 | 4096 | × 2.00 (1.90–2.20) | × 1.50 (1.50–1.50) | × 0.90 | 1000 / 60.5 | \
             500 / 40.2 |\n"
        );
    }
}
