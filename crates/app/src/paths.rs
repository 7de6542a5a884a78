//! Where things are kept: one pure function of the environment that a root passes in.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::wire::Code;
use crate::words::phrase;

/// The name of the program's folder on Unix.
const FOLDER: &str = "candor";
/// The name of the program's folder on macOS and Windows, where folders are named for people.
const FOLDER_TITLE: &str = "Candor";

/// Whose custom decides the folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux and its kin: the XDG base directories.
    Unix,
    /// Application Support.
    MacOs,
    /// The local application data.
    Windows,
}

impl System {
    /// The one that this program was built for.
    pub const fn of_this_build() -> Self {
        if cfg!(target_os = "macos") {
            Self::MacOs
        } else if cfg!(windows) {
            Self::Windows
        } else {
            Self::Unix
        }
    }
}

/// What the folders are made of.
pub struct PathRequest<'a> {
    /// Whose custom.
    pub system: System,
    /// Reads a variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// A folder that the user chose for everything (`--data-dir`, `CANDOR_DATA_DIR`).
    pub data_dir: Option<PathBuf>,
}

/// The program's folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppPaths {
    /// Conversations and models.
    pub data: PathBuf,
    /// The settings.
    pub config: PathBuf,
    /// What can be made again.
    pub cache: PathBuf,
    /// Logs.
    pub state: PathBuf,
}

impl AppPaths {
    /// The folders for this request.
    ///
    /// # Errors
    /// If the environment does not say where the user's files are.
    pub fn resolve(request: &PathRequest<'_>) -> Result<Self, Error> {
        if let Some(dir) = &request.data_dir {
            return Ok(Self::below(dir));
        }
        let paths = match request.system {
            System::Unix => unix(request),
            System::MacOs => mac_os(request),
            System::Windows => windows(request),
        };
        paths.ok_or_else(|| {
            let message = phrase!(
                "The environment does not say where your files are kept; \
                 set CANDOR_DATA_DIR to a folder.",
                "Die Umgebung sagt nicht, wo deine Dateien liegen; setze CANDOR_DATA_DIR auf einen \
                 Ordner.",
            );
            Error::new(Code::Storage, message)
        })
    }

    /// Everything in one folder.
    pub fn below(dir: &Path) -> Self {
        Self {
            data: dir.to_owned(),
            config: dir.to_owned(),
            cache: dir.join("cache"),
            state: dir.join("state"),
        }
    }

    /// The store of conversations.
    pub fn database(&self) -> PathBuf {
        self.data.join("candor.db")
    }

    /// The file that says that a program has the store open.
    pub fn lock_file(&self) -> PathBuf {
        self.data.join("candor.lock")
    }

    /// Replies while they are written.
    pub fn drafts_dir(&self) -> PathBuf {
        self.data.join("drafts")
    }

    /// Models that belong to the program.
    pub fn models_dir(&self) -> PathBuf {
        self.data.join("models")
    }

    /// The user's choices.
    pub fn settings_file(&self) -> PathBuf {
        self.config.join("settings.json")
    }

    /// The hashes of model files.
    pub fn file_hashes(&self) -> PathBuf {
        self.cache.join("file-hashes.json")
    }

    /// Downloads that are not whole.
    pub fn downloads_file(&self) -> PathBuf {
        self.data.join("downloads.json")
    }

    /// What was proven of graphics cards.
    pub fn verdicts_dir(&self) -> PathBuf {
        self.cache.join("verdicts")
    }

    /// What the program noted.
    pub fn logs_dir(&self) -> PathBuf {
        self.state.join("logs")
    }
}

/// A folder from a variable. The XDG specification has relative paths ignored.
fn folder(request: &PathRequest<'_>, variable: &str) -> Option<PathBuf> {
    let path = PathBuf::from((request.variable)(variable)?);
    let absolute = match request.system {
        System::Unix | System::MacOs => path.as_os_str().as_encoded_bytes().starts_with(b"/"),
        // A drive or a share; what else may stand there only Windows itself can tell.
        System::Windows => !path.as_os_str().is_empty(),
    };
    absolute.then_some(path)
}

