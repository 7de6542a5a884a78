//! `cargo xtask soak`: the field reports with their wall-clock limits and full repetitions.
//!
//! The tests assert counts and order, so that they hold on any machine. Here the real programs
//! are timed, once in a while and on a quiet machine, and the figures are kept in
//! `docs/measurements/soak.md`. A missed limit is shown there and fails the command.

mod b01;
mod b02;
mod b05;
mod b06;
mod b07;
mod b14;
mod b15;
mod b16;
mod b17;
mod counted;
mod figures;
mod full_disk;
mod measured;
mod pages;
mod program;
mod server;
mod window;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use figures::Figure;
use program::Candor;

use crate::{command, models, packages, project};

/// Where the figures are kept.
const FILE: &str = "docs/measurements/soak.md";

/// Its first lines.
const HEADING: &str = "# Field reports, measured

Written by `cargo xtask soak`. Times in milliseconds where no other unit is named, taken from outside: they hold what a person
waits for, the start and the end of the process included where it says so. A load above the number
of cores means that other work took its share: such times are no better than that.
";

/// What a report needs.
pub(crate) struct Bench {
    /// The command line program, built for release.
    candor: Candor,
    /// SmolLM2.
    small: PathBuf,
    /// Qwen2.5 Coder.
    coder: PathBuf,
    /// For files that are made.
    scratch: PathBuf,
}

/// A field report: its short name, what it is about, and how it is measured.
struct Report {
    name: &'static str,
    about: &'static str,
    measure: fn(&Bench) -> Result<Vec<Figure>>,
}

const REPORTS: &[Report] = &[
    Report {
        name: "B01",
        about: "Damaged and false model files",
        measure: b01::measure,
    },
    Report {
        name: "B02",
        about: "Paths with spaces, scripts, emoji",
        measure: b02::measure,
    },
    Report {
        name: "B05",
        about: "Characters cut between tokens",
        measure: b05::measure,
    },
    Report {
        name: "B06",
        about: "Stop while loading and reading",
        measure: b06::measure,
    },
    Report {
        name: "B07",
        about: "Stop while writing",
        measure: b07::measure,
    },
    Report {
        name: "B08",
        about: "Strict and broken templates",
        measure: |_| counted::count(counted::B08),
    },
    Report {
        name: "B09",
        about: "Replies without end",
        measure: |_| counted::count(counted::B09),
    },
    Report {
        name: "B10",
        about: "More than the context holds",
        measure: |_| counted::count(counted::B10),
    },
    Report {
        name: "B11",
        about: "Long pastes",
        measure: pages::b11,
    },
    Report {
        name: "B12",
        about: "Scripts, images and links in what a model writes",
        measure: pages::b12,
    },
    Report {
        name: "B13",
        about: "A long reply, and who owns the scroll bar",
        measure: pages::b13,
    },
    Report {
        name: "B14",
        about: "Killed in the middle of a reply",
        measure: b14::measure,
    },
    Report {
        name: "B15",
        about: "Leaving and coming back",
        measure: b15::measure,
    },
    Report {
        name: "B16",
        about: "Another model while it writes",
        measure: b16::measure,
    },
    Report {
        name: "B17",
        about: "No graphics card",
        measure: b17::measure,
    },
    Report {
        name: "Window",
        about: "What an open window costs",
        measure: window::measure,
    },
    Report {
        name: "Full-disk",
        about: "A disk that becomes full",
        measure: full_disk::measure,
    },
    Report {
        name: "Server",
        about: "Many clients at once",
        measure: server::measure,
    },
];

/// Measures the reports that are named, or all, and writes each down.
///
/// # Errors
/// If a name is unknown, something needed is missing, or a limit was missed.
pub(crate) fn soak(names: &[&str]) -> Result<()> {
    let known = |name: &&str| {
        REPORTS
            .iter()
            .any(|report| report.name.eq_ignore_ascii_case(name))
    };
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        bail!("{unknown} is not a report that is measured here");
    }
    let bench = prepare()?;
    let mut missed = 0;
    for report in REPORTS {
        if !names.is_empty()
            && !names
                .iter()
                .any(|name| report.name.eq_ignore_ascii_case(name))
        {
            continue;
        }
        println!("\n==== {} {}", report.name, report.about);
        let conditions = conditions()?;
        let figures = (report.measure)(&bench).with_context(|| report.name)?;
        let section = format!(
            "## {} {}\n\n{conditions}\n\n{}",
            report.name,
            report.about,
            figures::table(&figures)
        );
        println!("{section}");
        // After each report, so that a run that is broken off has not been for nothing.
        keep(report.name, &section)?;
        missed += figures.iter().filter(|figure| !figure.holds()).count();
    }
    let _ = fs::remove_dir_all(&bench.scratch);
    if missed > 0 {
        bail!("{missed} limits were missed");
    }
    Ok(())
}

/// Puts a report's section into the file, in the place of an older one.
fn keep(name: &str, section: &str) -> Result<()> {
    let path = project::root().join(FILE);
    fs::create_dir_all(path.parent().context("a folder")?)?;
    let before = fs::read_to_string(&path).unwrap_or_default();
    fs::write(&path, replaced(&before, name, section))?;
    println!("Written to {FILE}");
    Ok(())
}

/// The file with one section replaced; the sections stand in the order of the reports.
fn replaced(file: &str, name: &str, section: &str) -> String {
    let old: Vec<&str> = file.split("\n## ").skip(1).collect();
    let mut text = HEADING.to_owned();
    for report in REPORTS {
        let mine = format!("{} ", report.name);
        if report.name == name {
            text.push_str(&format!("\n{}\n", section.trim_end()));
        } else if let Some(kept) = old.iter().find(|kept| kept.starts_with(&mine)) {
            text.push_str(&format!("\n## {}\n", kept.trim_end()));
        }
    }
    text
}

fn prepare() -> Result<Bench> {
    packages::ensure(&[packages::BUILD, packages::FETCH, packages::DRIVE])?;
    command::cargo(&["build", "--release", "--package", "candor"]).run()?;
    let target = project::target()?;
    let scratch = target.join("soak");
    let _ = fs::remove_dir_all(&scratch);
    fs::create_dir_all(&scratch)?;
    let folder = project::models();
    let (small, coder) = (
        models::STARTER.ensure(&folder)?,
        models::CODER.ensure(&folder)?,
    );
    let candor = Candor::new(target.join("release").join("candor"));
    Ok(Bench {
        candor,
        small,
        coder,
        scratch,
    })
}

/// What the figures depend on.
fn conditions() -> Result<String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let processors = read("/proc/cpuinfo");
    let named = processors
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = named.map_or("unknown", |rest| rest.trim_start_matches(['\t', ' ', ':']));
    let cores = std::thread::available_parallelism()?;
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or("?");
    let commit = command::program("git", &["rev-parse", "--short", "HEAD"]).quiet_output();
    let commit = commit.unwrap_or_else(|_| "unknown".to_owned());
    let commit = commit.trim();
    Ok(format!(
        "{model}, {cores} cores, load before {load}, commit {commit}."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_takes_the_place_of_the_older_one() {
        let first = replaced("", "B07", "## B07 x\n\nold\n");
        let both = replaced(&first, "B01", "## B01 y\n\none\n");
        let newer = replaced(&both, "B07", "## B07 x\n\nnew\n");
        let expected = format!("{HEADING}\n## B01 y\n\none\n\n## B07 x\n\nnew\n");
        assert_eq!(newer, expected);
        assert_eq!(replaced(&newer, "B07", "## B07 x\n\nnew\n"), newer);
    }
}
