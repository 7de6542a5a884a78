//! The built program by its outside: results, refusals, exit codes, Stop.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod computing;
mod describing;
mod files;
mod formats;
mod state;
mod stop;
#[allow(dead_code, reason = "each test program uses a part of it")]
#[path = "../support/mod.rs"]
mod support;
mod templates;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use candor_testkit::TinyModel;
use serde_json::Value;

/// Writes a model into a folder.
pub(crate) fn tiny(dir: &Path, model: &TinyModel) -> PathBuf {
    let path = dir.join("tiny.gguf");
    model.write(&path).unwrap();
    path
}

/// Arguments: a subcommand, its model, and more words.
pub(crate) fn args(command: &str, model: &Path, more: &str) -> Vec<OsString> {
    let mut all = vec![OsString::from(command), model.into()];
    all.extend(more.split_whitespace().map(OsString::from));
    all
}

/// The text of all token lines, and their ids.
pub(crate) fn streamed(lines: &[Value]) -> (String, Vec<u32>) {
    let tokens = &lines[..lines.len() - 1];
    let text = tokens
        .iter()
        .map(|line| line["text"].as_str().expect("a text"))
        .collect();
    let ids = tokens
        .iter()
        .map(|line| line["token"].as_u64().expect("an id") as u32)
        .collect();
    (text, ids)
}
