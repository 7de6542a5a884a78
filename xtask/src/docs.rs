//! `cargo xtask docs`: the pages that are written from tables in code.

use anyhow::Result;

use crate::command;

/// Writes them.
///
/// # Errors
/// If what writes them cannot be built.
pub(crate) fn write() -> Result<()> {
    println!("Writing docs/models.md");
    let words = ["test", "--package", "candor-app", "--test", "models_page"];
    command::cargo(&words).with("CANDOR_WRITE_DOCS", "1").run()
}
