//! The folders whose models are listed: the program's own and those that a person chose.
//!
//! They are looked through in a thread, deep and through links, within bounds. What is found is
//! noted in the store, so that a drive that is unplugged leaves its models listed as missing, and
//! they are back with it.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::app::{App, Inner};
use crate::error::Error;
use crate::news::News;
use crate::wire::{Code, FolderState, ModelFolder, Settings};
use crate::words::{Count, Phrase, phrase};
use crate::{library, path_id};

/// How the names of model files end.
const ENDINGS: [&str; 2] = ["gguf", "apr"];

/// How deep a folder is looked through: deeper than people sort, and an end for what has none.
const DEPTH_MAX: usize = 24;
/// Entries that are looked at in one folder: a home directory, but not a whole archive.
const ENTRIES_MAX: usize = 400_000;
/// Models that are taken from one folder.
const MODELS_MAX: usize = 5_000;
/// Sentences that are told of one folder.
const PROBLEMS_MAX: usize = 20;

/// What was found in a folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) state: Option<FolderState>,
    pub(crate) models: Vec<PathBuf>,
    pub(crate) problems: Vec<Phrase>,
}

/// What is known of the folders.
#[derive(Default)]
pub(crate) struct Folders {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// State, number of models and problems of each that was looked through.
    seen: BTreeMap<PathBuf, (FolderState, u32, Vec<Phrase>)>,
    /// Which search is the latest; an older one gives up.
    search: u64,
}

impl Folders {
    fn known(&self) -> MutexGuard<'_, Known> {
        // Each change is complete when the lock is given back.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> u64 {
        let mut known = self.known();
        known.search += 1;
        known.search
    }

    pub(crate) fn stop(&self) {
        self.begin();
    }

    fn is_latest(&self, search: u64) -> bool {
        self.known().search == search
    }
}

/// The models of a folder, wherever in it. `goes_on` is asked at every entry.
pub(crate) fn search(folder: &Path, goes_on: &dyn Fn() -> bool) -> Found {
    let mut found = Found::default();
    // A folder that holds a link to itself has no end; each is entered once, by its real name.
    let mut entered = HashSet::new();
    let mut files = HashSet::new();
    let mut entries = 0;
    let mut to_enter = vec![(folder.to_owned(), 0)];
    while let Some((inside, depth)) = to_enter.pop() {
        let real = fs::canonicalize(&inside);
        if real
            .as_ref()
            .is_ok_and(|real| !entered.insert(real.clone()))
        {
            continue;
        }
        let listed = real.and_then(|_| fs::read_dir(&inside));
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) => {
                found.not_read(folder, &inside, &error);
                continue;
            }
        };
        let mut paths = Vec::new();
        for entry in listed {
            entries += 1;
            if entries > ENTRIES_MAX || found.models.len() >= MODELS_MAX {
                found.problem(phrase!(
                    "Only the first {files} files and {models} models were looked at.",
                    "Nur die ersten {files} Dateien und {models} Modelle wurden angesehen.",
                    files = Count::of(ENTRIES_MAX),
                    models = Count::of(MODELS_MAX),
                ));
                return found;
            }
            if !goes_on() {
                return found;
            }
            match entry {
                Ok(entry) => paths.push(entry.path()),
                Err(error) => found.not_read(folder, &inside, &error),
            }
        }
        // In an order that is the same each time.
        paths.sort();
        for path in paths {
            match fs::metadata(&path) {
                Ok(facts) if facts.is_dir() && depth < DEPTH_MAX => {
                    to_enter.push((path, depth + 1));
                }
                Ok(facts) if facts.is_dir() => found.problem(phrase!(
                    "{path} lies too deep to be looked through.",
                    "{path} liegt zu tief, um durchgesehen zu werden.",
                    path = path.display(),
                )),
                Ok(facts) if facts.is_file() && is_model(&path) => {
                    let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
                    if files.insert(real) {
                        found.models.push(path);
                    }
                }
                Ok(_) => {}
                Err(error) if is_model(&path) => {
                    found.problem(unusable(&path, &error));
                    found.models.push(path);
                }
                // A link to nowhere that is no model, a file that just went.
                Err(_) => {}
            }
        }
    }
    found.models.sort();
    found.state = found.state.or(Some(FolderState::Ready));
    found
}

