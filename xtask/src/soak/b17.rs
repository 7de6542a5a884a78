//! What is said of the graphics card where there is none that works: the simulated driver, told to
//! fail in every way that was reported.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Bench;
use super::figures::{Figure, all_within};
use crate::{command, project};

/// A driver that fails.
struct Broken {
    name: &'static str,
    /// As `crates/simcuda` understands it.
    settings: &'static str,
    limit_ms: u32,
}

const BROKEN: &[Broken] = &[
    Broken {
        name: "fails with code 999",
        settings: "init=999",
        limit_ms: 2_000,
    },
    Broken {
        name: "too old",
        settings: "driver=10000",
        limit_ms: 2_000,
    },
    Broken {
        name: "does not fit its library",
        settings: "init=803",
        limit_ms: 2_000,
    },
    Broken {
        name: "sees no card",
        settings: "devices=0",
        limit_ms: 2_000,
    },
    // The kernels are read before it is known what is left for the model.
    Broken {
        name: "one card, little memory",
        settings: "memory=200M,used=180M",
        limit_ms: 5_000,
    },
    Broken {
        name: "hangs",
        settings: "hang=cuInit",
        limit_ms: 10_000,
    },
    Broken {
        name: "crashes",
        settings: "crash=cuInit",
        limit_ms: 2_000,
    },
];

/// What the driver reads its settings from.
const SETTINGS: &str = "CANDOR_SIMCUDA";

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut reasons = Vec::new();
    let mut none = Figure::new("no driver at all").limit(all_within(2_000));
    reasons.push(ask(bench, &[], None, &mut none)?);
    figures.push(none);
    let mut chosen = Figure::new("chosen by the user").limit(all_within(2_000));
    reasons.push(ask(bench, &["--backend", "cpu"], None, &mut chosen)?);
    figures.push(chosen);
    let folder = driver(bench)?;
    for broken in BROKEN {
        let mut figure = Figure::new(format!("driver {}", broken.name));
        figure = figure.limit(all_within(broken.limit_ms));
        let driver = Some((&*folder, broken.settings));
        reasons.push(ask(bench, &[], driver, &mut figure)?);
        figures.push(figure);
    }
    for (at, reason) in reasons.iter().enumerate() {
        println!("  {reason}");
        if reasons[..at].contains(reason) {
            figures[at].fault(format!("the same reason as another case: {reason}"));
        }
    }
    Ok(figures)
}

/// One reply of one token: the reason it gives for its backend.
fn ask(
    bench: &Bench,
    words: &[&str],
    driver: Option<(&Path, &str)>,
    figure: &mut Figure,
) -> Result<String> {
    let call = bench
        .candor
        .call(&["generate"])
        .word(&bench.small)
        .words(words);
    let mut call = call.words(&["--json", "--prompt", "x", "--max-tokens", "1"]);
    if let Some((folder, settings)) = driver {
        call = call.with("LD_LIBRARY_PATH", folder);
        call = call.with(SETTINGS, settings);
    }
    let ran = call.run()?;
    figure.timed(ran.wall);
    let backend = ran.last()?["backend"].clone();
    if ran.exit != Some(0) || backend["served"] != "cpu" {
        figure.fault(format!(
            "exit {:?}, served by {}",
            ran.exit, backend["served"]
        ));
    }
    Ok(backend["reason"].as_str().context("a reason")?.to_owned())
}

/// A folder in which the simulated driver has the name of the real one.
fn driver(bench: &Bench) -> Result<PathBuf> {
    command::cargo(&["build", "--release", "--package", "candor-simcuda", "--lib"]).run()?;
    let folder = bench.scratch.join("b17");
    fs::create_dir_all(&folder).context("a folder for the driver")?;
    let built = project::target()?.join("release/libsimcuda.so");
    fs::copy(&built, folder.join("libcuda.so.1")).context("the simulated driver")?;
    Ok(folder)
}
