//! `candor inspect`: what a file is, and whether it can be used.

use std::path::PathBuf;

use candor_app::headless::{InspectOptions, Inspection, Weight, count, inspect, size};
use serde_json::{Map, Value, json};

use crate::args::{Common, Stated};
use crate::environment;
use crate::failure::{Exit, Failure};
use crate::output::{Form, Output};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The model file
    model: PathBuf,
    #[command(flatten)]
    stated: Stated,
}

pub(crate) fn run(args: &Args, common: &Common, output: &mut Output) -> Result<Exit, Failure> {
    let options = InspectOptions {
        assumed: args.stated.assumed(),
        context: common.context(),
        kv: common.kv(),
        free_memory: environment::free_memory(),
    };
    let inspection = inspect(&args.model, &options)?;
    match output.form() {
        Form::Json => output.json(&as_json(&inspection))?,
        Form::Text => as_text(&inspection, output)?,
    }
    Ok(Exit::Done)
}

fn as_json(found: &Inspection) -> Value {
    let quantization: Map<String, Value> = found
        .quantization
        .iter()
        .map(|(name, count)| ((*name).to_owned(), json!(count)))
        .collect();
    let memory = found.memory.map(|memory| {
        json!({
            "weights_bytes": memory.weights_bytes,
            "unpacked_bytes": memory.unpacked_bytes,
            "kv": memory.kv.name(),
            "kv_bytes_per_token": memory.kv_bytes_per_token,
            "context_tokens": memory.context_tokens,
            "kv_bytes": memory.kv_bytes,
            "scratch_bytes": memory.scratch_bytes,
            "total_bytes": memory.total_bytes,
        })
    });
    let problems = found.problems.iter();
    let problems = problems.map(|problem| {
        json!({
            "code": problem.code,
            "weight": problem.weight.name(),
            "message": problem.message,
            "advice": problem.advice,
        })
    });
    json!({
        "path": found.path.to_string_lossy(),
        "format": found.format,
        "architecture": found.architecture,
        "name": found.name,
        "parameters": found.parameters,
        "file_bytes": found.file_bytes,
        "tensors": found.tensors,
        "quantization": quantization,
        "context_length": found.context_length,
        "vocabulary": found.vocabulary,
        "tokenizer": found.tokenizer,
        "pre_tokenizer": found.pre_tokenizer,
        "chat_template": found.chat_template.to_string(),
        "memory": memory,
        // This version has no code for graphics cards.
        "supported": { "cpu": found.cpu, "gpu": false },
        "problems": problems.collect::<Vec<_>>(),
        "notes": found.notes,
    })
}

fn as_text(found: &Inspection, output: &mut Output) -> Result<(), Failure> {
    let or_none =
        |text: &Option<String>| text.clone().unwrap_or_else(|| String::from("not stated"));
    let number = |found: Option<u64>| found.map_or_else(|| or_none(&None), count);
    let types = found
        .quantization
        .iter()
        .map(|(name, tensors)| format!("{name} × {tensors}"));
    let mut rows = vec![
        ("File", found.path.to_string_lossy().into_owned()),
        ("Format", found.format.to_owned()),
        ("Architecture", found.architecture.clone()),
        ("Name", or_none(&found.name)),
        ("Parameters", count(found.parameters)),
        ("File size", bytes(found.file_bytes)),
        (
            "Tensors",
            format!(
                "{} ({})",
                found.tensors,
                types.collect::<Vec<_>>().join(", ")
            ),
        ),
        ("Trained context", number(found.context_length)),
        (
            "Vocabulary",
            number(found.vocabulary.map(|count| count as u64)),
        ),
        ("Tokenizer", or_none(&found.tokenizer)),
        ("Pre-tokenizer", or_none(&found.pre_tokenizer)),
        ("Chat template", found.chat_template.to_string()),
    ];
    if let Some(memory) = found.memory {
        let context = count(memory.context_tokens);
        let each = bytes(memory.kv_bytes_per_token);
        rows.push(("Weights", bytes(memory.weights_bytes)));
        if memory.unpacked_bytes > 0 {
            rows.push(("Laid out anew", bytes(memory.unpacked_bytes)));
        }
        rows.push((
            "Keys and values",
            format!("{each} for each token, as {}", memory.kv.name()),
        ));
        rows.push((
            "Memory",
            format!("{} with {context} tokens", bytes(memory.total_bytes)),
        ));
    }
    let runs = match found.problems.iter().map(|problem| problem.weight).min() {
        Some(Weight::Against) => "cannot be run",
        Some(Weight::NoText) => "runs on the CPU, with token ids only",
        _ => "runs on the CPU",
    };
    rows.push(("Use", runs.to_owned()));
    for (name, value) in rows {
        output.line(&format!("{name:16} {value}"))?;
    }
    for note in &found.notes {
        output.line(&format!("note: {note}"))?;
    }
    for problem in &found.problems {
        output.line(&format!("problem: {}", problem.message))?;
        if let Some(advice) = problem.advice {
            output.line(&format!("         {advice}"))?;
        }
    }
    Ok(())
}

/// A size as people read it, and to the byte where that says less.
fn bytes(found: u64) -> String {
    let (rounded, exact) = (size(found), format!("{} bytes", count(found)));
    if rounded == exact {
        exact
    } else {
        format!("{rounded} ({exact})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_said_in_units_and_to_the_byte() {
        let cases = [
            (0, "0 bytes"),
            (512, "512 bytes"),
            (23_040, "23 kB (23,040 bytes)"),
            (98_316_192, "98 MB (98,316,192 bytes)"),
            (4_683_074_240, "4.7 GB (4,683,074,240 bytes)"),
        ];
        for (found, want) in cases {
            assert_eq!(bytes(found), want);
        }
    }
}
