//! Does the PTX become code for the cards it is meant for, and what does a kernel need there?

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::Depth;
use super::compile::{file_name, flavour_there, in_parallel};
use super::manifest::Manifest;
use super::modules::hash;
use super::tools::{NEW_PTXAS, OLD_PTXAS, Tool};
use crate::command;

/// The committed table of what kernels need.
pub(super) const FILE: &str = "resources.toml";

const HEAD: &str = "\
# What each kernel needs: threads of a block at most, bytes of static shared memory at most, and
# registers of a thread on each architecture. Written by `cargo xtask kernels --resources`.\n\n";

/// A card's architecture, the assembler that is asked, and the flavour that runs there.
struct Target {
    architecture: &'static str,
    tool: &'static Tool,
    flavour: &'static str,
    /// The least check that asks for it.
    depth: Depth,
}

const fn target(
    architecture: &'static str,
    tool: &'static Tool,
    flavour: &'static str,
    depth: Depth,
) -> Target {
    Target {
        architecture,
        tool,
        flavour,
        depth,
    }
}

/// The oldest and the newest first: they are always asked.
const TARGETS: [Target; 9] = [
    target("sm_75", &OLD_PTXAS, "sm75", Depth::Ends),
    target("sm_120", &NEW_PTXAS, "sm80", Depth::Ends),
    target("sm_80", &OLD_PTXAS, "sm80", Depth::Full),
    target("sm_86", &OLD_PTXAS, "sm80", Depth::Full),
    target("sm_89", &OLD_PTXAS, "sm80", Depth::Full),
    target("sm_90", &OLD_PTXAS, "sm80", Depth::Full),
    target("sm_100", &NEW_PTXAS, "sm80", Depth::Full),
    target("sm_103", &NEW_PTXAS, "sm80", Depth::Full),
    target("sm_121", &NEW_PTXAS, "sm80", Depth::Full),
];

/// What kernels need, by module and kernel.
pub(super) type Resources = BTreeMap<String, BTreeMap<String, Needs>>;

/// What a kernel needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Needs {
    threads: u32,
    shared: u32,
    #[serde(flatten)]
    registers: BTreeMap<String, u32>,
}

/// Where things are.
pub(super) struct Places<'a> {
    pub(super) ptx: &'a Path,
    /// Wheels, and what was assembled before.
    pub(super) work: &'a Path,
}

/// Assembles modules for every architecture of this depth.
///
/// # Errors
/// If an assembler refuses, or a kernel spills.
pub(super) fn assemble(
    manifest: &Manifest,
    places: &Places<'_>,
    depth: Depth,
) -> Result<Resources> {
    let stamps = places.work.join("assembled");
    fs::create_dir_all(&stamps)?;
    let mut jobs = Vec::new();
    for target in TARGETS.iter().filter(|target| target.depth <= depth) {
        let tool = target.tool.ensure(places.work)?;
        let modules = manifest.modules.iter();
        jobs.extend(modules.map(|(module, entry)| (module, entry, target, tool.clone())));
    }
    let said = in_parallel(&jobs, |(module, entry, target, tool)| {
        let flavour = flavour_there(&entry.ptx, target.flavour);
        let ptx = places.ptx.join(file_name(module, flavour));
        said(&ptx, target, tool, &stamps)
    });
    let mut resources = Resources::new();
    let mut faults = Vec::new();
    for ((module, _, target, _), said) in jobs.iter().zip(said) {
        let needs = said.and_then(|said| read(&said));
        match needs {
            Ok(needs) => {
                let kernels = resources.entry((*module).clone()).or_default();
                for (kernel, (registers, shared)) in needs {
                    let needs = kernels.entry(kernel).or_default();
                    needs.shared = needs.shared.max(shared);
                    let architecture = target.architecture.to_owned();
                    needs.registers.insert(architecture, registers);
                }
            }
            Err(error) => faults.push(format!("{module} for {}: {error:#}", target.architecture)),
        }
    }
    for (module, kernels) in &mut resources {
        let ptx = fs::read_to_string(places.ptx.join(file_name(module, "sm75")))?;
        let threads = threads(&ptx);
        for (kernel, needs) in kernels {
            match threads.get(kernel) {
                Some(threads) => needs.threads = *threads,
                None => faults.push(format!("{module}: {kernel} has no __launch_bounds__")),
            }
        }
    }
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    Ok(resources)
}

/// What the assembler says of a file, or said of the same bytes before.
fn said(ptx: &Path, target: &Target, tool: &PathBuf, stamps: &Path) -> Result<String> {
    let text = fs::read(ptx).with_context(|| ptx.display().to_string())?;
    let key = format!("{}\n{}\n", target.tool.package, target.architecture);
    let stamp = stamps.join(hash(&[key.as_bytes(), &text].concat()));
    if let Ok(said) = fs::read_to_string(&stamp) {
        return Ok(said);
    }
    let architecture = format!("-arch={}", target.architecture);
    let words = ["-v", &architecture, "-o", "/dev/null"];
    let said = command::program(tool, &words).argument(ptx).all_output()?;
    fs::write(stamp, &said)?;
    Ok(said)
}

