//! `cargo xtask kernels`: the GPU's kernels, from CUDA C++ to the PTX that is committed.
//!
//! The compiler runs in a Python process for each module, because calling a C library needs unsafe
//! code, which this program does without. Its output does not depend on the folder it runs in:
//! sources are named relative to the folder of kernels, and no line numbers are kept.

mod assemble;
mod compile;
mod manifest;
mod modules;
mod table;
mod tools;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use crate::project;
use assemble::Places;
use compile::{Made, file_name};
use manifest::Manifest;
use modules::{Module, Tree, files};
use tools::Compiler;

/// The table that `crates/cuda` compiles in, below the project's folder.
const TABLE: &str = "crates/cuda/src/ptx/table.rs";

/// For which cards a check assembles.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    /// The oldest and the newest.
    Ends,
    /// Those between too.
    Full,
}

/// What `cargo xtask kernels` was asked for.
enum Wish<'a> {
    /// Modules whose sources changed; with names, only those of these operations or modules.
    Write(&'a [&'a str]),
    All,
    Check(Depth),
    Resources,
}

/// Runs the command with its words.
///
/// # Errors
/// If words are unknown, something does not compile, or a check fails.
pub(crate) fn kernels(words: &[&str]) -> Result<()> {
    match wish(words)? {
        Wish::Write(names) => {
            write(|module, manifest| is_named(module, names) && !is_fresh(module, manifest, &ptx()))
        }
        Wish::All => write(|_, _| true),
        Wish::Check(depth) => check(depth),
        Wish::Resources => {
            let (_, work) = lock()?;
            assemble::write(&assembled(&work, Depth::Full)?, &folder())
        }
    }
}

/// Fetches what a check needs.
///
/// # Errors
/// If it is not there and cannot be fetched.
pub(crate) fn ensure_compilers() -> Result<()> {
    let (_lock, work) = lock()?;
    for tool in [
        tools::NVRTC,
        tools::HEADERS,
        tools::OLD_PTXAS,
        tools::NEW_PTXAS,
    ] {
        tool.ensure(&work)?;
    }
    Ok(())
}

