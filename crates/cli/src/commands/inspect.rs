//! `candor inspect`: what a file is, and whether it can be used.

use std::path::PathBuf;

use candor_app::headless::{InspectOptions, Inspection, inspect, rows};
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
        threads: Some(common.threads()),
        free_memory: environment::free_memory(),
        ..InspectOptions::default()
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
            "message": problem.message.to_string(),
            "advice": problem.advice.as_ref().map(ToString::to_string),
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
        "supported": { "cpu": found.cpu, "gpu": found.gpu },
        "problems": problems.collect::<Vec<_>>(),
        "notes": found.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn as_text(found: &Inspection, output: &mut Output) -> Result<(), Failure> {
    for (name, value) in rows(found) {
        output.line(&format!("{name:16} {value}"))?;
    }
    for note in &found.notes {
        output.line(&format!("note: {note}"))?;
    }
    for problem in &found.problems {
        output.line(&format!("problem: {}", problem.message))?;
        if let Some(advice) = &problem.advice {
            output.line(&format!("         {advice}"))?;
        }
    }
    Ok(())
}
