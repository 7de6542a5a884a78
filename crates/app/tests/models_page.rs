//! The page `docs/models.md` is what the tables in code and the golden data make of it.
//!
//! `cargo xtask docs` writes it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use candor_arch::models;
use candor_modelfile::apr;
use serde_json::Value;

/// Set to anything, the page is written and not compared.
const WRITE: &str = "CANDOR_WRITE_DOCS";

/// Families of the real models, of which the golden data has no architecture.
const REAL: &[(&str, &str)] = &[
    ("gemma3-270m-q4_k_m", "gemma3"),
    ("qwen2.5-coder-0.5b-instruct-q4_k_m", "qwen2"),
    ("smollm2-135m-instruct-q4_1", "llama"),
];

const HEAD: &str = "\
# Models

What this version runs, and which values that it did not make itself it was held against. This
page is written by `cargo xtask docs` from the tables in code and from `tests/golden`; a test
fails when it is not what they say.

**CPU exact** keeps activations, keys and values in float32 and is what a file means: its logits
differ from those of the float32 run of ggml by less than 1e-3 (root mean square; 4e-3 for gemma3
and models with recurrent layers). **CPU fast** rounds activations to 8 bits, as ggml does, and
differs about as much as ggml's own run does. **GPU** reads prompts with 16-bit activations and
writes replies with 8-bit ones; at every load it is held against CPU exact before it writes
([f2-guard.md](f2-guard.md)). Its kernels were run on a simulated card only: no real one has been
tried yet.

An architecture, a storage type or a form of file that is not here is refused by name.
";

const TYPES_HEAD: &str = "
## Storage types

On the fast path, types with kernels of their own are repacked when a model is loaded and
multiplied in small whole numbers (the floating-point types: as they are). The others are
unpacked to float32 row by row while they are multiplied, as on the exact path: right, and several
times slower.

";

fn main_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What is known of each golden file with a name in a folder, by that name.
fn golden(folder: &str, end: &str) -> BTreeMap<String, Value> {
    let folder = main_folder().join("tests/golden").join(folder);
    let entries = fs::read_dir(&folder).expect("the golden data is there");
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.expect("the folder can be read").path();
        let name = path.file_name()?.to_str()?.strip_suffix(end)?.to_owned();
        let text = fs::read_to_string(&path).expect("the file can be read");
        Some((name, serde_json::from_str(&text).expect("it is JSON")))
    };
    entries.filter_map(read).collect()
}

fn texts(value: &Value) -> Vec<&str> {
    let list = value.as_array().expect("a list");
    list.iter()
        .map(|text| text.as_str().expect("a text"))
        .collect()
}

/// Whether a reader of an APR file has to load it.
fn loads(expected: &Value) -> bool {
    texts(&expected["expect"]) == ["load"]
}

/// The first word of a name: `s01` of `s01-llama-f32`.
fn number(name: &str) -> &str {
    name.split('-').next().unwrap_or(name)
}

fn page() -> String {
    let logits = golden("logits", ".json");
    let files = golden("apr", ".expected.json");
    let mut page = String::from(HEAD);
    page += "\n## Families\n\n";
    page += "| in the file | GGUF | APR | CPU exact | CPU fast | GPU | checked against |\n";
    page += "| --- | --- | --- | --- | --- | --- | --- |\n";
    for architecture in models::ALL {
        let names = architecture.names;
        let is_ours = |name: &Value| names.contains(&name.as_str().unwrap_or_default());
        let mut checked: Vec<String> = logits
            .iter()
            .filter(|(_, golden)| is_ours(&golden["arch"]))
            .map(|(name, _)| name.clone())
            .collect();
        assert!(!checked.is_empty(), "{names:?} is held against nothing");
        let real = REAL.iter().filter(|(_, family)| names.contains(family));
        checked.extend(real.map(|(name, _)| (*name).to_owned()));
        let of_apr = files.iter().filter(|(_, file)| {
            is_ours(&file["truth"]["architecture"]) && (loads(file) || file["if_told"].is_object())
        });
        let of_apr: Vec<&str> = of_apr.map(|(name, _)| number(name)).collect();
        let has_apr = names.iter().any(|name| apr::FAMILIES.contains(name));
        assert!(has_apr || of_apr.is_empty(), "{names:?}");
        if !of_apr.is_empty() {
            checked.push(format!("APR {}", of_apr.join(", ")));
        }
        let apr = if has_apr { "yes" } else { "no" };
        let (names, checked) = (names.join(", "), checked.join("; "));
        writeln!(
            page,
            "| {names} | yes | {apr} | yes | yes | yes | {checked} |"
        )
        .expect("a text grows");
    }
    page += "
APR files of other families are refused: they do not state what such a model needs. What is made of
which APR file stands in [formats/apr.md](formats/apr.md).
";
    page += &storage_types(&logits);
    page += &apr_storage(&files);
    page
}

