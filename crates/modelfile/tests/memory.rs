//! Memory while a hostile file is read stays under the file's size and 64 MB.
//!
//! Each file is read in a process of its own, which alone can tell the memory that one file takes
//! from what the files before left behind. The file's bytes are in memory beforehand, as they are
//! when it is mapped; what is measured is what the reader makes of them.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot write its files has to stop"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use candor_modelfile::{apr, gguf, limits};
use candor_testkit::TinyModel;
use candor_testkit::apr::{Apr, AprTensor, Writer};
use candor_testkit::gguf::{Gguf, Tensor, Value};

mod support;
use support::figure_kb;

/// What a file may take beyond its own size.
const SPARE_KB: u64 = 64 << 10;

/// Tells the child which file is its own.
const FILE: &str = "CANDOR_HOSTILE_FILE";

/// Texts in lists that just keep the limit for lists: each takes 48 bytes more than in the file.
const SHORT_TEXTS: usize = limits::LIST_SPARE_BYTES_MAX as usize / 48 - 8;

/// The number of F32, whose blocks are single values.
const F32: u32 = 0;

fn texts(key: &str, count: usize) -> (String, Value) {
    (key.to_owned(), Value::Texts(vec![String::new(); count]))
}

fn model() -> Gguf {
    TinyModel::llama().layers(1).gguf()
}

/// As many tensors as there may be, with all dimensions and names that take memory.
fn many_tensors() -> Vec<Tensor> {
    let tensor = |number: u64| Tensor {
        name: format!("{number:064}"),
        dims: vec![1; limits::DIMENSIONS_MAX as usize],
        type_id: F32,
        bytes: vec![0; 4],
    };
    (0..limits::TENSORS_MAX - 100).map(tensor).collect()
}

fn many_entries() -> Vec<(String, Value)> {
    let entry = |number: u64| (format!("k{number}"), Value::Ints(vec![1]));
    (0..limits::METADATA_ENTRIES_MAX - 100).map(entry).collect()
}

fn gguf(change: impl FnOnce(&mut Gguf)) -> Vec<u8> {
    let mut file = model();
    change(&mut file);
    file.encode().bytes
}

fn apr(change: impl FnOnce(Apr) -> Apr) -> Vec<u8> {
    change(Apr::of(&model(), Writer::RawImport)).encode()
}

fn json_list(element: &str, count: usize) -> String {
    let mut list = String::from("[");
    for _ in 1..count {
        list.push_str(element);
        list.push(',');
    }
    list.push_str(element);
    list.push(']');
    list
}

type Make = fn() -> Vec<u8>;

/// Files whose description is cheap to write and dear to keep.
const HOSTILE: &[(&str, Make)] = &[
    ("texts.gguf", || {
        gguf(|file| file.metadata.push(texts("x", SHORT_TEXTS - 2_000)))
    }),
    ("numbers.gguf", || {
        let numbers = || Value::Ints(vec![-1; limits::ARRAY_ELEMS_MAX as usize]);
        gguf(|file| {
            file.metadata
                .extend((0..2).map(|i| (format!("x{i}"), numbers())));
        })
    }),
    ("entries.gguf", || {
        gguf(|file| file.metadata.extend(many_entries()))
    }),
    ("tensors.gguf", || {
        gguf(|file| file.tensors.extend(many_tensors()))
    }),
    ("everything.gguf", || {
        gguf(|file| {
            file.metadata.extend(many_entries());
            // The small lists of the entries count too.
            file.metadata.push(texts("x", SHORT_TEXTS - 20_000));
            file.tensors.extend(many_tensors());
        })
    }),
    ("long-text.gguf", || {
        let text = "é".repeat(limits::STRING_BYTES_MAX as usize / 2);
        gguf(|file| file.metadata.push(("x".into(), Value::Text(text))))
    }),
    ("vocabulary.gguf", || {
        gguf(|file| {
            let key = "tokenizer.ggml.tokens";
            file.metadata
                .retain(|(k, _)| !k.starts_with("tokenizer.ggml.t"));
            file.metadata.push(texts(key, SHORT_TEXTS - 2_000));
        })
    }),
    ("texts.apr", || {
        apr(|file| file.entry("x", &json_list("\"\"", 900_000)))
    }),
    ("numbers.apr", || {
        apr(|file| file.entry("x", &json_list("1", 6_000_000)))
    }),
    ("mixed.apr", || {
        let entries = (0..60_000).map(|i| (format!("k{i}"), "[1]".to_owned()));
        apr(|mut file| {
            file.metadata.extend(entries);
            file
        })
    }),
    ("nested.apr", || {
        let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
        apr(|file| file.entry("x", &format!("{open}{close}")))
    }),
    ("everything.apr", || {
        apr(|mut file| {
            let tensor = |number: u64| AprTensor {
                name: format!("{number:064}"),
                code: 0,
                dims: vec![1; limits::DIMENSIONS_MAX as usize],
                bytes: vec![0; 4],
            };
            file.tensors
                .extend((0..limits::TENSORS_MAX - 100).map(tensor));
            file.entry("x", &json_list("\"\"", 900_000))
        })
    }),
];

#[test]
fn a_hostile_file_takes_no_more_than_its_size_and_64_mb() {
    let folder = tempfile::tempdir().unwrap();
    for (name, make) in HOSTILE {
        let path = folder.path().join(name);
        fs::write(&path, make()).unwrap();
        let file_kb = fs::metadata(&path).unwrap().len() >> 10;
        let Some(growth_kb) = growth_in_a_child(&path) else {
            eprintln!("NOT RUN: memory of hostile files: no /proc on this system");
            return;
        };
        println!("{name}: {file_kb} kB in the file, {growth_kb} kB in memory");
        assert!(
            growth_kb <= file_kb + SPARE_KB,
            "{name} has {file_kb} kB and took {growth_kb} kB"
        );
        fs::remove_file(path).unwrap();
    }
}

/// Reads the file in another process; says how much more memory that had at its peak.
fn growth_in_a_child(path: &Path) -> Option<u64> {
    figure_kb("VmHWM:")?;
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_file_of_this_process_is_read", "--nocapture"])
        .env(FILE, path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{}: {said}", path.display());
    let growth = said.lines().find_map(|line| line.strip_prefix("growth "));
    Some(growth.expect("the child says it").trim().parse().unwrap())
}

/// Alone it looks at a good file; for the test above, at the file that it is given.
#[test]
fn the_file_of_this_process_is_read() {
    #[expect(clippy::disallowed_methods, reason = "a test is a root of composition")]
    let given = std::env::var_os(FILE).map(PathBuf::from);
    let folder = tempfile::tempdir().unwrap();
    let path = given.clone().unwrap_or_else(|| {
        let path = folder.path().join("good.gguf");
        TinyModel::llama().write(&path).unwrap();
        path
    });
    let bytes = fs::read(&path).unwrap();
    let is_apr = path.extension().is_some_and(|extension| extension == "apr");
    let parse = if is_apr { apr::parse } else { gguf::parse };
    let before = figure_kb("VmRSS:");
    let parsed = parse(&bytes, bytes.len() as u64);
    let peak = figure_kb("VmHWM:");
    assert!(given.is_some() || parsed.is_ok());
    match parsed {
        Ok(index) => println!("{} tensors", index.tensors.len()),
        Err(error) => println!("{error}"),
    }
    if let (Some(before), Some(peak)) = (before, peak) {
        println!("\ngrowth {}", peak.saturating_sub(before));
    }
}
