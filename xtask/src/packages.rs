//! System packages: what is missing, and how it is installed.

use std::io::{IsTerminal, Write};
use std::path::Path;

use anyhow::{Result, bail};

use crate::command;

/// A package, and the sign that it is there.
pub(crate) struct Package {
    name: &'static str,
    sign: Sign,
}

enum Sign {
    /// A program on the path.
    Program(&'static str),
    /// What `pkg-config` knows.
    Library(&'static str),
    /// A module of Python.
    PythonModule(&'static str),
    /// A folder.
    Folder(&'static str),
}

/// What compiling the window needs.
pub(crate) const BUILD: &[Package] = &[
    Package {
        name: "build-essential",
        sign: Sign::Program("cc"),
    },
    Package {
        name: "pkg-config",
        sign: Sign::Program("pkg-config"),
    },
    Package {
        name: "libwebkit2gtk-4.1-dev",
        sign: Sign::Library("webkit2gtk-4.1"),
    },
];

/// What fetching a model needs.
pub(crate) const FETCH: &[Package] = &[Package {
    name: "python3-pip",
    sign: Sign::PythonModule("pip"),
}];

/// What driving the window without a screen needs.
pub(crate) const DRIVE: &[Package] = &[
    Package {
        name: "xvfb",
        sign: Sign::Program("xvfb-run"),
    },
    Package {
        name: "xauth",
        sign: Sign::Program("xauth"),
    },
    Package {
        name: "webkit2gtk-driver",
        sign: Sign::Program("WebKitWebDriver"),
    },
    Package {
        name: "dbus",
        sign: Sign::Program("dbus-run-session"),
    },
    Package {
        name: "fonts-dejavu-core",
        sign: Sign::Folder("/usr/share/fonts/truetype/dejavu"),
    },
];

/// Installs what is missing: at once as root, else after asking.
///
/// # Errors
/// If something is missing and cannot be installed; the message holds the line to type.
pub(crate) fn ensure(sets: &[&[Package]]) -> Result<()> {
    let wanted = sets.iter().flat_map(|set| set.iter());
    let missing: Vec<&str> = wanted
        .filter(|package| !package.sign.is_there())
        .map(|package| package.name)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    if !on_path("apt-get") {
        bail!("these packages are missing (Debian's names): {list}. Please install them");
    }
    let line = format!("apt-get install -y --no-install-recommends {list}");
    println!("Installing system packages: {list}");
    if is_root()? {
        return install("sh", &line);
    }
    if !on_path("sudo") || !std::io::stdin().is_terminal() {
        bail!("system packages are missing; as root, run: apt-get update && {line}");
    }
    print!("This runs: sudo {line}\nGo on? [y/N] ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    if !answer.trim().eq_ignore_ascii_case("y") {
        bail!("not installed; by hand: sudo {line}");
    }
    install("sudo", &line)
}

fn install(with: &str, line: &str) -> Result<()> {
    let script = format!("apt-get update && DEBIAN_FRONTEND=noninteractive {line}");
    let words: &[&str] = if with == "sudo" {
        &["sh", "-c", &script]
    } else {
        &["-c", &script]
    };
    command::program(with, words).run()
}

fn is_root() -> Result<bool> {
    Ok(command::program("id", &["-u"]).quiet_output()?.trim() == "0")
}

impl Sign {
    fn is_there(&self) -> bool {
        match self {
            Self::Program(name) => on_path(name),
            Self::Library(name) => answers("pkg-config", &["--exists", name]),
            Self::PythonModule(name) => answers("python3", &["-c", &format!("import {name}")]),
            Self::Folder(path) => Path::new(path).is_dir(),
        }
    }
}

fn answers(program: &str, arguments: &[&str]) -> bool {
    command::program(program, arguments).quiet_output().is_ok()
}

/// Whether a program of that name would be found.
pub(crate) fn on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}
