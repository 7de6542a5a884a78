//! What the processor gave for the text by which cards are checked, kept for the next start, so
//! that a card is checked again with every load and the processor does not have to.

mod identity;
mod store;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use candor_engine::{Key, VerdictMemory, VerdictStore};
use candor_modelfile::{Assumed, ModelFile};

use crate::config::Clock;
use store::Store;

pub use store::Kept;

/// The folder in that of all that can be made again.
const FOLDER: &str = "verdicts";

/// Whether what was kept is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recall {
    /// It is.
    Kept,
    /// The processor is asked anew, and what it gives is kept.
    Nothing,
}

/// Where verdicts are kept, and by which clock.
#[derive(Clone)]
pub struct Verdicts {
    folder: PathBuf,
    clock: Clock,
    version: String,
}

impl Verdicts {
    /// In this cache folder, for this version of the program.
    pub fn new(cache: &Path, clock: Clock, version: &str) -> Self {
        Self {
            folder: cache.join(FOLDER),
            clock,
            version: version.to_owned(),
        }
    }

    /// What is kept of a model file; none if the file cannot be read, which its load will say.
    pub fn of(&self, path: &Path, assumed: &Assumed, recall: Recall) -> Option<VerdictMemory> {
        let file = ModelFile::open_as(path, assumed).ok()?;
        let mut name = identity::identity(&file).ok()?;
        if *assumed != Assumed::default() {
            // Another graph than the file's own.
            name.push_str(&format!(" {assumed:?}"));
        }
        Some(VerdictMemory {
            store: Arc::new(OnDisk {
                store: Store::new(self.folder.clone()),
                clock: self.clock.clone(),
                recall,
            }),
            file: name,
            version: self.version.clone(),
        })
    }

    /// What lies in the folder, for a person who looks at it.
    pub fn kept(&self) -> Kept {
        Store::new(self.folder.clone()).kept()
    }
}

struct OnDisk {
    store: Store,
    clock: Clock,
    recall: Recall,
}

impl VerdictStore for OnDisk {
    fn recall(&self, key: &Key) -> Option<Vec<u8>> {
        if self.recall == Recall::Nothing {
            return None;
        }
        let name = text(key);
        match self.store.get(&name, (self.clock.now_ms)()) {
            Ok(found) => found,
            Err(_) => {
                // Of no use to anybody, and the next check writes it anew.
                self.store.forget(&name);
                None
            }
        }
    }

    fn keep(&self, key: &Key, bytes: &[u8]) {
        // Where it cannot be kept the processor is asked again next time.
        self.store
            .put(&text(key), bytes, (self.clock.now_ms)())
            .ok();
    }
}

/// The parts on lines of their own, so that no two keys make the same text.
fn text(key: &Key) -> String {
    let Key {
        file,
        device,
        fingerprint,
        version,
    } = key;
    let parts = [file, device, fingerprint, version].map(|part| part.replace('\n', " "));
    parts.join("\n")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::time::Instant;

    use candor_testkit::TinyModel;

    use super::*;

    fn key(memory: &VerdictMemory, device: &str) -> Key {
        Key {
            file: memory.file.clone(),
            device: device.to_owned(),
            fingerprint: String::from("driver 1"),
            version: memory.version.clone(),
        }
    }

    #[test]
    fn each_model_device_and_version_has_its_own_and_damage_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let now = Arc::new(AtomicI64::new(1));
        let clock = Clock {
            now_ms: Arc::new(move || now.fetch_add(1, Ordering::Relaxed)),
            instant: Arc::new(Instant::now),
        };
        let model = dir.path().join("tiny.gguf");
        TinyModel::llama().write(&model).unwrap();
        let (none, cache) = (Assumed::default(), dir.path().join("cache"));
        let verdicts = |version| Verdicts::new(&cache, clock.clone(), version);
        let of = |version, recall| verdicts(version).of(&model, &none, recall).unwrap();

        let one = of("1", Recall::Kept);
        one.store.keep(&key(&one, "a card"), b"logits");
        let recalled = |memory: &VerdictMemory, device| memory.store.recall(&key(memory, device));
        assert_eq!(
            recalled(&of("1", Recall::Kept), "a card").unwrap(),
            b"logits"
        );
        assert_eq!(recalled(&of("1", Recall::Nothing), "a card"), None);
        assert_eq!(recalled(&one, "another card"), None);
        assert_eq!(recalled(&of("2", Recall::Kept), "a card"), None);
        assert!(
            verdicts("1")
                .of(&dir.path().join("none"), &none, Recall::Kept)
                .is_none()
        );

        let kept = verdicts("1").kept();
        assert_eq!((kept.whole, kept.damaged.len()), (1, 0));
        let file = std::fs::read_dir(cache.join(FOLDER))
            .unwrap()
            .next()
            .unwrap()
            .unwrap();
        std::fs::write(file.path(), "damaged").unwrap();
        assert_eq!(verdicts("1").kept().damaged.len(), 1);
        assert_eq!(recalled(&one, "a card"), None);
        assert_eq!(verdicts("1").kept().damaged.len(), 0, "it was forgotten");
    }
}
