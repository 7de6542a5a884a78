//! Keeps the house in order: who may depend on whom, how long a file may be, where unsafe code
//! may stand, and what each crate must say of itself. The length of functions, the number of
//! parameters and the printing of text are kept by clippy (`clippy.toml`); here it is only
//! checked that every package listens to it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Which of our packages each may use. A crate only ever looks at what stands above it.
const EDGES: &[(&str, &[&str])] = &[
    ("candor-quant", &[]),
    ("candor-modelfile", &["candor-quant"]),
    ("candor-text", &["candor-modelfile"]),
    ("candor-arch", &["candor-modelfile", "candor-quant"]),
    (
        "candor-backend",
        &["candor-arch", "candor-modelfile", "candor-quant"],
    ),
    (
        "candor-cpu",
        &[
            "candor-backend",
            "candor-arch",
            "candor-modelfile",
            "candor-quant",
        ],
    ),
    (
        "candor-cuda",
        &[
            "candor-backend",
            "candor-arch",
            "candor-modelfile",
            "candor-quant",
        ],
    ),
    ("candor-engine", BELOW_ENGINE),
    ("candor-app", BELOW_APP),
    ("candor-server", &["candor-app"]),
    ("candor-simcuda", &[]),
    ("candor-testkit", BELOW_APP),
    ("candor", &["candor-app", "candor-server"]),
    ("candor-desktop", &["candor-app", "candor-server"]),
    ("candor-window-tests", &["candor-testkit"]),
    ("xtask", &["candor-testkit"]),
];

const BELOW_ENGINE: &[&str] = &[
    "candor-backend",
    "candor-text",
    "candor-arch",
    "candor-modelfile",
    "candor-quant",
];

const BELOW_APP: &[&str] = &[
    "candor-engine",
    "candor-cpu",
    "candor-cuda",
    "candor-backend",
    "candor-text",
    "candor-arch",
    "candor-modelfile",
    "candor-quant",
];

/// What the tests of any package may use.
const FOR_TESTS: &[&str] = &["candor-simcuda", "candor-testkit"];

/// Packages of others that only these of ours may know.
const CONFINED: &[(&str, &str)] = &[
    ("tauri", "candor-desktop"),
    ("memmap2", "candor-modelfile"),
    ("libloading", "candor-cuda"),
    ("cudarc", "candor-cuda"),
    ("cudarc", "candor-simcuda"),
    ("tokenizers", "candor-text"),
    ("minijinja", "candor-text"),
    ("rusqlite", "candor-app"),
    ("clap", "candor"),
    ("llguidance", "candor-engine"),
];

/// Where unsafe code may stand.
const UNSAFE_ALLOWED: &[&str] = &[
    "crates/modelfile/src/map.rs",
    "crates/cpu/src/simd",
    "crates/cpu/src/threads",
    "crates/cuda/src",
    "crates/simcuda",
    "src-tauri/src/main.rs",
];

/// Packages in which some file may hold unsafe code; every other one forbids it.
const UNSAFE_IN_PARTS: &[&str] = &[
    "candor-modelfile",
    "candor-cpu",
    "candor-cuda",
    "candor-desktop",
    "candor-simcuda",
];

/// The wall; the aim is 500.
const FILE_LINES_MAX: usize = 800;

/// Written by a program, not by people.
const GENERATED: &[&str] = &[
    "crates/cuda/src/ptx/table.rs",
    "ui/src/platform/bindings.ts",
];

#[test]
fn every_package_depends_only_on_what_stands_above_it() {
    let mut faults = Vec::new();
    for package in packages() {
        let Some((_, allowed)) = EDGES.iter().find(|(name, _)| *name == package.name) else {
            faults.push(format!("{} is not in the table", package.name));
            continue;
        };
        for (kind, other) in &package.dependencies {
            let ours = EDGES.iter().any(|(name, _)| name == other);
            let for_tests = kind == "dev";
            let fits = allowed.contains(&other.as_str())
                || (for_tests
                    && (FOR_TESTS.contains(&other.as_str())
                        || BELOW_APP.contains(&other.as_str())));
            if ours && !fits {
                faults.push(format!("{} must not use {other} ({kind})", package.name));
            }
            let mut homes = CONFINED.iter().filter(|(name, _)| name == other).peekable();
            if homes.peek().is_some() && !homes.any(|(_, home)| *home == package.name) {
                faults.push(format!("{} must not use {other}", package.name));
            }
        }
    }
    check("dependencies", &faults);
}

