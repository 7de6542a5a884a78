//! `cargo xtask run`: from a clean clone to an open window.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::{command, models, node, packages, project, ui};

/// Builds and opens the app.
///
/// # Errors
/// If something that it needs can be neither found nor installed, or does not build.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    packages::ensure(&[packages::BUILD])?;
    ui::build(&node::path()?)?;
    // The window works without a model; it then says how to open one.
    if let Err(error) = offer_starter() {
        println!("The starter model is not there: {error:#}. The window opens without it.");
    }
    let mut words = vec!["run", "--release", "--package", "candor-desktop", "--"];
    words.extend(arguments);
    // A relative path among the arguments is meant from where the person is.
    command::cargo(&words)
        .within(&std::env::current_dir()?)
        .run()
}

/// Puts the starter model where the app looks for it, if there is no model yet.
fn offer_starter() -> Result<()> {
    let folder = data_folder()?.join("models");
    if holds_a_model(&folder) {
        return Ok(());
    }
    let fetched = models::STARTER.ensure(&project::models())?;
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let place = folder.join(models::STARTER.file);
    // A hard link costs nothing; across file systems only a copy is possible.
    if fs::hard_link(&fetched, &place).is_err() {
        fs::copy(&fetched, &place).with_context(|| place.display().to_string())?;
    }
    println!("The starter model is in {}", folder.display());
    Ok(())
}

fn holds_a_model(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .into_iter()
        .any(|entry| entry.path().extension().is_some_and(|end| end == "gguf"))
}

/// The app's own data folder, by the same rule as the app.
fn data_folder() -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(folder) = variable("CANDOR_DATA_DIR") {
        return Ok(PathBuf::from(folder));
    }
    let base = variable("XDG_DATA_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let home = || variable("HOME").map(|home| Path::new(&home).join(".local/share"));
    let base = base
        .or_else(home)
        .context("neither HOME nor XDG_DATA_HOME is set")?;
    Ok(base.join("candor"))
}
