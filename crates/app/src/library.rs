//! The models that are known: those opened before, and those in the program's own folder.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use candor_modelfile::gguf::split::PartName;
use candor_modelfile::limits::SPLIT_PARTS_MAX;
use rusqlite::params;

use crate::conversations::Store;
use crate::error::{Error, Thing};
use crate::wire::{Code, ModelEntry, Starter};
use crate::words::{Tongue, phrase};
use crate::{folders, path_id};

/// Most entries that are shown. More than this nobody looks through, also with a search.
const ENTRIES_MAX: usize = 2_000;

/// A model's line in the store.
struct Known {
    path: PathBuf,
    last_used_ms: Option<i64>,
    forgotten: bool,
}

impl Store {
    /// Notes a model, and that it is wanted in the list.
    pub(crate) fn add_model(&self, path: &Path) -> Result<(), Error> {
        let sql = "INSERT INTO model (path) VALUES (?1)
                   ON CONFLICT (path) DO UPDATE SET forgotten = 0";
        self.connection().execute(sql, [path_id::to_bytes(path)])?;
        Ok(())
    }

    /// Notes that a model was opened.
    pub(crate) fn model_used(&self, path: &Path, now_ms: i64) -> Result<(), Error> {
        let sql = "INSERT INTO model (path, last_used_ms) VALUES (?1, ?2)
                   ON CONFLICT (path) DO UPDATE SET last_used_ms = ?2, forgotten = 0";
        self.connection()
            .execute(sql, params![path_id::to_bytes(path), now_ms])?;
        Ok(())
    }

    /// Takes a model out of the list; one in the program's folder too.
    pub(crate) fn forget_model(&self, path: &Path) -> Result<(), Error> {
        let sql = "INSERT INTO model (path, forgotten) VALUES (?1, 1)
                   ON CONFLICT (path) DO UPDATE SET forgotten = 1, last_used_ms = NULL";
        self.connection().execute(sql, [path_id::to_bytes(path)])?;
        Ok(())
    }

    /// Notes what was found in a folder; what was taken out of the list stays out of it.
    pub(crate) fn note_found(&self, paths: &[PathBuf]) -> Result<(), Error> {
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        for path in paths {
            let sql = "INSERT OR IGNORE INTO model (path) VALUES (?1)";
            let mut statement = transaction.prepare_cached(sql)?;
            statement.execute([path_id::to_bytes(path)])?;
        }
        Ok(transaction.commit()?)
    }

    /// Takes out of the list what was found in a folder and never opened, unless another folder
    /// has it too.
    pub(crate) fn forget_found(
        &self,
        folder: &Path,
        is_elsewhere: &dyn Fn(&Path) -> bool,
    ) -> Result<(), Error> {
        let found = self.known_models()?.into_iter().filter(|model| {
            let never_opened = model.last_used_ms.is_none() && !model.forgotten;
            never_opened && model.path.starts_with(folder) && !is_elsewhere(&model.path)
        });
        let connection = self.connection();
        for model in found {
            let sql = "DELETE FROM model WHERE path = ?1";
            connection.execute(sql, [path_id::to_bytes(&model.path)])?;
        }
        Ok(())
    }

