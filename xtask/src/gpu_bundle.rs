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

/// Test programs that run on the machine's own driver.
const TESTS: [&str; 2] = ["conformance", "golden"];

/// Runs the instructions of the simulated card on the real one, and writes down what they give.
const RECORDER: &str = "record_instructions";

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

    let release = project::target()?.join("release");
    command::cargo(&["build", "--release", "--package", "candor"]).run()?;
    put(&release.join("candor"), &parts.join("candor"))?;
    let model = ["build", "--release", "--package", "candor-testkit"];
    command::cargo(&model)
        .argument("--bin")
        .argument("random-model")
        .run()?;
    put(&release.join("random-model"), &parts.join("random-model"))?;
    for test in TESTS {
        let words = [
            "test",
            "--release",
            "--package",
            "candor-cuda",
            "--test",
            test,
        ];
        let cargo = command::cargo(&words).argument("--features=real-driver");
        let program = built(cargo.argument("--no-run"), test)?;
        // Not by its name alone: a folder of the golden models is called the same.
        put(&program, &parts.join(format!("test-{test}")))?;
    }
    let recorder = command::cargo(&["build", "--release", "--package", "candor-simcuda"])
        .argument("--example")
        .argument(RECORDER);
    put(&built(recorder, RECORDER)?, &parts.join(RECORDER))?;
    let card = command::cargo(&["bench", "--package", "candor-cuda", "--bench", "card"]);
    put(
        &built(card.argument("--no-run"), "card")?,
        &parts.join("card"),
    )?;

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

/// Builds what a command names; gives the program.
fn built(cargo: command::Run, target: &str) -> Result<PathBuf> {
    let messages = cargo
        .argument("--message-format=json-render-diagnostics")
        .quiet_output()?;
    let program = messages.lines().find_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        let named = message["target"]["name"] == target;
        let program = message["executable"].as_str().filter(|_| named)?;
        Some(PathBuf::from(program))
    });
    program.with_context(|| format!("cargo names no program of {target}"))
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
