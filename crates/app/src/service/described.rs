//! What a model's file says of itself, for programs that choose by it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use candor_modelfile::{Index, ModelFile};

use super::{LISTED_MAX, Listed};
use crate::facts;

/// What a model is, whether it is loaded or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// The architecture's name in the file.
    pub architecture: String,
    /// Tokens of context that it was trained for; none where the file does not say.
    pub context: Option<u64>,
    /// Its chat template; empty where the file has none.
    pub template: String,
    /// How its weights are stored, in one word.
    pub quantization: String,
    /// The number of weights.
    pub parameters: u64,
}

impl Described {
    /// Of a file that is open.
    pub fn of(index: &Index) -> Self {
        let architecture = index.architecture.clone();
        let context = format!("{architecture}.context_length");
        Self {
            context: index.metadata.find_u64(&context).ok().flatten(),
            template: index.chat_template.clone().unwrap_or_default(),
            quantization: facts::quantization(index),
            parameters: facts::parameters(index),
            architecture,
        }
    }

    /// Of a file whose beginning is read for it; none where it cannot be.
    pub fn read(path: &Path) -> Option<Self> {
        let file = ModelFile::open(path).ok()?;
        Some(Self::of(file.index()))
    }

    /// The number of weights as it is spoken of: "8.0B", "135M".
    pub fn size(&self) -> String {
        match self.parameters {
            0 => String::new(),
            count if count >= 1_000_000_000 => format!("{:.1}B", count as f64 / 1e9),
            count if count >= 1_000_000 => format!("{:.0}M", count as f64 / 1e6),
            count => format!("{count}"),
        }
    }
}

/// What files say of themselves, read once for each state of a file.
#[derive(Debug, Default)]
pub struct DescribedFiles(Mutex<HashMap<PathBuf, Seen>>);

#[derive(Debug)]
struct Seen {
    size_bytes: u64,
    modified_s: u64,
    described: Described,
}

impl DescribedFiles {
    /// Of this file; nothing but defaults where it cannot be read.
    pub fn of(&self, listed: &Listed) -> Described {
        let seen = self.seen().get(&listed.path).and_then(|seen| {
            let is_same =
                (seen.size_bytes, seen.modified_s) == (listed.size_bytes, listed.modified_s);
            is_same.then(|| seen.described.clone())
        });
        if let Some(described) = seen {
            return described;
        }
        let Some(described) = Described::read(&listed.path) else {
            return Described::default();
        };
        let mut all = self.seen();
        if all.len() >= LISTED_MAX {
            // Files that are listed no more; the others are read again.
            all.clear();
        }
        let seen = Seen {
            size_bytes: listed.size_bytes,
            modified_s: listed.modified_s,
            described: described.clone(),
        };
        all.insert(listed.path.clone(), seen);
        described
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<PathBuf, Seen>> {
        // Each change is one call, so a panic leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_weights_is_said_as_people_do() {
        for (parameters, expected) in [
            (0, ""),
            (12_345, "12345"),
            (134_515_008, "135M"),
            (1_543_714_304, "1.5B"),
            (8_030_261_248, "8.0B"),
        ] {
            let described = Described {
                parameters,
                ..Described::default()
            };
            assert_eq!(described.size(), expected);
        }
    }

    #[test]
    fn a_file_is_described_without_a_load_and_what_is_none_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tiny.gguf");
        candor_testkit::TinyModel::llama()
            .context(512)
            .write(&path)
            .unwrap();
        let found = Described::read(&path).unwrap();
        assert_eq!(
            (found.architecture.as_str(), found.context),
            ("llama", Some(512))
        );
        assert!(found.parameters > 0 && !found.template.is_empty());
        std::fs::write(&path, "<html>").unwrap();
        assert_eq!(Described::read(&path), None);
    }
}