#[test]
fn concrete_backends_are_named_in_one_place() {
    let mut faults = Vec::new();
    for (path, text) in sources("crates/app/src", &["rs"]) {
        let names = text.contains("candor_cpu::") || text.contains("candor_cuda::");
        if names && !path.ends_with("compose.rs") {
            faults.push(format!("{path} names a concrete backend"));
        }
    }
    check("backends", &faults);
}

#[test]
fn no_file_is_too_long() {
    let mut faults = Vec::new();
    for folder in ["crates", "src-tauri", "xtask", "tests", "ui/src"] {
        for (path, text) in sources(folder, &["rs", "ts", "svelte", "css"]) {
            let lines = text.lines().count();
            if lines > FILE_LINES_MAX && !GENERATED.contains(&path.as_str()) {
                faults.push(format!(
                    "{path} has {lines} lines, at most {FILE_LINES_MAX}"
                ));
            }
        }
    }
    check("length of files", &faults);
}

#[test]
fn every_package_listens_to_the_shared_lints() {
    let mut faults = Vec::new();
    for package in packages() {
        let manifest = fs::read_to_string(&package.manifest).expect("a manifest");
        if !manifest.contains("[lints]\nworkspace = true") {
            faults.push(format!(
                "{} does not take the workspace's lints",
                package.name
            ));
        }
        if !package.publish_is_off {
            faults.push(format!("{} could be published", package.name));
        }
    }
    let limits = read("clippy.toml");
    for limit in [
        "too-many-lines-threshold = 70",
        "too-many-arguments-threshold = 6",
    ] {
        if !limits.lines().any(|line| line == limit) {
            faults.push(format!("clippy.toml does not say {limit}"));
        }
    }
    check("lints", &faults);
}

#[test]
fn unsafe_code_stands_only_where_it_is_allowed() {
    let mut faults = Vec::new();
    for folder in ["crates", "src-tauri", "xtask", "tests"] {
        for (path, text) in sources(folder, &["rs"]) {
            let allowed = UNSAFE_ALLOWED.iter().any(|place| path.starts_with(place));
            if !allowed && text.lines().any(has_unsafe) {
                faults.push(format!("{path} holds unsafe code"));
            }
        }
    }
    for package in packages() {
        let text = fs::read_to_string(&package.root).expect("a crate's first file");
        let forbids = text.lines().any(|line| line == "#![forbid(unsafe_code)]");
        if !forbids && !UNSAFE_IN_PARTS.contains(&package.name.as_str()) {
            faults.push(format!("{} does not forbid unsafe code", package.name));
        }
    }
    check("unsafe code", &faults);
}

/// The word as code, not in a comment, a string or the name of a lint.
fn has_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let code = code.replace("\\\"", "");
    let code = code.split('"').step_by(2).collect::<String>();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.split(|c| !is_word(c)).any(|word| word == "unsafe")
}

#[test]
fn every_crate_says_what_it_is_for() {
    let mut faults = Vec::new();
    for package in packages() {
        let text = fs::read_to_string(&package.root).expect("a crate's first file");
        let head: String = text
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .collect();
        let lower = head.to_lowercase();
        for (what, found) in [
            ("a purpose of some length", head.len() > 120),
            (
                "what it deliberately does not do",
                lower.contains("not ") || lower.contains("no "),
            ),
            ("where to start reading", lower.contains("start")),
        ] {
            if !found {
                faults.push(format!(
                    "{}: its first lines do not say {what}",
                    package.name
                ));
            }
        }
    }
    check("purpose", &faults);
}