    fn known_models(&self) -> Result<Vec<Known>, Error> {
        let connection = self.connection();
        let sql = "SELECT path, last_used_ms, forgotten FROM model";
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map([], |row| {
            let path: Vec<u8> = row.get(0)?;
            let path = path_id::from_bytes(&path);
            Ok(Known {
                path,
                last_used_ms: row.get(1)?,
                forgotten: row.get(2)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// Every model that is known, newest use first, then by name. A file that is gone stays listed as
/// missing: its drive may only be unplugged.
pub(crate) fn models(store: &Store, folder: &Path) -> Result<Vec<ModelEntry>, Error> {
    let mut known = store.known_models()?;
    // The program's own folder is looked at each time: a model that was just put there is there.
    let listed: HashSet<PathBuf> = known.iter().map(|model| whole(&model.path)).collect();
    let found = in_folder(folder)
        .into_iter()
        .filter(|path| !listed.contains(&whole(path)));
    known.extend(found.map(|path| Known {
        path,
        last_used_ms: None,
        forgotten: false,
    }));
    known.retain(|model| !model.forgotten);
    known.sort_by(|a, b| {
        b.last_used_ms
            .cmp(&a.last_used_ms)
            .then_with(|| a.path.cmp(&b.path))
    });
    // Of a split model one part stands for the whole: the one that was used last.
    let mut seen = HashSet::new();
    known.retain(|model| seen.insert(whole(&model.path)));
    known.truncate(ENTRIES_MAX);
    Ok(known
        .iter()
        .map(|model| entry(&model.path, model.last_used_ms))
        .collect())
}

/// The entry of a path.
pub(crate) fn entry(path: &Path, last_used_ms: Option<i64>) -> ModelEntry {
    let size = size(path);
    ModelEntry {
        id: path_id::encode(path),
        name: shown_name(path),
        folder: path
            .parent()
            .unwrap_or(Path::new(""))
            .to_string_lossy()
            .into_owned(),
        size_bytes: size.map(|bytes| bytes as f64),
        missing: size.is_none(),
        last_used_ms: last_used_ms.map(|ms| ms as f64),
    }
}

/// What all parts of a split model have in common: the path of the first; of any other model its
/// own.
fn whole(path: &Path) -> PathBuf {
    let name = path.file_name().and_then(|name| name.to_str());
    match name.and_then(PartName::of) {
        Some(part) => path.with_file_name(part.file_name(1)),
        None => path.to_owned(),
    }
}

/// Bytes of a file, and of the other parts of a split model that are there; `None` if the file
/// itself is not.
pub(crate) fn size(path: &Path) -> Option<u64> {
    let bytes = |path: &Path| {
        let facts = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(facts.len())
    };
    let own = bytes(path)?;
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(part) = name.and_then(PartName::of) else {
        return Some(own);
    };
    let parts = (1..=part.parts.min(SPLIT_PARTS_MAX)).map(|number| part.file_name(number));
    Some(
        parts
            .filter_map(|name| bytes(&path.with_file_name(name)))
            .sum(),
    )
}

/// A file's name exactly as it is, each byte that is no text as the replacement sign.
pub(crate) fn shown_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// The path of an id.
pub(crate) fn path_of(id: &str) -> Result<PathBuf, Error> {
    path_id::decode(id).ok_or_else(|| Error::not_found(Thing::Model))
}

/// The full path of a model that was typed, dropped or picked.
pub(crate) fn located(path: &Path) -> Result<PathBuf, Error> {
    // Not resolved further: a link is shown under the name that the user gave it.
    std::path::absolute(path).map_err(|source| {
        let message = phrase!(
            "{path} is no path: {source}.",
            "{path} ist kein Pfad: {source}.",
            path = path.display(),
            source,
        );
        Error::new(Code::NotFound, message).because(source)
    })
}

/// The model files of a folder.
pub(crate) fn in_folder(folder: &Path) -> Vec<PathBuf> {
    // What is wrong with it is told with the folders.
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let is_model = |path: &PathBuf| folders::is_model(path) && path.is_file();
    paths.filter(is_model).take(ENTRIES_MAX).collect()
}

/// The first of these files that is there.
pub(crate) fn starter(candidates: &[PathBuf], tongue: Tongue) -> Starter {
    let found = candidates.iter().find_map(|path| {
        let facts = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some((path, facts.len()))
    });
    match found {
        Some((path, bytes)) => Starter::Ready {
            id: path_id::encode(path),
            // A larger file would not be a model to start with.
            size_bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        },
        None => {
            let why = phrase!(
                "The starter model is not on this computer.",
                "Das Startmodell ist nicht auf diesem Rechner.",
            );
            Starter::Absent {
                why: why.to(tongue),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::AppPaths;

    struct Shelf {
        dir: tempfile::TempDir,
        store: Store,
    }

    impl Shelf {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::open(&AppPaths::below(dir.path()), 1).unwrap().store;
            Self { dir, store }
        }

        fn folder(&self) -> PathBuf {
            self.dir.path().join("models")
        }

        fn file(&self, name: impl AsRef<Path>) -> PathBuf {
            let path = self.dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "model").unwrap();
            path
        }

        fn names(&self) -> Vec<String> {
            let models = models(&self.store, &self.folder()).unwrap();
            models.into_iter().map(|model| model.name).collect()
        }
    }

    #[test]
    fn the_last_used_comes_first_and_the_own_folder_is_listed() {
        let shelf = Shelf::new();
        let (a, b) = (shelf.file("a.gguf"), shelf.file("b.gguf"));
        shelf.file("models/c.GGUF");
        shelf.file("models/notes.txt");
        shelf.store.model_used(&a, 10).unwrap();
        shelf.store.model_used(&b, 20).unwrap();
        assert_eq!(shelf.names(), ["b.gguf", "a.gguf", "c.GGUF"]);
        shelf.store.model_used(&a, 30).unwrap();
        assert_eq!(shelf.names(), ["a.gguf", "b.gguf", "c.GGUF"]);
    }

    #[test]
    fn a_split_model_is_one_entry_with_the_size_of_all_parts() {
        let shelf = Shelf::new();
        for part in 1..=3 {
            shelf.file(format!("models/m-0000{part}-of-00003.gguf"));
        }
        shelf.file("models/other.apr");
        let check = |name: &str| {
            let listed = models(&shelf.store, &shelf.folder()).unwrap();
            let found: Vec<_> = listed
                .iter()
                .map(|m| (m.name.as_str(), m.size_bytes))
                .collect();
            assert_eq!(found, [(name, Some(15.0)), ("other.apr", Some(5.0))]);
        };
        check("m-00001-of-00003.gguf");
        let second = shelf.folder().join("m-00002-of-00003.gguf");
        shelf.store.model_used(&second, 10).unwrap();
        check("m-00002-of-00003.gguf");
    }

    #[test]
    fn a_missing_file_stays_listed_and_comes_back() {
        let shelf = Shelf::new();
        let path = shelf.file("drive/a.gguf");
        shelf.store.model_used(&path, 10).unwrap();
        fs::remove_file(&path).unwrap();
        let listed = models(&shelf.store, &shelf.folder()).unwrap();
        assert!(listed[0].missing && listed[0].size_bytes.is_none());
        shelf.file("drive/a.gguf");
        let listed = models(&shelf.store, &shelf.folder()).unwrap();
        assert_eq!(
            (listed[0].missing, listed[0].size_bytes),
            (false, Some(5.0))
        );
    }

    #[test]
    fn what_was_found_in_a_folder_stays_and_goes_with_the_folder() {
        let shelf = Shelf::new();
        let (a, b) = (shelf.file("drive/a.gguf"), shelf.file("drive/in/b.gguf"));
        let c = shelf.file("drive/in/c.gguf");
        let found = [a.clone(), b.clone(), c.clone()];
        shelf.store.note_found(&found).unwrap();
        shelf.store.model_used(&b, 10).unwrap();
        shelf.store.forget_model(&c).unwrap();
        // The drive is unplugged: what was found on it is missing, and listed.
        fs::remove_dir_all(shelf.dir.path().join("drive")).unwrap();
        let listed = models(&shelf.store, &shelf.folder()).unwrap();
        let told: Vec<_> = listed
            .iter()
            .map(|model| (model.name.as_str(), model.missing))
            .collect();
        assert_eq!(told, [("b.gguf", true), ("a.gguf", true)]);
        // Another search does not bring back what was taken out of the list.
        shelf.store.note_found(&found).unwrap();
        assert_eq!(shelf.names(), ["b.gguf", "a.gguf"]);
        // Without the folder only what was opened is left.
        let drive = shelf.dir.path().join("drive");
        shelf.store.forget_found(&drive, &|path| path == a).unwrap();
        assert_eq!(shelf.names(), ["b.gguf", "a.gguf"]);
        shelf.store.forget_found(&drive, &|_| false).unwrap();
        assert_eq!(shelf.names(), ["b.gguf"]);
    }

    #[test]
    fn a_forgotten_model_stays_away_until_it_is_added() {
        let shelf = Shelf::new();
        let path = shelf.file("models/a.gguf");
        shelf.store.forget_model(&path).unwrap();
        assert!(shelf.names().is_empty());
        assert!(path.exists());
        shelf.store.add_model(&path).unwrap();
        assert_eq!(shelf.names(), ["a.gguf"]);
    }

    #[test]
    fn every_name_is_shown_as_it_is_and_found_again() {
        let shelf = Shelf::new();
        let name = "Модели  é ü 田中\u{3000}/qwen tiny 🙂 (final) #1 100%.gguf";
        let (composed, decomposed) = ("\u{e9}.gguf", "e\u{301}.gguf");
        let mut paths = vec![
            shelf.file(name),
            shelf.file(composed),
            shelf.file(decomposed),
        ];
        #[cfg(unix)]
        paths.push(shelf.file(path_id::from_bytes(b"\xff\xfe.gguf")));
        for path in &paths {
            shelf.store.add_model(path).unwrap();
        }
        let listed = models(&shelf.store, &shelf.folder()).unwrap();
        assert_eq!(listed.len(), paths.len());
        for path in &paths {
            let entry = listed
                .iter()
                .find(|entry| path_of(&entry.id).unwrap() == *path)
                .unwrap();
            assert!(!entry.missing, "{path:?}");
            assert_eq!(entry.name, path.file_name().unwrap().to_string_lossy());
        }
        #[cfg(unix)]
        assert!(
            listed
                .iter()
                .any(|entry| entry.name == "\u{fffd}\u{fffd}.gguf")
        );
    }

    #[test]
    fn the_starter_is_the_first_candidate_that_is_there() {
        let shelf = Shelf::new();
        let (gone, here) = (shelf.dir.path().join("gone.gguf"), shelf.file("here.gguf"));
        let id = path_id::encode(&here);
        assert_eq!(
            starter(&[gone.clone(), here], Tongue::English),
            Starter::Ready { id, size_bytes: 5 }
        );
        let absent = starter(&[gone], Tongue::German);
        assert!(matches!(absent, Starter::Absent { why } if why.contains("Startmodell")));
    }
}