fn storage_types(logits: &BTreeMap<String, Value>) -> String {
    let fast: BTreeSet<u32> = candor_cpu::packed_types().map(|quant| quant.id).collect();
    let index = &golden("dequant", ".json")["index"];
    let dequantised = index["types"].as_array().expect("a list");
    let mut page = String::from(TYPES_HEAD);
    page += "| type | GGUF | APR | CPU exact | CPU fast | GPU | checked against |\n";
    page += "| --- | --- | --- | --- | --- | --- | --- |\n";
    for quant in candor_quant::TYPES {
        let mut checked = Vec::new();
        if dequantised.iter().any(|known| known["type"] == quant.name) {
            checked.push(String::from("values"));
        }
        let models = logits
            .iter()
            .filter(|(_, golden)| texts(&golden["types"]).contains(&quant.name));
        let models: Vec<&str> = models.map(|(name, _)| number(name)).collect();
        if !models.is_empty() {
            checked.push(format!("logits of {}", models.join(", ")));
        }
        assert!(
            !checked.is_empty(),
            "{} is held against nothing",
            quant.name
        );
        let kernels = if fast.contains(&quant.id) {
            "kernels"
        } else {
            "unpacked"
        };
        let module = format!("linear_{}.sm75.ptx", quant.name.to_ascii_lowercase());
        let has_kernels = main_folder().join("kernels/ptx").join(module).exists();
        let gpu = if has_kernels { "yes" } else { "no" };
        let apr = if apr::TYPES.iter().any(|(_, name)| *name == quant.name) {
            "yes"
        } else {
            "no"
        };
        writeln!(
            page,
            "| {} | type {} | {apr} | yes | {kernels} | {gpu} | {} |",
            quant.name,
            quant.id,
            checked.join("; ")
        )
        .expect("a text grows");
    }
    page
}

fn apr_storage(files: &BTreeMap<String, Value>) -> String {
    let mut page = String::from(
        "
APR files have forms of their own, which are laid out anew in memory when a model is loaded:

| form | becomes | checked against |
| --- | --- | --- |
",
    );
    for (form, becomes) in apr::UNPACKED {
        let holds = |file: &Value| {
            let tensors = file["tensors"].as_array().expect("a list");
            let storage = |tensor: &Value| tensor["storage"].as_str() == Some(*form);
            file["logits_file"].is_string() && tensors.iter().any(storage)
        };
        let found = files.iter().filter(|(_, file)| holds(file));
        let found: Vec<&str> = found.map(|(name, _)| number(name)).collect();
        let checked = match found[..] {
            [] => String::from("files that the tests write"),
            _ => format!("logits of {}", found.join(", ")),
        };
        writeln!(page, "| {form} | {becomes} | {checked} |").expect("a text grows");
    }
    page
}

#[test]
fn the_page_of_models_is_what_the_tables_say() {
    let path = main_folder().join("docs/models.md");
    let page = page();
    #[expect(
        clippy::disallowed_methods,
        reason = "the command that writes the page asks for it so"
    )]
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, &page).expect("the page can be written");
        return;
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == page,
        "docs/models.md is not what the tables say; write it again with `cargo xtask docs`"
    );
}

#[test]
fn every_real_model_of_the_golden_data_has_a_family() {
    let found: Vec<String> = golden("real", ".json").into_keys().collect();
    let known: Vec<&str> = REAL.iter().map(|(name, _)| *name).collect();
    assert_eq!(found, known);
}
