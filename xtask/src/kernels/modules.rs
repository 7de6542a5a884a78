//! What modules there are, and what goes into each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use super::tools;

/// The first line of a file that is compiled once for every storage type.
const PER_TYPE: &str = "// per type";

/// What every module is compiled with, beside its flavour and its type.
pub(super) const FLAGS: [&str; 2] = ["--std=c++17", "--include-path=include"];

/// The two forms of every module: the name in its file, and the architecture it is compiled for.
pub(super) const FLAVOURS: [(&str, &str); 2] = [("sm75", "compute_75"), ("sm80", "compute_80")];

/// A file of `ops`, for one storage type or for none.
pub(super) struct Module {
    pub(super) name: String,
    /// Relative to the folder of kernels.
    pub(super) source: String,
    pub(super) defines: Vec<String>,
    /// Everything of ours that is read when it is compiled, the source itself too.
    pub(super) sources: BTreeSet<String>,
    /// Changes with everything that its PTX depends on.
    pub(super) input: String,
}

/// All sources with their hashes, and the modules that are made of them.
pub(super) struct Tree {
    pub(super) sources: BTreeMap<String, String>,
    pub(super) modules: Vec<Module>,
}

impl Tree {
    /// Reads the folder of kernels.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let mut texts = BTreeMap::new();
        for below in ["ops", "include", "include/quant"] {
            for path in files(&folder.join(below))? {
                let name = path.file_name().context("a file's name")?.to_string_lossy();
                if name.ends_with(".cu") || name.ends_with(".cuh") {
                    texts.insert(format!("{below}/{name}"), fs::read_to_string(&path)?);
                }
            }
        }
        let sources = texts
            .iter()
            .map(|(name, text)| (name.clone(), hash(text.as_bytes())))
            .collect();
        let types: Vec<&str> = texts
            .keys()
            .filter_map(|name| name.strip_prefix("include/quant/")?.strip_suffix(".cuh"))
            .collect();
        let mut tree = Self {
            sources,
            modules: Vec::new(),
        };
        for (source, text) in &texts {
            let Some(stem) = source.strip_prefix("ops/").and_then(stem_of) else {
                continue;
            };
            if text.lines().next() != Some(PER_TYPE) {
                tree.add(&texts, stem.to_owned(), source, None)?;
                continue;
            }
            for quant in &types {
                tree.add(&texts, format!("{stem}_{quant}"), source, Some(quant))?;
            }
        }
        tree.modules.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(tree)
    }

    fn add(
        &mut self,
        texts: &BTreeMap<String, String>,
        name: String,
        source: &str,
        quant: Option<&str>,
    ) -> Result<()> {
        let header = quant.map(|quant| format!("quant/{quant}.cuh"));
        let defines = match (&header, quant) {
            (Some(header), Some(quant)) => vec![
                format!("-DQUANT_HEADER=\"{header}\""),
                format!("-DQUANT={quant}"),
            ],
            _ => Vec::new(),
        };
        let mut sources = BTreeSet::new();
        let mut open = vec![source.to_owned()];
        while let Some(next) = open.pop() {
            let text = texts.get(&next);
            let text =
                text.with_context(|| format!("{source} includes {next}, which is not there"))?;
            if sources.insert(next) {
                open.extend(includes(text, header.as_deref())?);
            }
        }
        let mut input = Sha256::new();
        let parts = [tools::NVRTC.package, tools::HEADERS.package, source];
        let flavours = FLAVOURS.iter().map(|(_, architecture)| *architecture);
        for part in parts.into_iter().chain(FLAGS).chain(flavours) {
            input.update(format!("{part}\n"));
        }
        for define in &defines {
            input.update(format!("{define}\n"));
        }
        for source in &sources {
            input.update(format!("{source} {}\n", self.sources[source]));
        }
        self.modules.push(Module {
            name,
            source: source.to_owned(),
            defines,
            sources,
            input: hex(&input.finalize()),
        });
        Ok(())
    }
}

fn stem_of(file: &str) -> Option<&str> {
    file.strip_suffix(".cu")
}

/// Our own files that a text includes: those in quotes. Those in angle brackets come with the
/// compiler.
fn includes(text: &str, header: Option<&str>) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for line in text.lines() {
        let Some(rest) = line.trim_start().strip_prefix("#include") else {
            continue;
        };
        let rest = rest.trim();
        if rest == "QUANT_HEADER" {
            let header = header.context("QUANT_HEADER in a file that is not per type")?;
            found.push(format!("include/{header}"));
        } else if let Some(name) = rest
            .strip_prefix('"')
            .and_then(|rest| rest.split('"').next())
        {
            found.push(format!("include/{name}"));
        } else if !rest.starts_with('<') {
            bail!("{line}: neither ours nor the compiler's");
        }
    }
    Ok(found)
}

/// The files of a folder, which need not exist.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if folder.is_dir() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_file() {
                found.push(path);
            }
        }
    }
    Ok(found)
}

pub(super) fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_includes_its_own_files_and_the_type_that_is_compiled() {
        let text =
            "#include <cuda_fp16.h>\n#include \"types.cuh\"\n  #include QUANT_HEADER\nint x;";
        let cases: [(Option<&str>, Option<&[&str]>); 2] = [
            (
                Some("quant/q8_0.cuh"),
                Some(&["include/types.cuh", "include/quant/q8_0.cuh"]),
            ),
            (None, None),
        ];
        for (header, expected) in cases {
            let found = includes(text, header).ok();
            let found: Option<Vec<&str>> = found
                .as_ref()
                .map(|found| found.iter().map(String::as_str).collect());
            assert_eq!(found.as_deref(), expected, "{header:?}");
        }
    }
}