impl Found {
    fn problem(&mut self, sentence: Phrase) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(sentence);
        }
    }

    /// The folder itself, or one in it, could not be listed.
    fn not_read(&mut self, folder: &Path, inside: &Path, error: &io::Error) {
        if inside == folder {
            self.state = Some(match error.kind() {
                io::ErrorKind::NotFound => FolderState::Missing,
                _ => FolderState::Unreadable,
            });
        }
        self.problem(unusable(inside, error));
    }
}

fn unusable(path: &Path, error: &io::Error) -> Phrase {
    let shown = path.display();
    let why = match error.kind() {
        io::ErrorKind::NotFound if path.is_symlink() => {
            return phrase!(
                "{shown} is a link to a file that is not there.",
                "{shown} ist eine Verknüpfung mit einer Datei, die nicht da ist.",
                shown,
            );
        }
        io::ErrorKind::NotFound => phrase!("it is not there", "nicht da"),
        io::ErrorKind::PermissionDenied => phrase!("it may not be read", "keine Leserechte"),
        _ => Phrase::same(error.to_string()),
    };
    phrase!(
        "{shown} was left out: {why}.",
        "{shown} wurde ausgelassen: {why}.",
        shown,
        why,
    )
}

/// By the end of its name; what it holds is known only once it is opened.
pub(crate) fn is_model(path: &Path) -> bool {
    let is_known = |end: &OsStr| ENDINGS.iter().any(|known| end.eq_ignore_ascii_case(known));
    path.extension().is_some_and(is_known)
}

impl App {
    /// Lists the models of another folder from now on.
    ///
    /// # Errors
    /// [`Code::NotFound`] if it is no folder, or the settings cannot be written.
    pub fn add_model_folder(&self, path: &Path) -> Result<Settings, Error> {
        let path = library::located(path)?;
        if !path.is_dir() {
            let message = phrase!(
                "{path} is no folder.",
                "{path} ist kein Ordner.",
                path = path.display(),
            );
            return Err(Error::new(Code::NotFound, message));
        }
        let id = path_id::encode(&path);
        let mut settings = self.settings();
        if path != self.inner.paths.models_dir() && !settings.model_folders.contains(&id) {
            settings.model_folders.push(id);
        }
        let saved = self.save_settings(settings)?;
        self.inner.search_folders();
        Ok(saved)
    }

    /// Lists the models of a folder no longer, except those that were opened from it. The files
    /// stay.
    ///
    /// # Errors
    /// If the settings or the store cannot be written.
    pub fn remove_model_folder(&self, id: &str) -> Result<Settings, Error> {
        let mut settings = self.settings();
        settings.model_folders.retain(|folder| folder != id);
        let saved = self.save_settings(settings)?;
        let inner = &self.inner;
        if let Some(gone) = path_id::decode(id) {
            inner.folders.known().seen.remove(&gone);
            let kept = inner.folder_paths();
            let is_elsewhere = |model: &Path| kept.iter().any(|folder| model.starts_with(folder));
            inner.store.forget_found(&gone, &is_elsewhere)?;
        }
        inner.search_folders();
        Ok(saved)
    }

    /// Looks through all folders again.
    pub fn search_folders(&self) {
        self.inner.search_folders();
    }
}

impl Inner {
    /// All folders, the program's own first.
    fn folder_paths(&self) -> Vec<PathBuf> {
        let chosen = self.settings().model_folders;
        let chosen = chosen.iter().filter_map(|id| path_id::decode(id));
        std::iter::once(self.paths.models_dir())
            .chain(chosen)
            .collect()
    }

    /// The folders as a window shows them.
    pub(crate) fn folders(&self) -> Vec<ModelFolder> {
        let paths = self.folder_paths();
        let known = self.folders.known();
        let tongue = self.tongue();
        let told = |problem: Phrase| problem.to(tongue);
        let folders = paths.iter().enumerate().map(|(at, path)| {
            let (state, models, problems) =
                known
                    .seen
                    .get(path)
                    .cloned()
                    .unwrap_or((FolderState::Scanning, 0, Vec::new()));
            // Nobody has to know that a folder is made with the first download.
            let is_new = at == 0 && state == FolderState::Missing;
            ModelFolder {
                id: path_id::encode(path),
                path: path.to_string_lossy().into_owned(),
                own: at == 0,
                state: if is_new { FolderState::Ready } else { state },
                models,
                problems: match is_new {
                    true => Vec::new(),
                    false => problems.into_iter().map(told).collect(),
                },
            }
        });
        folders.collect()
    }

    pub(crate) fn publish_folders(&self) {
        self.listeners.tell(&News::Folders(self.folders()));
    }

