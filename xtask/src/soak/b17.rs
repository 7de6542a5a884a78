//! What is said of the graphics card where there is none that works: stand-ins for the driver
//! that fail in every way that was reported.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::Bench;
use super::figures::{Figure, all_within};
use crate::command;

/// A driver that fails: what its first call does, and the version that it reports.
struct StandIn {
    name: &'static str,
    init: &'static str,
    version: u32,
    devices: u32,
    limit_ms: u32,
}

/// New enough for every check of the version.
const NEW: u32 = 12_040;

const STAND_INS: &[StandIn] = &[
    StandIn {
        name: "fails with code 999",
        init: "return 999;",
        version: NEW,
        devices: 0,
        limit_ms: 2_000,
    },
    StandIn {
        name: "too old",
        init: "return 0;",
        version: 10_000,
        devices: 1,
        limit_ms: 2_000,
    },
    StandIn {
        name: "does not fit its library",
        init: "return 803;",
        version: NEW,
        devices: 0,
        limit_ms: 2_000,
    },
    StandIn {
        name: "sees no card",
        init: "return 100;",
        version: NEW,
        devices: 0,
        limit_ms: 2_000,
    },
    StandIn {
        name: "one card, little memory",
        init: "return 0;",
        version: NEW,
        devices: 1,
        limit_ms: 2_000,
    },
    StandIn {
        name: "hangs",
        init: "sleep(60); return 0;",
        version: NEW,
        devices: 0,
        limit_ms: 10_000,
    },
    StandIn {
        name: "crashes",
        init: "*(volatile int *)0 = 1; return 0;",
        version: NEW,
        devices: 0,
        limit_ms: 2_000,
    },
];

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut reasons = Vec::new();
    let mut none = Figure::new("no driver at all").limit(all_within(2_000));
    reasons.push(ask(bench, &[], None, &mut none)?);
    figures.push(none);
    let mut chosen = Figure::new("chosen by the user").limit(all_within(2_000));
    reasons.push(ask(bench, &["--backend", "cpu"], None, &mut chosen)?);
    figures.push(chosen);
    for (number, stand_in) in STAND_INS.iter().enumerate() {
        let folder = bench.scratch.join(format!("b17-{number}"));
        build(stand_in, &folder)?;
        let what = format!("driver {}", stand_in.name);
        let mut figure = Figure::new(what).limit(all_within(stand_in.limit_ms));
        reasons.push(ask(bench, &[], Some(&folder), &mut figure)?);
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
    driver: Option<&Path>,
    figure: &mut Figure,
) -> Result<String> {
    let call = bench
        .candor
        .call(&["generate"])
        .word(&bench.small)
        .words(words);
    let mut call = call.words(&["--json", "--prompt", "x", "--max-tokens", "1"]);
    if let Some(folder) = driver {
        call = call.with("LD_LIBRARY_PATH", folder);
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

fn build(stand_in: &StandIn, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let StandIn {
        init,
        version,
        devices,
        ..
    } = stand_in;
    // The few calls that a program makes before it trusts a card.
    let source = format!(
        "#include <string.h>\n#include <unistd.h>\n\
         int cuInit(unsigned f) {{ {init} }}\n\
         int cuDriverGetVersion(int *v) {{ *v = {version}; return 0; }}\n\
         int cuDeviceGetCount(int *n) {{ *n = {devices}; return 0; }}\n\
         int cuDeviceGet(int *d, int n) {{ *d = n; return 0; }}\n\
         int cuDeviceGetName(char *t, int n, int d) {{ strncpy(t, \"Stand-in\", n); return 0; }}\n\
         int cuDeviceTotalMem_v2(size_t *b, int d) {{ *b = 200u << 20; return 0; }}\n\
         int cuDeviceGetAttribute(int *v, int a, int d) {{ *v = 8; return 0; }}\n\
         int cuGetErrorString(int e, const char **t) {{ *t = \"stand-in\"; return 0; }}\n"
    );
    let file = folder.join("stand_in.c");
    fs::write(&file, source)?;
    let library = folder.join("libcuda.so.1");
    command::program("cc", &["-shared", "-fPIC", "-o"])
        .argument(&library)
        .argument(&file)
        .run()?;
    if !library.is_file() {
        bail!("cc left no library");
    }
    Ok(())
}
