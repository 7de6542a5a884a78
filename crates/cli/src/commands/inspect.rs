//! `candor inspect`: what a file is, and whether it can be used.

use std::path::PathBuf;

use candor_app::headless::{Inspection, inspect};
use serde_json::{Map, Value, json};

use crate::failure::{Exit, Failure};
use crate::output::{Form, Output};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The model file
    model: PathBuf,
}

pub(crate) fn run(args: &Args, output: &mut Output) -> Result<Exit, Failure> {
    let inspection = inspect(&args.model)?;
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
            "kv_bytes_per_token": memory.kv_bytes_per_token,
            "context_tokens": memory.context_tokens,
            "kv_bytes": memory.kv_bytes,
            "scratch_bytes": memory.scratch_bytes,
            "total_bytes": memory.total_bytes,
        })
    });
    let problems = found.problems.iter();
    let problems = problems.map(|p| json!({ "code": p.code, "message": p.message }));
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
    let number = |count: Option<u64>| count.map_or_else(|| or_none(&None), |n| n.to_string());
    let types = found
        .quantization
        .iter()
        .map(|(name, count)| format!("{name} × {count}"));
    let mut rows = vec![
        ("File", found.path.to_string_lossy().into_owned()),
        ("Format", found.format.to_owned()),
        ("Architecture", found.architecture.clone()),
        ("Name", or_none(&found.name)),
        ("Parameters", found.parameters.to_string()),
        ("File size", format!("{} bytes", found.file_bytes)),
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
        let tokens = memory.context_tokens;
        rows.push(("Weights", format!("{} bytes", memory.weights_bytes)));
        rows.push((
            "Keys and values",
            format!("{} bytes a token", memory.kv_bytes_per_token),
        ));
        rows.push((
            "Memory",
            format!("{} bytes with {tokens} tokens", memory.total_bytes),
        ));
    }
    let runs = if found.cpu {
        "runs on the CPU"
    } else {
        "cannot be run"
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
    }
    Ok(())
}
