//! What the committed PTX was made of.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::modules::{FLAGS, Module};
use super::tools;

/// Its name in the folder of PTX.
pub(super) const FILE: &str = "manifest.toml";

const HEAD: &str = "# Written by `cargo xtask kernels`; not to be edited.\n\n";

#[derive(Default, Serialize, Deserialize)]
pub(super) struct Manifest {
    compiler: String,
    headers: String,
    flags: Vec<String>,
    /// Hashes of all sources, by their path in the folder of kernels.
    pub(super) sources: BTreeMap<String, String>,
    pub(super) modules: BTreeMap<String, Entry>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Entry {
    /// Hash of everything that its PTX depends on.
    pub(super) input: String,
    defines: Vec<String>,
    sources: BTreeSet<String>,
    /// Hash of the PTX of each flavour.
    pub(super) ptx: BTreeMap<String, String>,
}

impl Manifest {
    /// That of a folder, or an empty one.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        if !path.is_file() {
            return Ok(Self::default());
        }
        let text = fs::read_to_string(&path)?;
        toml::from_str(&text).with_context(|| path.display().to_string())
    }

    pub(super) fn write(&mut self, folder: &Path) -> Result<()> {
        self.compiler = tools::NVRTC.package.to_owned();
        self.headers = tools::HEADERS.package.to_owned();
        self.flags = FLAGS.map(str::to_owned).to_vec();
        let text = toml::to_string(self)?;
        Ok(fs::write(folder.join(FILE), format!("{HEAD}{text}"))?)
    }

    pub(super) fn enter(&mut self, module: &Module, ptx: BTreeMap<String, String>) {
        let entry = Entry {
            input: module.input.clone(),
            defines: module.defines.clone(),
            sources: module.sources.clone(),
            ptx,
        };
        self.modules.insert(module.name.clone(), entry);
    }
}
