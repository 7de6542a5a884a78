//! Is what the program carries made of the kernels that lie beside it?

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{MODULES, Module, text};

/// What `cargo xtask kernels` writes down of its work.
#[derive(Deserialize)]
struct Manifest {
    compiler: String,
    headers: String,
    flags: Vec<String>,
    sources: BTreeMap<String, String>,
    modules: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    input: String,
    defines: Vec<String>,
    sources: BTreeSet<String>,
    ptx: BTreeMap<String, String>,
}

/// What a kernel needs, from the table of the assembler.
#[derive(Deserialize)]
struct Needs {
    threads: u32,
    shared: u32,
    sm_75: u32,
}

const AGAIN: &str = "run cargo xtask kernels";

fn kernels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels")
}

fn parsed<T: serde::de::DeserializeOwned>(file: &str) -> T {
    let text = fs::read_to_string(kernels().join(file)).unwrap();
    toml::from_str(&text).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}

fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The names of the files of a folder that end so.
fn names(folder: &str, endings: &[&str]) -> BTreeSet<String> {
    let entries = fs::read_dir(kernels().join(folder)).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| endings.iter().any(|ending| name.ends_with(ending)))
        .collect()
}

#[test]
fn the_manifest_lists_every_source_as_it_is() {
    let manifest: Manifest = parsed("ptx/manifest.toml");
    let mut found = BTreeMap::new();
    for folder in ["ops", "include", "include/quant"] {
        for name in names(folder, &[".cu", ".cuh"]) {
            let path = format!("{folder}/{name}");
            let bytes = fs::read(kernels().join(&path)).unwrap();
            found.insert(path, hash(&bytes));
        }
    }
    assert_eq!(manifest.sources, found, "sources changed: {AGAIN}");
}

#[test]
fn every_module_is_made_of_the_sources_as_they_are() {
    let manifest: Manifest = parsed("ptx/manifest.toml");
    let mut stale = Vec::new();
    for (name, entry) in &manifest.modules {
        let stem = entry.sources.iter().find(|path| {
            let stem = path
                .strip_prefix("ops/")
                .and_then(|path| path.strip_suffix(".cu"));
            stem.is_some_and(|stem| name.starts_with(stem))
        });
        let source = stem.expect("a module has a source of its name");
        let mut input = Sha256::new();
        let heads = [&manifest.compiler, &manifest.headers, source];
        for line in heads.into_iter().chain(&manifest.flags) {
            input.update(format!("{line}\n"));
        }
        for line in ["compute_75", "compute_80"] {
            input.update(format!("{line}\n"));
        }
        for line in &entry.defines {
            input.update(format!("{line}\n"));
        }
        for path in &entry.sources {
            let bytes = fs::read(kernels().join(path)).unwrap_or_default();
            input.update(format!("{path} {}\n", hash(&bytes)));
        }
        if hex(&input.finalize()) != entry.input {
            stale.push(name);
        }
    }
    assert!(stale.is_empty(), "{stale:?} are stale: {AGAIN}");
}

#[test]
fn every_file_of_operations_has_its_modules() {
    let manifest: Manifest = parsed("ptx/manifest.toml");
    let types = names("include/quant", &[".cuh"]);
    let mut expected = BTreeSet::new();
    for name in names("ops", &[".cu"]) {
        let stem = name.trim_end_matches(".cu");
        let text = fs::read_to_string(kernels().join("ops").join(&name)).unwrap();
        if text.starts_with("// per type\n") {
            let of = |name: &String| format!("{stem}_{}", name.trim_end_matches(".cuh"));
            expected.extend(types.iter().map(of));
        } else {
            expected.insert(stem.to_owned());
        }
    }
    let found: BTreeSet<String> = manifest.modules.into_keys().collect();
    assert_eq!(found, expected, "{AGAIN}");
}

#[test]
fn the_program_carries_the_ptx_that_the_manifest_names() {
    let manifest: Manifest = parsed("ptx/manifest.toml");
    let mut files = BTreeSet::new();
    for (name, entry) in &manifest.modules {
        for (flavour, capability) in [("sm75", (7, 5)), ("sm80", (8, 0))] {
            // A form that would be the same is there once.
            let there = if entry.ptx.contains_key(flavour) {
                flavour
            } else {
                "sm75"
            };
            let carried = text(name, capability).map(|text| hash(text.as_bytes()));
            assert_eq!(carried.as_ref(), entry.ptx.get(there), "{name} {flavour}");
            files.insert(format!("{name}.{there}.ptx"));
        }
    }
    assert_eq!(MODULES.len(), manifest.modules.len());
    assert_eq!(names("ptx", &[".ptx"]), files);
}

