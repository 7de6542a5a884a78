//! The window's pages: packages, checks, build.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Result;

use crate::command::{self, Run};
use crate::project;

/// What the pages are built from; src-tauri's build script looks at the same.
const SOURCES: [&str; 5] = [
    "src",
    "index.html",
    "package.json",
    "package-lock.json",
    "vite.config.ts",
];

/// Runs npm in the pages' folder.
pub(crate) fn npm(arguments: &[&str], node_path: &OsStr) -> Run {
    command::program("npm", arguments)
        .within(&folder())
        .with("PATH", node_path)
}

/// Installs the packages if the lock file has changed since.
///
/// # Errors
/// If npm does not succeed.
pub(crate) fn install(node_path: &OsStr) -> Result<()> {
    let installed = newest(&folder().join("node_modules/.package-lock.json"));
    if installed.is_some() && installed >= newest(&folder().join("package-lock.json")) {
        return Ok(());
    }
    println!("Installing the packages that the window's pages are built with");
    npm(&["ci", "--no-audit", "--no-fund"], node_path).run()
}

/// Builds the pages if their sources have changed since.
///
/// # Errors
/// If npm does not succeed.
pub(crate) fn build(node_path: &OsStr) -> Result<()> {
    let built = newest(&folder().join("dist/index.html"));
    let sources = SOURCES
        .iter()
        .filter_map(|name| newest(&folder().join(name)))
        .max();
    if built.is_some() && built >= sources {
        return Ok(());
    }
    install(node_path)?;
    npm(&["run", "build"], node_path).run()
}

fn folder() -> PathBuf {
    project::root().join("ui")
}

/// The latest change of a file, or of anything in a folder.
fn newest(path: &Path) -> Option<SystemTime> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_dir() {
        return metadata.modified().ok();
    }
    let entries = fs::read_dir(path).ok()?;
    entries
        .filter_map(|entry| newest(&entry.ok()?.path()))
        .max()
}