    /// Looks through all folders in a thread; a search before this one gives up.
    pub(crate) fn search_folders(self: &Arc<Self>) {
        let search = self.folders.begin();
        let inner = Arc::downgrade(self);
        let paths = self.folder_paths();
        self.publish_folders();
        // Not waited for when the app closes: a share that does not answer holds its caller long.
        let thread = thread::Builder::new().name(String::from("folders"));
        let spawned = thread.spawn(move || {
            for path in paths {
                let goes_on = || {
                    let inner = inner.upgrade();
                    inner.is_some_and(|inner| inner.folders.is_latest(search))
                };
                let found = self::search(&path, &goes_on);
                let Some(inner) = inner.upgrade() else { return };
                if !inner.folders.is_latest(search) {
                    return;
                }
                inner.searched(path, found);
            }
        });
        // Without a thread the list stays as it is.
        drop(spawned);
    }

    fn searched(&self, folder: PathBuf, found: Found) {
        let count = u32::try_from(found.models.len()).unwrap_or(u32::MAX);
        // What cannot be noted is found again with the next search.
        self.store.note_found(&found.models).ok();
        let state = found.state.unwrap_or(FolderState::Ready);
        self.folders
            .known()
            .seen
            .insert(folder, (state, count, found.problems));
        self.publish_folders();
        self.publish_models();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(root: &Path, name: &str) -> PathBuf {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "model").unwrap();
        path
    }

    fn names(root: &Path, found: &Found) -> Vec<String> {
        let models = found.models.iter();
        let names = models.map(|path| path.strip_prefix(root).unwrap().to_string_lossy().into());
        names.collect()
    }

    #[test]
    fn models_are_found_wherever_they_lie_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for name in [
            "a.gguf",
            "deep/er/b.GGUF",
            "deep/c.apr",
            "Модели é/d e.gguf",
            "notes.txt",
            "half.gguf.part",
            "gguf",
        ] {
            file(root, name);
        }
        fs::create_dir(root.join("folder.gguf")).unwrap();
        let found = search(root, &|| true);
        let want = [
            "a.gguf",
            "deep/c.apr",
            "deep/er/b.GGUF",
            "Модели é/d e.gguf",
        ];
        assert_eq!(names(root, &found), want);
        assert_eq!(found.state, Some(FolderState::Ready));
        assert!(found.problems.is_empty(), "{:?}", found.problems);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_circles_end() {
        use std::os::unix::fs::symlink;
        let (dir, drive) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = dir.path();
        let far = file(drive.path(), "far.gguf");
        symlink(drive.path(), root.join("drive")).unwrap();
        symlink(root, drive.path().join("back")).unwrap();
        symlink("itself", root.join("itself")).unwrap();
        file(root, "a.gguf");
        // The same file twice is one model; a link to nowhere is one that is missing.
        symlink(&far, root.join("again.gguf")).unwrap();
        symlink(root.join("gone"), root.join("lost.gguf")).unwrap();
        let found = search(root, &|| true);
        assert_eq!(names(root, &found), ["a.gguf", "again.gguf", "lost.gguf"]);
        assert_eq!(found.problems.len(), 1, "{:?}", found.problems);
        assert!(
            found.problems[0]
                .to_string()
                .ends_with("lost.gguf is a link to a file that is not there.")
        );
    }

    #[test]
    fn a_folder_that_is_not_there_is_missing_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("stick");
        let found = search(&gone, &|| true);
        assert_eq!(found.state, Some(FolderState::Missing));
        assert!(
            found.problems[0]
                .to_string()
                .ends_with("stick was left out: it is not there.")
        );
        let no_folder = file(dir.path(), "a.gguf");
        assert_eq!(
            search(&no_folder, &|| true).state,
            Some(FolderState::Unreadable)
        );
    }

    #[test]
    fn a_search_that_is_given_up_ends_at_once_and_depth_has_an_end() {
        let dir = tempfile::tempdir().unwrap();
        let deep = (0..=DEPTH_MAX).fold(dir.path().to_owned(), |path, _| path.join("d"));
        file(&deep, "deep.gguf");
        file(dir.path(), "a.gguf");
        let found = search(dir.path(), &|| true);
        assert_eq!(names(dir.path(), &found), ["a.gguf"]);
        assert!(
            found.problems[0]
                .to_string()
                .ends_with("lies too deep to be looked through.")
        );
        assert_eq!(search(dir.path(), &|| false), Found::default());
    }
}
