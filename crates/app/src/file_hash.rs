//! The SHA-256 of model files. Reading one takes seconds, so each is read once, when somebody wants
//! to know, and what came out is kept as long as the file has the same size and time.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::path_id;
use crate::words::German;

/// Files that are remembered. The oldest go first.
const FILES_MAX: usize = 256;

/// Largest list that is read back; 256 files take some 100 kB.
const LIST_BYTES_MAX: u64 = 4 << 20;

/// Bytes that are read at once, and between two looks whether to stop.
const READ_BYTES: usize = 1 << 20;

/// What tells one state of a file from another without reading it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileStamp {
    pub(crate) size_bytes: u64,
    /// Nanoseconds since 1970.
    pub(crate) changed_ns: u64,
}

impl FileStamp {
    /// Of the file at this path, as it is now.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|found| Self::of_metadata(&found))
    }

    fn of_metadata(found: &Metadata) -> Self {
        let changed = found.modified().ok();
        let since = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let nanos = since.map_or(0, |since| since.as_nanos());
        Self {
            size_bytes: found.len(),
            changed_ns: u64::try_from(nanos).unwrap_or(u64::MAX),
        }
    }
}

/// Why a file has no hash.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HashError {
    /// It cannot be read.
    #[error("the file cannot be read: {0}")]
    Io(#[from] io::Error),
    /// Somebody wrote into it while it was read.
    #[error("the file was changed while it was read")]
    Changed,
    /// Nobody wants to know any more.
    #[error("it was stopped")]
    Stopped,
}

impl German for HashError {
    fn german(&self) -> String {
        match self {
            Self::Io(source) => format!("die Datei lässt sich nicht lesen: {source}"),
            Self::Changed => String::from("die Datei wurde geändert, während sie gelesen wurde"),
            Self::Stopped => String::from("es wurde angehalten"),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Known {
    stamp: FileStamp,
    sha256: String,
    /// Counts up, so that the oldest can go first.
    number: u64,
}

/// What is known of files, by the ids of their paths.
#[derive(Debug)]
pub(crate) struct FileHashes {
    list: PathBuf,
    known: Mutex<Option<BTreeMap<String, Known>>>,
}

impl FileHashes {
    /// With a list at this path, which is read when it is needed first.
    pub(crate) fn new(list: PathBuf) -> Self {
        let known = Mutex::default();
        Self { list, known }
    }

    /// The hash of a file in this state, if it is known.
    pub(crate) fn known(&self, path: &Path, stamp: FileStamp) -> Option<String> {
        self.with(|known| {
            let found = known.get(&path_id::encode(path));
            let found = found.filter(|found| found.stamp == stamp);
            found.map(|found| found.sha256.clone())
        })
    }

    /// The hash of a file as it is now: from memory, or by reading all of it.
    ///
    /// # Errors
    /// [`HashError`].
    pub(crate) fn of(
        &self,
        path: &Path,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(FileStamp, String), HashError> {
        let file = File::open(path)?;
        let stamp = FileStamp::of_metadata(&file.metadata()?);
        if let Some(sha256) = self.known(path, stamp) {
            return Ok((stamp, sha256));
        }
        let sha256 = hash(&file, stopped)?;
        if FileStamp::of(path)? != stamp {
            return Err(HashError::Changed);
        }
        self.keep(path, stamp, &sha256);
        Ok((stamp, sha256))
    }

    fn keep(&self, path: &Path, stamp: FileStamp, sha256: &str) {
        let json = self.with(|known| {
            let number = known.values().map(|known| known.number + 1).max();
            let new = Known {
                stamp,
                sha256: sha256.to_owned(),
                number: number.unwrap_or(0),
            };
            known.insert(path_id::encode(path), new);
            while known.len() > FILES_MAX {
                let oldest = known.iter().min_by_key(|(_, known)| known.number);
                let Some(id) = oldest.map(|(id, _)| id.clone()) else {
                    break;
                };
                known.remove(&id);
            }
            serde_json::to_vec(known).ok()
        });
        // A list that cannot be written costs reading the file once more.
        if let Some(json) = json {
            let beside = self.list.with_extension("new");
            let written = self.list.parent().map_or(Ok(()), fs::create_dir_all);
            let written = written.and_then(|()| fs::write(&beside, json));
            written.and_then(|()| fs::rename(&beside, &self.list)).ok();
        }
    }

    fn with<T>(&self, look: impl FnOnce(&mut BTreeMap<String, Known>) -> T) -> T {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        look(known.get_or_insert_with(|| read(&self.list)))
    }
}

/// A list that cannot be read is none.
fn read(list: &Path) -> BTreeMap<String, Known> {
    let Ok(file) = File::open(list) else {
        return BTreeMap::new();
    };
    let mut json = Vec::new();
    let read = file.take(LIST_BYTES_MAX).read_to_end(&mut json);
    let known = read.ok().and_then(|_| serde_json::from_slice(&json).ok());
    known.unwrap_or_default()
}

fn hash(mut file: &File, stopped: &dyn Fn() -> bool) -> Result<String, HashError> {
    let mut hash = Sha256::new();
    let mut bytes = vec![0; READ_BYTES];
    loop {
        if stopped() {
            return Err(HashError::Stopped);
        }
        match file.read(&mut bytes)? {
            0 => return Ok(hex(&hash.finalize())),
            count => hash.update(&bytes[..count]),
        }
    }
}

/// The SHA-256 of a text, or of tokens as little-endian bytes.
pub(crate) fn sha256(bytes: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of "abc", as FIPS 180-4 gives it.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_file_is_read_once_for_each_of_its_states() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("model 田.gguf");
        fs::write(&file, "abc").unwrap();
        let list = dir.path().join("below").join("hashes.json");
        let hashes = FileHashes::new(list.clone());
        let never = || false;
        let (stamp, found) = hashes.of(&file, &never).unwrap();
        assert_eq!((found.as_str(), stamp.size_bytes), (ABC, 3));
        // Known, so it is not read: whoever reads is stopped at once.
        assert_eq!(hashes.of(&file, &|| true).unwrap().1, ABC);
        let later = FileHashes::new(list.clone());
        assert_eq!(later.known(&file, stamp).as_deref(), Some(ABC));
        fs::write(&file, "abcd").unwrap();
        let changed = FileStamp::of(&file).unwrap();
        assert_eq!(later.known(&file, changed), None);
        assert!(matches!(later.of(&file, &|| true), Err(HashError::Stopped)));
        assert_ne!(later.of(&file, &never).unwrap().1, ABC);
        // A damaged list is none.
        fs::write(&list, "{").unwrap();
        assert_eq!(FileHashes::new(list).known(&file, changed), None);
    }

    #[test]
    fn the_list_is_bounded_and_the_oldest_go_first() {
        let dir = tempfile::tempdir().unwrap();
        let hashes = FileHashes::new(dir.path().join("hashes.json"));
        let stamp = FileStamp::default();
        for number in 0..=FILES_MAX {
            hashes.keep(&dir.path().join(number.to_string()), stamp, ABC);
        }
        assert_eq!(hashes.known(&dir.path().join("0"), stamp), None);
        assert!(hashes.known(&dir.path().join("1"), stamp).is_some());
    }
}
