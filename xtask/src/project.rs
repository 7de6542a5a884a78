//! Where things are.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command;

/// The folder with the workspace's `Cargo.toml`.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies inside the workspace")
}

/// Where cargo builds, also if the user set another place.
pub(crate) fn target() -> Result<PathBuf> {
    let text = command::cargo(&["metadata", "--format-version=1", "--no-deps", "--offline"])
        .quiet_output()
        .context("cargo metadata")?;
    let metadata: serde_json::Value = serde_json::from_str(&text).context("cargo metadata")?;
    let folder = metadata["target_directory"]
        .as_str()
        .context("cargo metadata names no target")?;
    Ok(PathBuf::from(folder))
}

/// Where the models for the tests and the starter model are kept.
pub(crate) fn models() -> PathBuf {
    std::env::var_os("CANDOR_TEST_MODELS")
        .map_or_else(|| root().join("target").join("models"), PathBuf::from)
}
