//! `cargo xtask gpu-bundle`: one folder with all that a machine with an NVIDIA card needs to say
//! whether the kernels are right on it, and how fast.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{command, packages, project};

/// Largest size of the folder: it is carried to a machine that is lent for minutes.
const BYTES_MAX: u64 = 60_000_000;

/// What runs there.
const SCRIPT: &str = include_str!("gpu_bundle.sh");

/// A program of the folder.
struct Part {
    /// Its name there.
    name: &'static str,
    /// What builds it.
    cargo: &'static [&'static str],
    /// What cargo calls it: a folder of the golden models has the name of a test.
    target: &'static str,
}

/// All of them: the command line, the generator of models with random weights, the tests that run on
/// the machine's own driver, what runs the instructions of the simulated card on the real one and
/// writes down what they give, and what measures.
const PARTS: &[Part] = &[
    Part {
        name: "candor",
        cargo: &["build", "--package=candor", "--bin=candor"],
        target: "candor",
    },
    Part {
        name: "random-model",
        cargo: &["build", "--package=candor-testkit", "--bin=random-model"],
        target: "random-model",
    },
    Part {
        name: "test-conformance",
        cargo: &["test", "--no-run", DRIVER, CARD, "--test=conformance"],
        target: "conformance",
    },
    Part {
        name: "test-golden",
        cargo: &["test", "--no-run", DRIVER, CARD, "--test=golden"],
        target: "golden",
    },
    Part {
        name: "record_instructions",
        cargo: &[
            "build",
            "--package=candor-simcuda",
            "--example=record_instructions",
        ],
        target: "record_instructions",
    },
    Part {
        name: "card",
        cargo: &["bench", "--no-run", CARD, "--bench=card"],
        target: "card",
    },
];

const CARD: &str = "--package=candor-cuda";
const DRIVER: &str = "--features=real-driver";

/// Makes the folder.
///
/// # Errors
/// If something does not build, or the folder becomes too large.
pub(crate) fn gpu_bundle() -> Result<()> {
    packages::ensure(&[packages::BUILD])?;
    let folder = project::target()?.join("gpu-bundle");
    let parts = folder.join("parts");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("the old folder")?;
    }
    fs::create_dir_all(&parts).context("the folder")?;
    for part in PARTS {
        put(&built(part)?, &parts.join(part.name))?;
    }
    // Text and tables of numbers: packed, they are a fifth.
    let root = project::root();
    command::program("tar", &["--create", "--gzip", "--file"])
        .argument(folder.join("parts.tar.gz"))
        .argument("--directory")
        .argument(&parts)
        .argument(".")
        .argument("--directory")
        .argument(root.join("tests"))
        .argument("golden/models")
        .argument("golden/logits")
        .run()?;
    fs::remove_dir_all(&parts).context("the unpacked parts")?;
    fs::write(folder.join("run.sh"), SCRIPT).context("the script")?;
    let bytes = size(&folder)?;
    if bytes > BYTES_MAX {
        bail!("the folder has {bytes} bytes, more than {BYTES_MAX}");
    }
    println!(
        "{} has {bytes} bytes; on a machine with a card: sh run.sh",
        folder.display()
    );
    Ok(())
}

/// Builds a program; gives the place where cargo put it.
fn built(part: &Part) -> Result<PathBuf> {
    let mut cargo = command::cargo(part.cargo);
    // Benches are built so anyway, and do not know the word.
    if part.cargo[0] != "bench" {
        cargo = cargo.argument("--release");
    }
    let messages = cargo
        .argument("--message-format=json-render-diagnostics")
        .quiet_output()?;
    let program = messages.lines().find_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        let named = message["target"]["name"] == part.target;
        let program = message["executable"].as_str().filter(|_| named)?;
        Some(PathBuf::from(program))
    });
    program.with_context(|| format!("cargo names no program of {}", part.target))
}

/// Copies a program without its symbols.
fn put(from: &Path, to: &Path) -> Result<()> {
    command::program("strip", &["-o"])
        .argument(to)
        .argument(from)
        .run()
}

fn size(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder).context("the folder")? {
        sum += entry.context("the folder")?.metadata()?.len();
    }
    Ok(sum)
}

#[cfg(test)]
mod tests;
