//! A link of the documents that names a file leads to one.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold nothing of ours.
const LEFT_OUT: [&str; 4] = ["target", "node_modules", ".git", "dist"];

/// The documents below a folder.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there").flatten();
    let mut found = Vec::new();
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let is_left_out = LEFT_OUT.iter().any(|left_out| name == *left_out);
        if path.is_dir() && !is_left_out {
            found.extend(documents(&path));
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
    found
}

/// What the links of a text lead to, without the place inside it.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let links = text.split("](").skip(1);
    let target = links.filter_map(|rest| rest.split(')').next());
    target.map(|target| target.split('#').next().unwrap_or_default())
}

#[test]
fn every_link_to_a_file_leads_to_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let documents = documents(root);
    assert!(documents.len() > 10, "{documents:?}");
    let mut dead = Vec::new();
    for document in documents {
        let text = fs::read_to_string(&document).expect("the document is text");
        let folder = document.parent().expect("it is in a folder");
        let is_file = |target: &&str| !target.is_empty() && !target.contains("://");
        for target in targets(&text).filter(is_file) {
            if !folder.join(target).exists() {
                dead.push(format!("{} names {target}", document.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}

#[test]
fn targets_are_told_from_the_words_around_them() {
    let text = "See [a](docs/a.md), [b](https://b.c/d) and [c](e.rs#L3); not (f).";
    let found: Vec<&str> = targets(text).collect();
    assert_eq!(found, ["docs/a.md", "https://b.c/d", "e.rs"]);
}
