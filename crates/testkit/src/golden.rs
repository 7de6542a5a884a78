//! The golden data: its models, and its APR files put together from what the repository keeps of
//! them.
//!
//! Their tensors follow from the GGUF files that they were made of; kept is what stands in front of
//! them (`.head`). The whole is held against the hash of the real file, so a test that opens it
//! works on the very bytes that the original tool wrote.

use std::fs;
use std::path::{Path, PathBuf};

use candor_modelfile::{ModelFile, TensorInfo};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::apr::{Storage, crc32, pack, pad, separate_halves_of, values_of};
use crate::gguf::{Gguf, Tensor, Value as Entry};

/// Where the golden APR files are described.
pub fn apr_folder() -> PathBuf {
    golden("apr")
}

/// The names of all golden APR files, in order.
///
/// # Panics
/// If the golden data is not there.
pub fn apr_names() -> Vec<String> {
    let entries = fs::read_dir(apr_folder()).expect("the golden data is there");
    let names = entries.filter_map(|entry| {
        let name = entry.expect("the folder can be read").file_name();
        Some(name.to_str()?.strip_suffix(".head")?.to_owned())
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// What is known of a golden APR file: the fields of `expected.json`.
///
/// # Panics
/// If there is no such file.
pub fn apr_expected(name: &str) -> Value {
    let text = fs::read_to_string(apr_folder().join(format!("{name}.expected.json")));
    serde_json::from_str(&text.expect("the golden file is there")).expect("its form is known")
}

/// Writes a golden APR file into a folder, with the files that belong beside it.
///
/// # Panics
/// If what is put together is not the real file.
pub fn write_apr(name: &str, folder: &Path) -> PathBuf {
    let expected = apr_expected(name);
    let bytes = whole(name, &expected);
    let hash: String = Sha256::digest(&bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(
        hash,
        text(&expected["sha256"]),
        "{name} is not the real file"
    );
    let path = folder.join(format!("{name}.apr"));
    fs::write(&path, bytes).expect("the folder can be written");
    for end in ["tokenizer.json", "tokenizer_config.json"] {
        let beside = format!("{name}.{end}");
        if apr_folder().join(&beside).exists() {
            fs::copy(apr_folder().join(&beside), folder.join(&beside))
                .expect("the folder can be written");
        }
    }
    path
}

/// A golden GGUF file in the form that writers take; without its vocabulary.
///
/// # Panics
/// If there is no such file.
pub fn gguf(name: &str) -> Gguf {
    use candor_modelfile::Value;
    let path = golden("models").join(format!("{name}.gguf"));
    let file = ModelFile::open(&path).expect("the golden model is there");
    let value = |value: &Value| match value {
        Value::Integer(n) => u32::try_from(*n).ok().map(Entry::U32),
        Value::Float(n) => Some(Entry::F32(*n as f32)),
        Value::Text(text) => Some(Entry::Text(text.clone())),
        _ => None,
    };
    let entries = file.index().metadata.iter();
    let entries = entries.filter_map(|(key, found)| Some((key.to_owned(), value(found)?)));
    let tensors = file
        .index()
        .tensors
        .iter()
        .map(|found| tensor(&file, found));
    Gguf {
        metadata: entries.collect(),
        tensors: tensors.collect(),
        ..Gguf::default()
    }
}

fn tensor(file: &ModelFile, found: &TensorInfo) -> Tensor {
    Tensor {
        name: found.name.clone(),
        dims: found.dims.iter().map(|dim| *dim as u64).collect(),
        type_id: found.quant.id,
        bytes: file.bytes(found).to_vec(),
    }
}

fn golden(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/golden")
        .join(folder)
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn number(value: &Value) -> usize {
    value.as_u64().expect("a number") as usize
}

/// Head, tensors each in its place, and the checksum if there is one.
fn whole(name: &str, expected: &Value) -> Vec<u8> {
    let head = fs::read(apr_folder().join(format!("{name}.head")));
    let mut bytes = head.expect("the golden data is there");
    let data_at = bytes.len();
    assert_eq!(data_at, number(&expected["header"]["data_offset"]));
    let source = Source::of(expected);
    for tensor in expected["tensors"].as_array().expect("a list") {
        let (offset, size) = (number(&tensor["offset"]), number(&tensor["size"]));
        let found = source.derive(tensor, size);
        assert_eq!(found.len(), size, "{name} {}", tensor["name"]);
        let end = data_at + offset + size;
        bytes.resize(bytes.len().max(end), 0);
        bytes[end - size..end].copy_from_slice(&found);
    }
    pad(&mut bytes);
    if expected["header"]["footer"] == "right" {
        let checksum = crc32(bytes.iter());
        bytes.extend(checksum.to_le_bytes());
    }
    bytes
}

/// The GGUF file that an APR file was made of.
struct Source {
    file: ModelFile,
    /// Heads of Q and of K, if the rows are in Hugging Face's order.
    halves: Option<[usize; 2]>,
    /// What `lm_head.weight` is: the output matrix, or the copy of the embeddings that a writer
    /// made where there is none, or where it did not find it.
    head: &'static str,
}

impl Source {
    fn of(expected: &Value) -> Self {
        let path = golden("models").join(text(&expected["source"]["gguf"]));
        let truth = &expected["truth"];
        let is_split =
            truth["architecture"] == "llama" && expected["read_as"]["rope_style"] == "halves";
        let file = ModelFile::open(&path).expect("the golden model is there");
        let tensors = expected["tensors"].as_array().expect("a list");
        let is_beside = tensors
            .iter()
            .any(|tensor| tensor["name"] == "output.weight");
        let head = match file.index().tensor("output.weight") {
            Some(_) if !is_beside => "output.weight",
            _ => "token_embd.weight",
        };
        Self {
            file,
            head,
            halves: is_split.then(|| ["num_heads", "num_kv_heads"].map(|key| number(&truth[key]))),
        }
    }

    /// The bytes of a tensor: the source's, or those of its values in another form.
    fn derive(&self, wanted: &Value, size: usize) -> Vec<u8> {
        let name = wanted["gguf_name"]
            .as_str()
            .unwrap_or(text(&wanted["name"]));
        let tensor = self.tensor(name);
        let storage = text(&wanted["storage"]).trim_start_matches("GGML ");
        let storage = storage.split([' ', ',']).next().unwrap_or(storage);
        let cols = *tensor.dims.last().expect("a shape") as usize;
        let stored = candor_quant::by_id(tensor.type_id).expect("a type of the table");
        let anew = |form: Storage| pack(&values_of(&tensor), cols, form).1;
        let bytes = match (storage, text(&wanted["storage"])) {
            (word, _) if word == stored.name && tensor.bytes.len() == size => tensor.bytes.clone(),
            ("F32", _) => anew(Storage::F32),
            ("F16", _) => anew(Storage::F16),
            (_, "APR Q8") => anew(Storage::Q8),
            (_, "APR Q4") => anew(Storage::Q4),
            ("Q4_K", _) => anew(Storage::PaddedQ4K),
            (other, _) => panic!("no rule gives {other}"),
        };
        let heads = self.halves.and_then(|[q, k]| match () {
            () if name.contains(".attn_q.") => Some(q),
            () if name.contains(".attn_k.") => Some(k),
            () => None,
        });
        match heads {
            Some(heads) => separate_halves_of(&bytes, heads, tensor.dims[0] as usize),
            None => bytes,
        }
    }

    fn tensor(&self, name: &str) -> Tensor {
        let index = self.file.index();
        let found = match name {
            "lm_head.weight" => index.tensor(self.head),
            other => index.tensor(other),
        };
        let found = found.unwrap_or_else(|| panic!("the source has no {name}"));
        tensor(&self.file, found)
    }
}
