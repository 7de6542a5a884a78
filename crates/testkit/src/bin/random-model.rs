//! `random-model SHAPE FILE`: a model of a real shape with random weights, for measurements.
#![forbid(unsafe_code)]
// It is run by hand and by scripts, and talks to them.
#![allow(clippy::disallowed_methods, clippy::print_stderr)]

use std::path::Path;
use std::process::ExitCode;

use candor_testkit::large::{LARGE_MODELS, LargeModel};

/// Always the same weights, so that two machines measure the same file.
const SEED: u64 = 1;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [shape, path] = words.as_slice() else {
        return fail(&format!("usage: random-model SHAPE FILE; {}", shapes()));
    };
    let Some(model) = LargeModel::by_name(shape) else {
        return fail(&format!("{shape} is not a shape; {}", shapes()));
    };
    match model.write(Path::new(path), SEED) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{path}: {error}")),
    }
}

fn shapes() -> String {
    let names: Vec<&str> = LARGE_MODELS.iter().map(|model| model.name).collect();
    format!("shapes: {}", names.join(", "))
}

fn fail(words: &str) -> ExitCode {
    eprintln!("{words}");
    ExitCode::FAILURE
}
