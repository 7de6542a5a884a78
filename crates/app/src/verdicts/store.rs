//! A bounded folder of things that can be made again. Each is one file that is replaced as a
//! whole, and a file that is not exactly what was written counts as not there.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

/// Begins every file. The number changes with the layout, and what an older version left is then
/// not read.
const MAGIC: &[u8; 12] = b"candor-f2 01";
/// After the magic: the hash of all that follows.
const HASH_BYTES: usize = 32;
/// After the hash: the length of the key.
const LENGTH_BYTES: usize = 4;

/// Most bytes of one entry. The reference logits of 65 positions take 20 MB with the largest
/// vocabularies of today, in 16 bits.
pub(crate) const ENTRY_BYTES_MAX: usize = 64 << 20;
/// Most bytes of all entries: a dozen models with large vocabularies. The oldest go first.
pub(crate) const STORE_BYTES_MAX: u64 = 256 << 20;
/// A key is a few hundred bytes of text.
const KEY_BYTES_MAX: usize = 4 << 10;

/// Why something kept cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    /// The system does not give it.
    #[error("it could not be read: {0}")]
    Io(#[from] io::Error),
    /// Larger than anything that was ever kept.
    #[error("it has {found} bytes; at most {max} are kept")]
    TooLarge { found: u64, max: usize },
    /// Not what was written.
    #[error("it is damaged")]
    Damaged,
    /// Written for something else.
    #[error("it was kept for something else")]
    OtherKey,
}

/// What lies in the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Entries that can be used.
    pub whole: usize,
    /// Those that cannot, and why.
    pub damaged: Vec<String>,
    /// Bytes of all.
    pub bytes: u64,
}

/// The folder.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    bytes_max: u64,
}

impl Store {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self::bounded(folder, STORE_BYTES_MAX)
    }

    fn bounded(folder: PathBuf, bytes_max: u64) -> Self {
        Self { folder, bytes_max }
    }

    /// What was kept under this key; none if nothing was. Using it makes it the newest.
    pub(crate) fn get(&self, key: &str, now_ms: i64) -> Result<Option<Vec<u8>>, Unusable> {
        let file = match File::open(self.file(key)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let bytes = read(&file)?;
        let (found, value) = unwrapped(&bytes)?;
        if found != key.as_bytes() {
            return Err(Unusable::OtherKey);
        }
        let value = value.to_vec();
        // Only decides which goes first, so it may fail.
        file.set_modified(time(now_ms)).ok();
        Ok(Some(value))
    }

    /// Keeps something in the place of what was kept before, and lets the oldest go where it is
    /// too much in all.
    pub(crate) fn put(&self, key: &str, value: &[u8], now_ms: i64) -> Result<(), Unusable> {
        if value.len() > ENTRY_BYTES_MAX || key.len() > KEY_BYTES_MAX {
            return Err(Unusable::TooLarge {
                found: value.len() as u64,
                max: ENTRY_BYTES_MAX,
            });
        }
        fs::create_dir_all(&self.folder)?;
        let file = self.file(key);
        // Two programs may keep the same thing at once; each writes a file of its own.
        let beside = file.with_extension(format!("new-{}", std::process::id()));
        let written = write(&beside, &wrapped(key, value), now_ms);
        let written = written.and_then(|()| fs::rename(&beside, &file));
        if written.is_err() {
            fs::remove_file(&beside).ok();
        }
        written?;
        self.trim(&file)?;
        Ok(())
    }

    /// What lies in the folder. Reads all of it.
    pub(crate) fn kept(&self) -> Kept {
        let mut kept = Kept::default();
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            kept.bytes += fs::metadata(&path).map_or(0, |found| found.len());
            match look(&path) {
                Ok(()) => kept.whole += 1,
                Err(why) => {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    kept.damaged.push(format!("{name}: {why}"));
                }
            }
        }
        kept
    }

    /// Forgets what was kept under this key.
    pub(crate) fn forget(&self, key: &str) {
        // What is not there is forgotten.
        fs::remove_file(self.file(key)).ok();
    }

    fn file(&self, key: &str) -> PathBuf {
        self.folder
            .join(format!("{}.f2", hex(&Sha256::digest(key))))
    }

    /// Removes the oldest files, those that a killed program left half written among them, until
    /// the rest fits. The one just kept stays.
    fn trim(&self, kept: &Path) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let found = entry.metadata()?;
            if found.is_file() && entry.path() != kept {
                files.push((found.modified()?, found.len(), entry.path()));
            }
        }
        files.sort();
        let mut sum: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        sum += fs::metadata(kept)?.len();
        for (_, bytes, path) in files {
            if sum <= self.bytes_max {
                break;
            }
            // Another program may have removed it already.
            fs::remove_file(path).ok();
            sum -= bytes;
        }
        Ok(())
    }
}

fn write(path: &Path, bytes: &[u8], now_ms: i64) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.set_modified(time(now_ms))?;
    file.sync_all()
}

fn time(now_ms: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(now_ms).unwrap_or(0))
}

fn wrapped(key: &str, value: &[u8]) -> Vec<u8> {
    let length = u32::try_from(key.len()).expect("the length of a key was checked");
    let body = [&length.to_le_bytes()[..], key.as_bytes(), value].concat();
    [&MAGIC[..], &Sha256::digest(&body), &body].concat()
}