fn unix(request: &PathRequest<'_>) -> Option<AppPaths> {
    let home = folder(request, "HOME");
    let base = |variable: &str, below_home: &str| {
        let base = folder(request, variable);
        let base = base.or_else(|| home.as_ref().map(|home| home.join(below_home)));
        base.map(|base| base.join(FOLDER))
    };
    Some(AppPaths {
        data: base("XDG_DATA_HOME", ".local/share")?,
        config: base("XDG_CONFIG_HOME", ".config")?,
        cache: base("XDG_CACHE_HOME", ".cache")?,
        state: base("XDG_STATE_HOME", ".local/state")?,
    })
}

fn mac_os(request: &PathRequest<'_>) -> Option<AppPaths> {
    let library = folder(request, "HOME")?.join("Library");
    let support = library.join("Application Support").join(FOLDER_TITLE);
    Some(AppPaths {
        data: support.clone(),
        config: support.clone(),
        cache: library.join("Caches").join(FOLDER_TITLE),
        state: support.join("state"),
    })
}

fn windows(request: &PathRequest<'_>) -> Option<AppPaths> {
    Some(AppPaths::below(
        &folder(request, "LOCALAPPDATA")?.join(FOLDER_TITLE),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Case<'a> = (System, &'a [(&'a str, &'a str)], Option<&'a str>);

    #[track_caller]
    fn check((system, environment, data_dir): Case<'_>, want: Option<[&str; 4]>) {
        let variable = |name: &str| {
            let found = environment.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let data_dir = data_dir.map(PathBuf::from);
        let found = AppPaths::resolve(&PathRequest {
            system,
            variable: &variable,
            data_dir,
        });
        let want = want.map(|[data, config, cache, state]| AppPaths {
            data: data.into(),
            config: config.into(),
            cache: cache.into(),
            state: state.into(),
        });
        assert_eq!(found.ok(), want);
    }

    #[test]
    fn folders_follow_the_custom_of_the_system() {
        use System::{MacOs, Unix, Windows};
        let home = ("HOME", "/home/ü é");
        let below_home = [
            "/home/ü é/.local/share/candor",
            "/home/ü é/.config/candor",
            "/home/ü é/.cache/candor",
            "/home/ü é/.local/state/candor",
        ];
        check((Unix, &[home], None), Some(below_home));
        check(
            (Unix, &[home, ("XDG_DATA_HOME", "relative")], None),
            Some(below_home),
        );
        check(
            (Unix, &[home, ("XDG_DATA_HOME", "")], None),
            Some(below_home),
        );
        check(
            (
                Unix,
                &[
                    ("XDG_DATA_HOME", "/d"),
                    ("XDG_CONFIG_HOME", "/c"),
                    ("XDG_CACHE_HOME", "/k"),
                    ("XDG_STATE_HOME", "/s"),
                ],
                None,
            ),
            Some(["/d/candor", "/c/candor", "/k/candor", "/s/candor"]),
        );
        check((Unix, &[], None), None);
        check(
            (MacOs, &[("HOME", "/Users/a")], None),
            Some([
                "/Users/a/Library/Application Support/Candor",
                "/Users/a/Library/Application Support/Candor",
                "/Users/a/Library/Caches/Candor",
                "/Users/a/Library/Application Support/Candor/state",
            ]),
        );
        check(
            (Windows, &[("LOCALAPPDATA", "/L")], None),
            Some([
                "/L/Candor",
                "/L/Candor",
                "/L/Candor/cache",
                "/L/Candor/state",
            ]),
        );
        check((Windows, &[home], None), None);
        check(
            (Unix, &[home], Some("/x")),
            Some(["/x", "/x", "/x/cache", "/x/state"]),
        );
    }
}