fn wish<'a>(words: &'a [&'a str]) -> Result<Wish<'a>> {
    Ok(match words {
        ["--all"] => Wish::All,
        ["--check"] => Wish::Check(Depth::Ends),
        ["--check", "--full"] => Wish::Check(Depth::Full),
        ["--resources"] => Wish::Resources,
        names if !names.iter().any(|name| name.starts_with('-')) => Wish::Write(names),
        _ => bail!("cargo xtask kernels [NAME...] | --all | --resources | --check [--full]"),
    })
}

fn folder() -> PathBuf {
    project::root().join("kernels")
}

fn ptx() -> PathBuf {
    folder().join("ptx")
}

/// The folder for compilers and scratch, held until the file is dropped.
fn lock() -> Result<(File, PathBuf)> {
    let work = project::target()?.join("kernels");
    fs::create_dir_all(&work)?;
    fs::create_dir_all(ptx())?;
    // The folder that is written to: two that build elsewhere may work on one tree.
    let file = File::open(ptx())?;
    file.lock()?;
    Ok((file, work))
}

/// Compiles the modules that are wanted.
fn write(wanted: impl Fn(&Module, &Manifest) -> bool) -> Result<()> {
    let (_lock, work) = lock()?;
    let tree = Tree::read(&folder())?;
    let mut manifest = Manifest::read(&ptx())?;
    let changed: Vec<&Module> = tree
        .modules
        .iter()
        .filter(|module| wanted(module, &manifest))
        .collect();
    println!(
        "{} of {} modules to compile",
        changed.len(),
        tree.modules.len()
    );
    let compiler = Compiler::ensure(&work)?;
    let made = compile::compile(&changed, &folder(), &ptx(), &compiler);
    let faults = enter(&mut manifest, &changed, made);
    manifest
        .modules
        .retain(|name, _| tree.modules.iter().any(|module| module.name == *name));
    manifest.sources = tree.sources;
    manifest.write(&ptx())?;
    remove_strays(&manifest, &ptx())?;
    let table = table::table(&manifest);
    let path = project::root().join(TABLE);
    if !fs::read_to_string(&path).is_ok_and(|kept| kept == table) {
        fs::create_dir_all(path.parent().context("the table's folder")?)?;
        fs::write(&path, table)?;
    }
    conclude(faults)
}

/// Whether a module is one of these, or of these operations; without names each is.
fn is_named(module: &Module, names: &[&str]) -> bool {
    let source = module.source.trim_start_matches("ops/");
    let stem = source.trim_end_matches(".cu");
    names.is_empty() || names.contains(&stem) || names.contains(&module.name.as_str())
}

/// Whether a module's PTX is in a folder and made of what is there.
fn is_fresh(module: &Module, manifest: &Manifest, folder: &Path) -> bool {
    manifest.modules.get(&module.name).is_some_and(|entry| {
        entry.input == module.input
            && entry.ptx.iter().all(|(flavour, hash)| {
                let path = folder.join(file_name(&module.name, flavour));
                fs::read(path).is_ok_and(|bytes| modules::hash(&bytes) == *hash)
            })
    })
}

/// Puts what was made into the manifest, and returns what was not made.
fn enter(manifest: &mut Manifest, modules: &[&Module], made: Vec<Result<Made>>) -> Vec<String> {
    let mut faults = Vec::new();
    for (module, made) in modules.iter().zip(made) {
        match made {
            Ok((ptx, said)) => {
                manifest.enter(module, ptx);
                if !said.is_empty() {
                    println!("{}: {said}", module.name);
                }
            }
            Err(error) => faults.push(format!("{}: {error:#}", module.name)),
        }
    }
    faults
}

/// Removes the PTX of modules that are no more.
fn remove_strays(manifest: &Manifest, folder: &Path) -> Result<()> {
    let kept: Vec<String> = manifest
        .modules
        .iter()
        .flat_map(|(name, entry)| entry.ptx.keys().map(|flavour| file_name(name, flavour)))
        .collect();
    for path in files(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".ptx") && !kept.contains(&name.as_ref().to_owned()) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

fn check(depth: Depth) -> Result<()> {
    let (lock, work) = lock()?;
    let tree = Tree::read(&folder())?;
    let scratch = work.join("check").join(compile::form());
    fs::create_dir_all(&scratch)?;
    let mut faults = regenerate(tree, &scratch, &work)?;
    faults.extend(differences(&ptx(), &scratch)?);
    drop(lock);
    let resources = assembled(&work, depth)?;
    if let Err(error) = assemble::compare(&resources, &folder()) {
        faults.push(format!("{error:#}"));
    }
    conclude(faults)
}

/// Compiles everything into a folder of its own. What an earlier check left there of the very same
/// input is kept: a fresh machine has none.
fn regenerate(tree: Tree, scratch: &Path, work: &Path) -> Result<Vec<String>> {
    let mut made = Manifest::read(scratch)?;
    let changed: Vec<&Module> = tree
        .modules
        .iter()
        .filter(|module| !is_fresh(module, &made, scratch))
        .collect();
    println!(
        "{} of {} modules to compile",
        changed.len(),
        tree.modules.len()
    );
    let compiler = Compiler::ensure(work)?;
    let mut compiled = compile::compile(&changed, &folder(), scratch, &compiler);
    for (module, compiled) in changed.iter().zip(&mut compiled) {
        // A warning stays one: it must come again the next time.
        if let Ok((_, said)) = compiled
            && !said.is_empty()
        {
            *compiled = Err(anyhow!("{}", said.trim()));
            made.modules.remove(&module.name);
        }
    }
    let mut faults = enter(&mut made, &changed, compiled);
    made.modules
        .retain(|name, _| tree.modules.iter().any(|module| module.name == *name));
    made.sources = tree.sources;
    made.write(scratch)?;
    remove_strays(&made, scratch)?;
    let table = table::table(&made);
    if fs::read_to_string(project::root().join(TABLE))? != table {
        faults.push(format!("{TABLE} is not what it should be"));
    }
    Ok(faults)
}

/// What the committed kernels need on the architectures of this depth. It takes minutes; meanwhile
/// others may compile.
fn assembled(work: &Path, depth: Depth) -> Result<assemble::Resources> {
    let ptx = ptx();
    let manifest = Manifest::read(&ptx)?;
    assemble::assemble(&manifest, &Places { ptx: &ptx, work }, depth)
}

/// The files that two folders do not have alike.
fn differences(kept: &Path, made: &Path) -> Result<Vec<String>> {
    let read = |folder: &Path| -> Result<BTreeMap<String, Vec<u8>>> {
        let mut all = BTreeMap::new();
        for path in files(folder)? {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if !name.starts_with('.') {
                all.insert(name, fs::read(path)?);
            }
        }
        Ok(all)
    };
    let (kept, made) = (read(kept)?, read(made)?);
    let mut names: Vec<&String> = kept.keys().chain(made.keys()).collect();
    names.sort();
    names.dedup();
    Ok(names
        .into_iter()
        .filter(|name| kept.get(*name) != made.get(*name))
        .map(|name| format!("kernels/ptx/{name} is not what the sources give"))
        .collect())
}

fn conclude(faults: Vec<String>) -> Result<()> {
    if faults.is_empty() {
        return Ok(());
    }
    bail!("{}", faults.join("\n"))
}
