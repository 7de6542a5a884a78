//! The golden files.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// One file of golden logits.
#[derive(Deserialize)]
pub(crate) struct Golden {
    pub(crate) model: String,
    pub(crate) n_vocab: usize,
    /// The file of numbers, for the tiny models.
    pub(crate) file: Option<String>,
    pub(crate) cases: Vec<Case>,
}

/// One prompt.
#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) tokens: Vec<u32>,
    #[serde(default)]
    pub(crate) first_pos: usize,
    #[serde(default)]
    pub(crate) n_pos: usize,
    pub(crate) logits_f32: Option<Place>,
    #[serde(default)]
    pub(crate) greedy_f32: Vec<u32>,
    #[serde(default)]
    pub(crate) greedy_margin_f32: Vec<f32>,
    pub(crate) diff: Option<Diff>,
    #[serde(default)]
    pub(crate) trace_f32: Vec<Trace>,
    pub(crate) top: Option<Top>,
    pub(crate) top_f32: Option<Top>,
    pub(crate) mean_nll: Option<f64>,
    pub(crate) mean_nll_f32: Option<f64>,
}

/// Where numbers begin in the file of numbers.
#[derive(Deserialize)]
pub(crate) struct Place {
    pub(crate) offset: usize,
}

/// How far the other program's own quantised run is from its float32 run.
#[derive(Deserialize)]
pub(crate) struct Diff {
    pub(crate) rms: f32,
}

/// Values between the nodes.
#[derive(Deserialize)]
pub(crate) struct Trace {
    pub(crate) name: String,
    pub(crate) shape: [usize; 2],
    pub(crate) offset: usize,
}

/// The best ids of each position.
#[derive(Deserialize)]
pub(crate) struct Top {
    pub(crate) ids: Vec<Vec<u32>>,
    pub(crate) logits: Vec<Vec<f32>>,
    pub(crate) lse: Vec<f32>,
}

/// Where the golden files are: in the repository, or in the folder that a machine without it names.
fn folder(name: &str) -> PathBuf {
    let from_repository = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    // A test is a root of composition of its own.
    #[expect(
        clippy::disallowed_methods,
        reason = "a test chooses where its files are"
    )]
    let folder = std::env::var_os("CANDOR_GOLDEN").map_or_else(from_repository, PathBuf::from);
    folder.join(name)
}

/// Reads a description, and its numbers where it has some.
pub(crate) fn read(kind: &str, name: &str) -> (Golden, Vec<f32>) {
    let text = fs::read_to_string(folder(kind).join(format!("{name}.json")));
    let golden: Golden =
        serde_json::from_str(&text.expect("the golden file is there")).expect("its form is known");
    let numbers = golden.file.as_ref().map(|file| {
        let bytes = fs::read(folder(kind).join(file)).expect("the numbers are there");
        bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect()
    });
    (golden, numbers.unwrap_or_default())
}

/// A tiny model's file.
pub(crate) fn model(golden: &Golden) -> PathBuf {
    folder("models").join(&golden.model)
}

/// A real model's file, if this machine has it.
pub(crate) fn real_model(golden: &Golden) -> Option<PathBuf> {
    let from_target = || folder("../../target/models");
    // A test is a root of composition of its own.
    #[expect(
        clippy::disallowed_methods,
        reason = "a test chooses where its models are"
    )]
    let folder = std::env::var_os("CANDOR_TEST_MODELS").map_or_else(from_target, PathBuf::from);
    Some(folder.join(&golden.model)).filter(|path| path.is_file())
}
