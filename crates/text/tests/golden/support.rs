//! Where the tests' data lies.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use candor_modelfile::{Index, ModelFile, gguf};
use candor_text::{ControlSpellings, Tokenizer};
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

/// Where the real models are; vocabularies and templates without weights lie in folders in it.
fn real() -> PathBuf {
    #[allow(
        clippy::disallowed_methods,
        reason = "a test is a root: it finds its own data"
    )]
    match std::env::var_os("CANDOR_TEST_MODELS") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/models"),
    }
}

/// Finds a file by its name. A missing one is reported as not run.
fn find(file_name: &str, purpose: &str) -> Option<PathBuf> {
    let real = real();
    let places = [
        golden().join("models"),
        real.join("vocabs"),
        real.join("templates"),
        real,
    ];
    let path = places
        .iter()
        .map(|folder| folder.join(file_name))
        .find(|path| path.exists());
    if path.is_none() {
        // Past the test harness, which would keep it to itself, and in one piece.
        let line = format!("NOT RUN: {purpose} of {file_name}: the file is not here\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
    path
}

/// A model, or as much of it as its vocabulary needs.
pub(crate) enum Model {
    Whole(Box<ModelFile>),
    /// Only the beginning of the file is here, with its whole description.
    Head(Box<Index>),
}

/// What the beginning of a large model is called, of which no test needs the rest.
const HEAD: &str = "part01";

/// A length that any tensor ends before: how long the file is is not known from its beginning.
const ANY_LEN: u64 = u64::MAX >> 1;

impl Model {
    pub(crate) fn index(&self) -> &Index {
        match self {
            Self::Whole(model) => model.index(),
            Self::Head(index) => index,
        }
    }
}

/// Opens a model by file name: from the golden models, else from the folder of real models.
pub(crate) fn open_model(file_name: &str, purpose: &str) -> Option<Model> {
    let head = real().join(format!("{file_name}.{HEAD}"));
    if head.exists() {
        let bytes = fs::read(head).unwrap();
        let index = gguf::parse(&bytes, ANY_LEN).unwrap();
        return Some(Model::Head(Box::new(index)));
    }
    let path = find(file_name, purpose)?;
    Some(Model::Whole(Box::new(ModelFile::open(&path).unwrap())))
}

/// A template: inside a model, or a file of its own.
pub(crate) enum Template {
    InModel(Model),
    Alone(String),
}

/// Finds a template by the name of the file that holds it.
pub(crate) fn template(file_name: &str) -> Option<Template> {
    let purpose = "chat template";
    if !file_name.ends_with(".jinja") {
        return open_model(file_name, purpose).map(Template::InModel);
    }
    let path = find(file_name, purpose)?;
    Some(Template::Alone(fs::read_to_string(path).unwrap()))
}

impl Template {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::InModel(model) => {
                let template = model.index().chat_template.as_deref();
                template.expect("the model has a template")
            }
            Self::Alone(text) => text,
        }
    }

    /// The vocabulary, where there is one.
    pub(crate) fn tokenizer(&self) -> Option<Tokenizer> {
        match self {
            Self::InModel(model) => Some(tokenizer(model)),
            Self::Alone(_) => None,
        }
    }

    /// What must not be taken for a control token in a message.
    pub(crate) fn controls(&self) -> ControlSpellings {
        self.tokenizer()
            .map(|tokenizer| tokenizer.controls().clone())
            .unwrap_or_default()
    }
}

/// The tokenizer of a model that has one.
pub(crate) fn tokenizer(model: &Model) -> Tokenizer {
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
