//! `cargo xtask bundle`: packages for Debian's and Fedora's families.

use anyhow::Result;

use crate::{command, node, packages, project, ui};

/// The bundler, run by npm and kept nowhere.
const BUNDLER: &str = "@tauri-apps/cli@2.12.5";

/// Makes a .deb and a .rpm.
///
/// # Errors
/// If something that it needs can be neither found nor installed, or does not build.
pub(crate) fn bundle() -> Result<()> {
    packages::ensure(&[packages::BUILD])?;
    let path = node::path()?;
    ui::build(&path)?;
    // The packages hold both programs.
    command::cargo(&["build", "--release", "--package", "candor"]).run()?;
    let words = ["--yes", BUNDLER, "build", "--bundles", "deb,rpm"];
    command::program("npx", &words)
        .within(&project::root().join("src-tauri"))
        .with("PATH", path)
        .run()?;
    println!(
        "The packages are in {}",
        project::target()?.join("release/bundle").display()
    );
    Ok(())
}