/// From what the assembler says: for each kernel its registers and its static shared memory.
///
/// # Errors
/// If a kernel keeps registers in memory.
fn read(said: &str) -> Result<BTreeMap<String, (u32, u32)>> {
    let mut found = BTreeMap::new();
    let mut kernel = None;
    for line in said.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            kernel = rest.split('\'').next().map(str::to_owned);
        } else if let Some((_, rest)) = line.split_once("bytes stack frame, ") {
            let spilled = rest
                .split(", ")
                .any(|part| !part.starts_with("0 bytes spill"));
            if let (true, Some(kernel)) = (spilled, &kernel) {
                bail!("{kernel} spills: {rest}");
            }
        } else if let Some((_, rest)) = line.split_once(": Used ") {
            let kernel = kernel.take().context("registers of no kernel")?;
            let number = |what: &str| {
                let part = rest.split(", ").find_map(|part| part.strip_suffix(what));
                part.and_then(|number| number.trim().parse().ok())
            };
            let registers = number(" registers").with_context(|| line.to_owned())?;
            found.insert(kernel, (registers, number(" bytes smem").unwrap_or(0)));
        }
    }
    Ok(found)
}

/// The threads of a block at most, by kernel: the bound of its `.maxntid`.
fn threads(ptx: &str) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    let mut kernel = "";
    for line in ptx.lines() {
        if let Some((_, rest)) = line.split_once(".entry ") {
            kernel = rest.split('(').next().unwrap_or(rest).trim();
        } else if let Some(rest) = line.strip_prefix(".maxntid ") {
            let numbers = rest.split(',').map(|number| number.trim().parse::<u32>());
            let all: Result<Vec<u32>, _> = numbers.collect();
            if let Ok(all) = all {
                found.insert(kernel.to_owned(), all.iter().product());
            }
        }
    }
    found
}

/// Writes the committed table.
pub(super) fn write(resources: &Resources, kernels: &Path) -> Result<()> {
    let mut text = String::from(HEAD);
    for (module, kernels) in resources {
        text.push_str(&format!("[{module}]\n"));
        for (kernel, needs) in kernels {
            let registers = needs.registers.iter();
            let registers: Vec<String> = registers
                .map(|(name, number)| format!(", {name} = {number}"))
                .collect();
            text.push_str(&format!(
                "{kernel} = {{ threads = {}, shared = {}{} }}\n",
                needs.threads,
                needs.shared,
                registers.concat()
            ));
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    Ok(fs::write(kernels.join(FILE), text)?)
}

/// Compares what was found with the committed table: nothing may have grown, and nothing may be
/// missing there.
pub(super) fn compare(found: &Resources, kernels: &Path) -> Result<()> {
    let text = fs::read_to_string(kernels.join(FILE)).context(FILE)?;
    let kept: Resources = toml::from_str(&text).context(FILE)?;
    let mut faults = Vec::new();
    for (module, kernels) in found {
        for (kernel, needs) in kernels {
            let kept = kept.get(module).and_then(|kernels| kernels.get(kernel));
            let grown = kept.map_or_else(
                || vec!["is not in it".to_owned()],
                |kept| growth(needs, kept),
            );
            faults.extend(
                grown
                    .iter()
                    .map(|what| format!("{module}: {kernel} {what}")),
            );
        }
    }
    if !faults.is_empty() {
        bail!(
            "{FILE} differs; if it is meant, run cargo xtask kernels --resources\n{}",
            faults.join("\n")
        );
    }
    Ok(())
}

fn growth(needs: &Needs, kept: &Needs) -> Vec<String> {
    let mut pairs = vec![
        ("threads", needs.threads, Some(kept.threads)),
        ("bytes of shared memory", needs.shared, Some(kept.shared)),
    ];
    for (architecture, registers) in &needs.registers {
        let kept = kept.registers.get(architecture).copied();
        pairs.push((architecture, *registers, kept));
    }
    pairs
        .into_iter()
        .filter(|(_, now, kept)| kept.is_none_or(|kept| *now > kept))
        .map(|(what, now, kept)| match kept {
            Some(kept) => format!("needs more: {what} {now}, was {kept}"),
            None => format!("has no number for {what}, which is {now}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'one' for 'sm_75'
ptxas info    : Function properties for one
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, 1024 bytes smem, 372 bytes cmem[0]
ptxas info    : Compiling entry function 'two' for 'sm_75'
ptxas info    : Function properties for two
    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, 372 bytes cmem[0]
";

    #[test]
    fn registers_and_shared_memory_are_read_and_spills_are_refused() {
        let spilling = SAID.replace("16 bytes stack frame, 0", "16 bytes stack frame, 12");
        let both = BTreeMap::from([("one".to_owned(), (40, 1024)), ("two".to_owned(), (8, 0))]);
        let cases = [(SAID, Some(both)), (spilling.as_str(), None)];
        for (said, expected) in cases {
            assert_eq!(read(said).ok(), expected, "{said}");
        }
    }

    #[test]
    fn the_threads_of_a_block_are_read_from_the_ptx() {
        let ptx = ".visible .entry one(\n\t.param .u64 one_param_0\n)\n.maxntid 32, 4, 1\n{\n";
        assert_eq!(threads(ptx), BTreeMap::from([("one".to_owned(), 128)]));
    }

    #[test]
    fn only_growth_is_a_fault() {
        let needs = |threads, shared, registers| Needs {
            threads,
            shared,
            registers: BTreeMap::from([("sm_75".to_owned(), registers)]),
        };
        let kept = needs(128, 1024, 40);
        let cases = [
            (needs(128, 1024, 40), 0),
            (needs(64, 512, 30), 0),
            (needs(128, 1024, 41), 1),
            (needs(256, 2048, 40), 2),
        ];
        for (now, faults) in cases {
            assert_eq!(growth(&now, &kept).len(), faults, "{now:?}");
        }
    }
}
