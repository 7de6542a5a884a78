//! `cargo xtask bindings`: the window's TypeScript types, generated from the Rust ones.

use anyhow::Result;

use crate::command;

/// Writes them.
///
/// # Errors
/// If they cannot be generated.
pub(crate) fn write() -> Result<()> {
    generate().with("CANDOR_WRITE_BINDINGS", "1").run()
}

/// Compares them with what is committed.
///
/// # Errors
/// If they differ.
pub(crate) fn check() -> Result<()> {
    generate().run()
}

fn generate() -> command::Run {
    command::cargo(&[
        "test",
        "--package",
        "candor-app",
        "--features",
        "bindings",
        "bindings",
    ])
}
