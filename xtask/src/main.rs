//! Builds, runs and tests the project: `cargo xtask run | test | soak | speed | bindings | bundle`.
//!
//! Each command installs what it lacks and says so, then does its work. What this program does
//! deliberately not do: compile anything itself, or hide a command. Every command that is run is
//! printed first, so that a person can repeat it by hand. Start reading at [`test`], which uses
//! nearly everything else.

#![forbid(unsafe_code)]
// This is a composition root: it reads the environment and the clock, and it talks to a person.
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)]

mod bindings;
mod bundle;
mod clients;
mod command;
mod docs;
mod gpu_bundle;
mod kernels;
mod models;
mod node;
mod packages;
mod project;
mod run;
mod server;
mod shares;
mod soak;
mod speed;
mod test;
mod ui;
mod vocabularies;

use std::borrow::Cow;
use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  run [-- ARGUMENTS]   build and open the app, with the starter model if there is no other
  test [SHARE...]      every check and every test; with names, only those shares
  soak [REPORT...]     the field reports with their wall-clock limits, into docs/measurements
  speed PROGRAM MODEL...
                       the processor beside llama.cpp, into docs/measurements
  bindings [--check]   write the window's TypeScript types from the Rust ones, or compare them
  kernels [NAME...]    compile the GPU's kernels whose sources changed; --all, --resources, or
                       --check [--full] to compare and assemble them
  docs                 write the pages that are made from tables in code
  bundle [--with-starter]
                       make a .deb and a .rpm, with the starter model in them if asked
  gpu-bundle           make the folder that checks and measures a machine with a card";

fn main() -> ExitCode {
    // A model's path need not be text.
    let given: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<Cow<'_, str>> = given.iter().map(|word| word.to_string_lossy()).collect();
    let words: Vec<&str> = words.iter().map(Cow::as_ref).collect();
    match dispatch(&given, &words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Its words alone: a backtrace at the end of a log hides what came before it.
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(given: &[OsString], words: &[&str]) -> Result<()> {
    match words {
        ["run", "--", ..] => run::run(&given[2..]),
        ["run", ..] => run::run(&given[1..]),
        ["test", shares @ ..] => test::test(shares),
        ["soak", reports @ ..] => soak::soak(reports),
        ["speed", ..] => speed::speed(&given[1..]),
        ["bindings"] => bindings::write(),
        ["bindings", "--check"] => bindings::check(),
        ["kernels", words @ ..] => kernels::kernels(words),
        ["docs"] => docs::write(),
        ["gpu-bundle"] => gpu_bundle::gpu_bundle(),
        ["bundle"] => bundle::bundle(bundle::Extra::None),
        ["bundle", "--with-starter"] => bundle::bundle(bundle::Extra::Starter),
        _ => bail!("{USAGE}"),
    }
}