/// All of a file that is not larger than any that was ever kept.
fn read(file: &File) -> Result<Vec<u8>, Unusable> {
    let found = file.metadata()?.len();
    let max = MAGIC.len() + HASH_BYTES + LENGTH_BYTES + KEY_BYTES_MAX + ENTRY_BYTES_MAX;
    if found > max as u64 {
        return Err(Unusable::TooLarge { found, max });
    }
    let mut bytes = Vec::new();
    file.take(max as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a file is as it was written.
fn look(path: &Path) -> Result<(), Unusable> {
    unwrapped(&read(&File::open(path)?)?).map(drop)
}

/// Key and value.
fn unwrapped(bytes: &[u8]) -> Result<(&[u8], &[u8]), Unusable> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(Unusable::Damaged)?;
    let (hash, body) = rest.split_at_checked(HASH_BYTES).ok_or(Unusable::Damaged)?;
    if Sha256::digest(body)[..] != *hash {
        return Err(Unusable::Damaged);
    }
    let (length, rest) = body
        .split_first_chunk::<LENGTH_BYTES>()
        .ok_or(Unusable::Damaged)?;
    let length = u32::from_le_bytes(*length) as usize;
    rest.split_at_checked(length).ok_or(Unusable::Damaged)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Room for two entries of this many bytes.
    const VALUE_BYTES: usize = 1_000;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::bounded(dir.path().join("verdicts"), 2_500);
        (dir, store)
    }

    fn kept(store: &Store, key: &str) -> bool {
        store.get(key, 0).unwrap().is_some()
    }

    #[test]
    fn what_was_kept_comes_back_and_the_last_word_counts() {
        let (_dir, store) = store();
        assert_eq!(store.get("a", 1).unwrap(), None);
        store.put("a", b"one", 1).unwrap();
        store.put("b", b"", 2).unwrap();
        store.put("a", b"two", 3).unwrap();
        assert_eq!(store.get("a", 4).unwrap().unwrap(), b"two");
        assert_eq!(store.get("b", 4).unwrap().unwrap(), b"");
        store.forget("a");
        assert_eq!(store.get("a", 5).unwrap(), None);
        let names = fs::read_dir(&store.folder).unwrap().count();
        assert_eq!(names, 1, "nothing is left beside what is kept");
    }

    #[test]
    fn the_oldest_go_first_and_use_makes_young() {
        let (_dir, store) = store();
        let value = vec![7; VALUE_BYTES];
        store.put("a", &value, 1_000).unwrap();
        store.put("b", &value, 2_000).unwrap();
        assert!(store.get("a", 3_000).unwrap().is_some());
        store.put("c", &value, 4_000).unwrap();
        assert!(kept(&store, "a") && !kept(&store, "b") && kept(&store, "c"));
        // The newest stays even where it is alone too much.
        store.put("d", &vec![7; 3 * VALUE_BYTES], 5_000).unwrap();
        assert!(kept(&store, "d") && !kept(&store, "a") && !kept(&store, "c"));
    }

    #[test]
    fn what_was_left_half_written_is_cleared_away() {
        let (_dir, store) = store();
        store.put("a", b"one", 1).unwrap();
        let left = store.file("x").with_extension("new-77");
        fs::write(&left, vec![0; 3 * VALUE_BYTES]).unwrap();
        File::options()
            .write(true)
            .open(&left)
            .unwrap()
            .set_modified(time(0))
            .unwrap();
        store.put("b", b"two", 2).unwrap();
        assert!(!left.exists());
        assert!(kept(&store, "a"));
    }

    #[test]
    fn a_file_that_is_not_what_was_written_counts_as_damaged() {
        let (_dir, store) = store();
        store.put("a", &[5; 100], 1).unwrap();
        let whole = fs::read(store.file("a")).unwrap();
        let mut cases: Vec<Vec<u8>> = (0..whole.len()).map(|len| whole[..len].to_vec()).collect();
        for place in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[place] ^= 1;
            cases.push(flipped);
        }
        cases.push([&whole[..], b"more"].concat());
        for bytes in cases {
            fs::write(store.file("a"), &bytes).unwrap();
            let found = store.get("a", 2);
            assert!(matches!(found, Err(Unusable::Damaged)), "{found:?}");
        }
        fs::copy(store.file("a"), store.file("b")).unwrap();
        fs::write(store.file("b"), &whole).unwrap();
        assert!(matches!(store.get("b", 2), Err(Unusable::OtherKey)));
    }

    #[test]
    fn what_is_too_large_is_refused_both_ways() {
        let (_dir, store) = store();
        let value = vec![0; ENTRY_BYTES_MAX + 1];
        assert!(matches!(
            store.put("a", &value, 1),
            Err(Unusable::TooLarge { .. })
        ));
        fs::create_dir_all(&store.folder).unwrap();
        let file = File::create(store.file("a")).unwrap();
        file.set_len(2 * ENTRY_BYTES_MAX as u64).unwrap();
        assert!(matches!(store.get("a", 1), Err(Unusable::TooLarge { .. })));
    }
}