#[test]
fn every_architecture_and_storage_type_is_in_its_table() {
    let mut faults = Vec::new();
    let models = sources("crates/arch/src/models", &["rs"]);
    let table = read("crates/arch/src/models/mod.rs");
    let types = sources("crates/quant/src/types", &["rs"]);
    let list = read("crates/quant/src/lib.rs");
    assert!(
        !models.is_empty() && !types.is_empty(),
        "the folders have moved"
    );
    for (path, text) in models.iter().filter(|(path, _)| !path.ends_with("mod.rs")) {
        let stem = stem(path);
        if text.contains(": Architecture =") && !table.contains(&format!("&{stem}::")) {
            faults.push(format!("{path} is not in the table of architectures"));
        }
    }
    for (path, text) in types.iter().filter(|(path, _)| !path.ends_with("mod.rs")) {
        let stem = stem(path);
        if text.contains("const TYPE") && !list.contains(&format!("types::{stem}::")) {
            faults.push(format!("{path} is not in the table of storage types"));
        }
    }
    check("tables", &faults);
}

/// Cheap, so that plain `cargo test` notices a type that was added or removed. Whether every field
/// agrees is compared by `cargo xtask bindings --check`.
#[test]
fn the_window_has_a_twin_of_every_wire_type() {
    let wire: String = sources("crates/app/src/wire", &["rs"])
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    let twins = read("ui/src/platform/bindings.ts");
    let names = |text: &str, starts: &[&str]| -> BTreeSet<String> {
        let rest = |line: &str| {
            let rest = starts.iter().find_map(|start| line.strip_prefix(start))?;
            Some(
                rest.split(|c: char| !c.is_alphanumeric())
                    .next()?
                    .to_owned(),
            )
        };
        text.lines().filter_map(rest).collect()
    };
    let ours = names(&wire, &["pub struct ", "pub enum "]);
    let theirs = names(&twins, &["export type "]);
    assert!(!ours.is_empty(), "the wire types have moved");
    let missing = ours
        .difference(&theirs)
        .map(|name| format!("{name} has no twin"));
    let left = theirs
        .difference(&ours)
        .map(|name| format!("{name} is a twin of nothing"));
    check("bindings", &missing.chain(left).collect::<Vec<_>>());
}

#[test]
fn only_the_platform_folder_knows_tauri() {
    let mut faults = Vec::new();
    for (path, text) in sources("ui/src", &["ts", "svelte"]) {
        let platform = path.starts_with("ui/src/platform/");
        if !platform && (text.contains("@tauri-apps") || text.contains("__TAURI")) {
            faults.push(format!("{path} knows Tauri"));
        }
    }
    check("Tauri", &faults);
}