#[test]
fn a_card_gets_the_latest_form_that_it_runs() {
    let differs = |module: &&Module| module.sm75 != module.sm80;
    let module = MODULES.iter().find(differs);
    let module = module.expect("the tensor cores of later cards take longer products");
    let cases = [
        ((7, 5), "sm_75"),
        ((8, 0), "sm_80"),
        ((8, 6), "sm_80"),
        ((12, 0), "sm_80"),
    ];
    for (capability, target) in cases {
        let text = text(module.name, capability).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(".target "));
        assert_eq!(line, Some(target), "{capability:?}");
    }
    assert_eq!(text("no such module", (8, 0)), None);
}

/// Everything that ships is text of the version that drivers from 525 on take.
#[test]
fn every_driver_from_525_on_takes_the_ptx() {
    for module in MODULES {
        for text in [module.sm75, module.sm80] {
            assert!(text.starts_with(".version 8.0\n"), "{}", module.name);
        }
    }
}

/// Of all of them together; each copy of the program has them.
const PTX_BYTES_MAX: u64 = 6 << 20;

#[test]
fn the_ptx_stays_small() {
    let files = names("ptx", &[".ptx"]);
    let size = |name: &String| {
        fs::metadata(kernels().join("ptx").join(name))
            .unwrap()
            .len()
    };
    let bytes: u64 = files.iter().map(size).sum();
    assert!(bytes <= PTX_BYTES_MAX, "{bytes} bytes of PTX");
}

/// Compute capability 7.5, the smallest that is served (CUDA C++ Programming Guide, table of
/// technical specifications): registers of a multiprocessor, handed out to a warp in portions, and
/// static shared memory of a block.
const REGISTERS: u32 = 65_536;
const REGISTERS_PORTION: u32 = 256;
const WARP: u32 = 32;
const THREADS_MAX: u32 = 1024;
const STATIC_SHARED_MAX: u32 = 48 << 10;

#[test]
fn every_kernel_can_be_launched_on_the_smallest_card() {
    let resources: BTreeMap<String, BTreeMap<String, Needs>> = parsed("resources.toml");
    for module in MODULES {
        let kernels = resources.get(module.name);
        let kernels = kernels.unwrap_or_else(|| panic!("{}: no resources", module.name));
        for entry in module
            .sm75
            .lines()
            .filter_map(|line| line.split_once(".entry "))
        {
            let name = entry.1.trim_end_matches(['(', ')']);
            let needs = kernels.get(name);
            let needs = needs.unwrap_or_else(|| panic!("{}: no resources of {name}", module.name));
            let of_warp = (needs.sm_75 * WARP).next_multiple_of(REGISTERS_PORTION);
            let registers = of_warp * needs.threads.div_ceil(WARP);
            let what = format!("{}: {name}", module.name);
            assert!(
                needs.threads <= THREADS_MAX,
                "{what}: {} threads",
                needs.threads
            );
            assert!(registers <= REGISTERS, "{what}: {registers} registers");
            assert!(
                needs.shared <= STATIC_SHARED_MAX,
                "{what}: {} bytes",
                needs.shared
            );
        }
    }
}

/// The simulated card runs fences in order, so that only the text can say that they are there: what
/// the router's blocks write is seen by the last of them, past its processor's own cache.
#[test]
fn the_last_block_of_the_router_sees_what_the_others_wrote() {
    for capability in [(7, 5), (8, 0)] {
        let module = text("experts_route", capability).expect("it is carried");
        let (_, router) = module
            .split_once(".entry experts_router(")
            .expect("it is in it");
        let (router, _) = router.split_once("\n}\n").expect("it ends");
        let mut at = 0;
        // In this order; in between stand the sums of the router, and what is made of the choice.
        for line in [
            "st.global.f32",
            "membar.gl",
            "bar.sync",
            "atom.global.inc.u32",
            "membar.gl",
            "bar.sync",
            "ld.volatile.global.f32",
            "st.global.u32",
        ] {
            let next = router[at..].find(line);
            at += next.unwrap_or_else(|| panic!("{line} is missing")) + line.len();
        }
        let (before, after) = router.split_at(router.find("atom").expect("seen above"));
        assert!(!before.contains("ld.volatile"), "nothing is read too early");
        let of_others = after.matches("ld.volatile.global.f32").count();
        assert_eq!(
            of_others, 3,
            "the ranks, the chosen one, and the sum over all"
        );
        // All else that is read there is what the lane itself has written.
        assert_eq!(after.matches("ld.global.f32").count(), 1);
    }
}
