//! `cargo xtask bindings`: the window's TypeScript types, generated from the Rust ones.

use std::fs;

use anyhow::Result;

use crate::{command, project};

/// The generated file.
const FILE: &str = "ui/src/platform/bindings.ts";

/// Writes them.
///
/// # Errors
/// If they cannot be generated.
pub(crate) fn write() -> Result<()> {
    println!("Writing {FILE}");
    let words = [
        "run",
        "--quiet",
        "--package",
        "candor-app",
        "--features",
        "bindings",
    ];
    let text = command::cargo(&words)
        .argument("--example")
        .argument("bindings")
        .quiet_output()?;
    fs::write(project::root().join(FILE), text)?;
    Ok(())
}

/// Compares them with what is committed.
///
/// # Errors
/// If they differ.
pub(crate) fn check() -> Result<()> {
    let words = [
        "test",
        "--package",
        "candor-app",
        "--features",
        "bindings",
        "--test",
        "bindings",
    ];
    command::cargo(&words).run()
}
