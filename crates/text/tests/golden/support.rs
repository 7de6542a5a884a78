//! Where the tests' data lies.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use candor_modelfile::ModelFile;
use candor_text::Tokenizer;
use serde_json::Value;

/// The workspace's golden data.
pub(crate) fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

/// The JSON files of a golden folder, by name.
pub(crate) fn golden_files(folder: &str) -> Vec<(String, Value)> {
    let mut files: Vec<_> = fs::read_dir(golden().join(folder))
        .expect("the golden folder is part of the sources")
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (
                name,
                serde_json::from_slice(&fs::read(&path).unwrap()).unwrap(),
            )
        })
        .collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    files
}

/// Opens a model by file name: from the golden models, else from the folder of real models. A
/// missing one is reported as not run.
pub(crate) fn open_model(file_name: &str, purpose: &str) -> Option<ModelFile> {
    #[allow(
        clippy::disallowed_methods,
        reason = "a test is a root: it finds its own data"
    )]
    let real = match std::env::var_os("CANDOR_TEST_MODELS") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/models"),
    };
    let places = [golden().join("models"), real];
    let path = places
        .iter()
        .map(|folder| folder.join(file_name))
        .find(|path| path.exists());
    if path.is_none() {
        // Past the test harness, which would keep it to itself, and in one piece.
        let line = format!("NOT RUN: {purpose} of {file_name}: the model is not here\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
    path.map(|path| ModelFile::open(&path).unwrap())
}

/// The tokenizer of a model that has one.
pub(crate) fn tokenizer(model: &ModelFile) -> Tokenizer {
    let spec = model
        .index()
        .tokenizer
        .as_ref()
        .expect("the model has a vocabulary");
    Tokenizer::from_spec(spec).unwrap()
}

/// A list of ids in golden data.
pub(crate) fn ids(value: &Value) -> Vec<u32> {
    let list = value.as_array().expect("a list of ids");
    list.iter()
        .map(|id| u32::try_from(id.as_u64().unwrap()).unwrap())
        .collect()
}
