//! Builds, runs and tests the project: `cargo xtask run | test | soak | bindings | bundle`.
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
mod command;
mod models;
mod node;
mod packages;
mod project;
mod run;
mod shares;
mod soak;
mod test;
mod ui;

use anyhow::{Result, bail};

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  run [-- ARGUMENTS]   build and open the app, with the starter model if there is no other
  test [SHARE...]      every check and every test; with names, only those shares
  soak [REPORT...]     the field reports with their wall-clock limits, into docs/measurements
  bindings [--check]   write the window's TypeScript types from the Rust ones, or compare them
  bundle               make a .deb and a .rpm";

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["run"] => run::run(&[]),
        ["run", "--", arguments @ ..] | ["run", arguments @ ..] => run::run(arguments),
        ["test", shares @ ..] => test::test(shares),
        ["soak", reports @ ..] => soak::soak(reports),
        ["bindings"] => bindings::write(),
        ["bindings", "--check"] => bindings::check(),
        ["bundle"] => bundle::bundle(),
        _ => bail!("{USAGE}"),
    }
}