#[test]
fn no_ticket_numbers_stand_in_the_sources() {
    let mut faults = Vec::new();
    for folder in ["crates", "src-tauri/src", "xtask/src", "ui/src"] {
        for (path, text) in sources(folder, &["rs", "ts", "svelte"]) {
            // Regression tests may name what they guard against.
            if path.contains("/tests") || path.ends_with(".test.ts") {
                continue;
            }
            for (number, line) in text
                .lines()
                .enumerate()
                .filter(|(_, line)| names_ticket(line))
            {
                faults.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    check("ticket numbers", &faults);
}

/// "#12" in a comment, "issue 12", "ticket 12".
fn names_ticket(line: &str) -> bool {
    let comment = line.split_once("//").map_or("", |(_, comment)| comment);
    let words: Vec<&str> = comment.split_whitespace().collect();
    let is_number = |word: &str| {
        let digits = word.trim_end_matches(|c: char| c.is_ascii_punctuation());
        !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
    };
    let hash = |word: &&str| {
        let word = word.trim_start_matches('(');
        word.strip_prefix('#').is_some_and(is_number)
    };
    let pair = |pair: &[&str]| {
        let before = pair[0].to_lowercase();
        (before == "issue" || before == "ticket") && is_number(pair[1].trim_start_matches('#'))
    };
    words.iter().any(hash) || words.windows(2).any(pair)
}

#[test]
fn the_words_that_are_looked_for_are_told_from_their_like() {
    for (line, expected) in [
        ("unsafe { x() }", true),
        ("    let y = unsafe{ x };", true),
        ("// unsafe is not allowed", false),
        ("#![forbid(unsafe_code)]", false),
        ("let text = \"unsafe\";", false),
        ("unsafe fn x() {}", true),
    ] {
        assert_eq!(has_unsafe(line), expected, "{line}");
    }
    for (line, expected) in [
        ("// see #12", true),
        ("// (#12)", true),
        ("/// the issue 7.", true),
        ("// ticket #7", true),
        ("let color = \"#123456\";", false),
        ("// the issue is 7", false),
        ("#[test]", false),
        ("// #define", false),
    ] {
        assert_eq!(names_ticket(line), expected, "{line}");
    }
}

#[test]
fn every_licence_is_one_of_those_in_deny_toml() {
    // Without the sources of the window's crates cargo cannot tell their licences, and a test
    // does not use the network.
    let platform = "x86_64-unknown-linux-gnu";
    let Some(metadata) = metadata(&["--offline", "--filter-platform", platform]) else {
        eprintln!("NOT RUN: licences of dependencies: cargo fetch has not been run");
        return;
    };
    let deny = read("deny.toml");
    let list = deny
        .split("allow = [")
        .nth(1)
        .and_then(|rest| rest.split(']').next());
    let allowed: BTreeSet<&str> = list
        .expect("a list of licences")
        .split('"')
        .skip(1)
        .step_by(2)
        .collect();
    let mut faults = Vec::new();
    let packages = metadata["packages"].as_array().expect("packages");
    for package in packages {
        let name = package["name"].as_str().unwrap_or("?");
        let licence = package["license"].as_str().unwrap_or("none");
        if !is_allowed(licence, &allowed) {
            faults.push(format!("{name}: {licence}"));
        }
    }
    assert!(
        packages.len() > EDGES.len(),
        "cargo names no package of others"
    );
    check("licences", &faults);
}

/// Whether it can be had under allowed licences only.
fn is_allowed(licence: &str, allowed: &BTreeSet<&str>) -> bool {
    let flat = licence.replace(['(', ')'], " ").replace('/', " OR ");
    // Parentheses occur only around alternatives, so OR binds closer than AND.
    flat.split(" AND ").all(|group| {
        group
            .split(" OR ")
            .any(|name| allowed.contains(name.trim()))
    })
}

/// One of our own packages.
struct Package {
    name: String,
    manifest: PathBuf,
    /// (normal, dev or build; name)
    dependencies: Vec<(String, String)>,
    /// The first file of its library, or of its program where it has none.
    root: PathBuf,
    publish_is_off: bool,
}

fn packages() -> Vec<Package> {
    let metadata = metadata(&["--no-deps", "--offline"]).expect("cargo metadata");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    list(&metadata["packages"])
        .iter()
        .map(|package| Package {
            name: text(&package["name"]),
            manifest: text(&package["manifest_path"]).into(),
            dependencies: list(&package["dependencies"])
                .iter()
                .map(|other| {
                    let kind = other["kind"].as_str().unwrap_or("normal").to_owned();
                    (kind, text(&other["name"]))
                })
                .collect(),
            root: root_of(&list(&package["targets"])),
            publish_is_off: package["publish"].as_array().is_some_and(Vec::is_empty),
        })
        .collect()
}

fn root_of(targets: &[Value]) -> PathBuf {
    let of_kind = |wanted: &str| {
        targets.iter().find(|target| {
            target["kind"]
                .as_array()
                .is_some_and(|kinds| kinds.iter().any(|kind| kind == wanted))
        })
    };
    let target = of_kind("lib")
        .or_else(|| of_kind("bin"))
        .expect("a library or a program");
    target["src_path"].as_str().expect("a path").into()
}

fn metadata(words: &[&str]) -> Option<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1"])
        .args(words)
        .current_dir(root())
        .output()
        .expect("cargo");
    output
        .status
        .success()
        .then(|| serde_json::from_slice(&output.stdout).expect("JSON"))
}

/// Every file with one of these endings below a folder: its path from the root, and its text.
fn sources(folder: &str, endings: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(next) = open.pop() {
        let entries = fs::read_dir(&next).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                if name != "target" && name != "node_modules" && name != "gen" {
                    open.push(path);
                }
            } else if endings
                .iter()
                .any(|ending| name.ends_with(&format!(".{ending}")))
            {
                let shown = path.strip_prefix(root()).expect("below the root").display();
                let text = fs::read_to_string(&path).expect("a text file");
                found.push((shown.to_string(), text));
            }
        }
    }
    found.sort();
    found
}

fn stem(path: &str) -> String {
    Path::new(path)
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[track_caller]
fn check(what: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{what}:\n  {}", faults.join("\n  "));
}
