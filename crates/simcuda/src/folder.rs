//! Folders with a driver's library in them, for programs that are started with the library path
//! set to one: the simulated driver, and the ways in which a library can be no driver.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::control::{ENVIRONMENT, Library, LibraryError};

/// What programs ask the loader for on a user's machine.
const FILE: &str = "libcuda.so.1";

/// Its other name, where developers' files are installed too. Without it a program that asks for
/// this one first would get the machine's own driver, should there be one.
const LINK: &str = "libcuda.so";

/// What lies in the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// The simulated driver.
    Simulated,
    /// Nothing. A driver that the machine has is found then: see [`driver_is_installed`].
    None,
    /// A file of the library's name that is no library.
    NoLibrary,
    /// A library that has no function of the driver.
    Empty,
    /// The simulated driver without this function.
    Without(&'static str),
}

/// A folder that is gone with this value, and the settings of the driver in it.
#[derive(Debug)]
pub struct Folder {
    dir: TempDir,
    settings: String,
}

impl Folder {
    /// Makes a folder; the settings are for a simulated driver in it.
    ///
    /// # Errors
    /// When the simulated driver is not there or the folder cannot be written.
    pub fn new(driver: Driver, settings: &str) -> Result<Self, LibraryError> {
        let path = Library::path()?;
        let failed = |error: std::io::Error| LibraryError::Folder {
            message: error.to_string(),
        };
        let dir = tempfile::tempdir().map_err(failed)?;
        let file = dir.path().join(FILE);
        let without = |is_hidden: &dyn Fn(&[u8]) -> bool| {
            let library = fs::read(&path)?;
            fs::write(&file, hide(library, is_hidden))
        };
        if driver != Driver::None {
            std::os::unix::fs::symlink(FILE, dir.path().join(LINK)).map_err(failed)?;
        }
        match driver {
            Driver::None => Ok(()),
            Driver::NoLibrary => fs::write(&file, "no library"),
            Driver::Simulated => fs::copy(&path, &file).map(|_| ()),
            Driver::Empty => without(&|name| is_entry_point(name)),
            Driver::Without(hidden) => without(&|name| name == hidden.as_bytes()),
        }
        .map_err(failed)?;
        let settings = String::from(settings);
        Ok(Self { dir, settings })
    }

    /// The folder, to stand in `LD_LIBRARY_PATH`.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// What a child's environment needs so that it finds this driver.
    #[must_use]
    pub fn environment(&self) -> [(&'static str, &std::ffi::OsStr); 2] {
        let path = self.dir.path().as_os_str();
        [
            ("LD_LIBRARY_PATH", path),
            (ENVIRONMENT, self.settings.as_ref()),
        ]
    }

    /// Lets a child find this driver.
    pub fn give_to(&self, command: &mut Command) {
        command.envs(self.environment());
    }
}

/// Whether this machine has a driver of its own, so that no folder makes a program find none.
#[must_use]
pub fn driver_is_installed() -> bool {
    // SAFETY: the name ends with a zero byte. It is not the one under which a loaded simulated
    // driver answers, so only the machine's own driver can be meant; it stays loaded.
    !unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_LAZY) }.is_null()
}

/// `cu` and a capital: a function of the driver.
fn is_entry_point(name: &[u8]) -> bool {
    matches!(name, [b'c', b'u', b'A'..=b'Z', ..])
}

/// Renames functions in the library's table of names. The table of hashes still leads to them, but
/// what stands there is another name.
fn hide(mut library: Vec<u8>, is_hidden: &dyn Fn(&[u8]) -> bool) -> Vec<u8> {
    for name in library.split_mut(|byte| *byte == 0) {
        if is_entry_point(name) && is_hidden(name) {
            name[0] = b'x';
        }
    }
    library
}
