//! `cargo xtask run`: from a clean clone to an open window.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::{command, models, node, packages, project, ui};

/// Endings of the files that the app takes for models.
const ENDINGS: [&str; 2] = ["gguf", "apr"];

/// Builds and opens the app.
///
/// # Errors
/// If something that it needs can be neither found nor installed, or does not build.
pub(crate) fn run(arguments: &[OsString]) -> Result<()> {
    packages::ensure(&[packages::BUILD])?;
    ui::build(&node::path()?)?;
    let wishes = Wishes::of(arguments);
    // The window works without a model; it then says how to open one.
    if !wishes.model
        && let Err(error) = offer_starter(wishes.data_dir)
    {
        println!("The starter model is not there: {error:#}. The window opens without it.");
    }
    let words = ["run", "--release", "--package", "candor-desktop", "--"];
    // A relative path among the arguments is meant from where the person is.
    let app = command::cargo(&words).within(&std::env::current_dir()?);
    arguments.iter().fold(app, command::Run::argument).run()
}

/// What the app's arguments say about the library.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wishes<'a> {
    /// Where everything is kept, if not in the usual folders.
    data_dir: Option<&'a OsStr>,
    /// Whether a model is named: then nobody needs the starter.
    model: bool,
}

impl<'a> Wishes<'a> {
    /// Reads them as the app does. What the app does not understand it says itself.
    fn of(arguments: &'a [OsString]) -> Self {
        let mut wishes = Self::default();
        let mut only_files = false;
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            let is_option = !only_files && word.as_encoded_bytes().starts_with(b"--");
            match word.to_str().filter(|_| is_option) {
                Some("--data-dir") => wishes.data_dir = rest.next().map(OsString::as_os_str),
                Some("--") => only_files = true,
                Some(_) => {}
                None => wishes.model = true,
            }
        }
        wishes
    }
}

/// Puts the starter model where the app looks for it, if there is no model yet.
fn offer_starter(data_dir: Option<&OsStr>) -> Result<()> {
    let folder = data_folder(data_dir, |name| std::env::var_os(name))?.join("models");
    if holds_a_model(&folder) {
        return Ok(());
    }
    let fetched = models::STARTER.ensure(&project::models())?;
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let place = folder.join(models::STARTER.file);
    // A hard link costs nothing; across file systems only a copy is possible.
    if fs::hard_link(&fetched, &place).is_err() {
        fs::copy(&fetched, &place).with_context(|| place.display().to_string())?;
    }
    println!("The starter model is in {}", folder.display());
    Ok(())
}

fn holds_a_model(folder: &Path) -> bool {
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_known = |end: &OsStr| ENDINGS.iter().any(|known| end.eq_ignore_ascii_case(known));
    entries.any(|entry| entry.path().extension().is_some_and(is_known))
}

/// The app's own data folder, by the same rule as the app. A relative one is meant from where
/// the person is, and so from where this program runs.
fn data_folder(
    data_dir: Option<&OsStr>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<PathBuf> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let chosen = data_dir.map(OsString::from);
    if let Some(folder) = chosen.or_else(|| variable("CANDOR_DATA_DIR")) {
        return Ok(PathBuf::from(folder));
    }
    let base = variable("XDG_DATA_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let home = || variable("HOME").map(|home| Path::new(&home).join(".local/share"));
    let base = base
        .or_else(home)
        .context("neither HOME nor XDG_DATA_HOME is set")?;
    Ok(base.join("candor"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_read_as_the_app_reads_them() {
        let cases: &[(&[&str], Option<&str>, bool)] = &[
            (&[], None, false),
            (&["m.gguf"], None, true),
            (&["--data-dir", "d"], Some("d"), false),
            (&["--data-dir", "d", "m.gguf"], Some("d"), true),
            (&["m.gguf", "--data-dir", "d"], Some("d"), true),
            (
                &["--data-dir", "--safe-rendering"],
                Some("--safe-rendering"),
                false,
            ),
            (&["--data-dir", "d", "--data-dir", "e"], Some("e"), false),
            (&["--data-dir"], None, false),
            (&["--safe-rendering"], None, false),
            (&["--", "--data-dir"], None, true),
        ];
        for (words, data_dir, model) in cases {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let data_dir = data_dir.map(OsStr::new);
            let expected = Wishes {
                data_dir,
                model: *model,
            };
            assert_eq!(Wishes::of(&words), expected, "{words:?}");
        }
    }

    #[test]
    fn the_library_is_looked_for_where_the_app_keeps_it() {
        type Environment<'a> = &'a [(&'a str, &'a str)];
        let home = ("HOME", "/home/anna");
        let cases: &[(Option<&str>, Environment<'_>, Option<&str>)] = &[
            (None, &[home], Some("/home/anna/.local/share/candor")),
            (None, &[home, ("XDG_DATA_HOME", "/x")], Some("/x/candor")),
            (
                None,
                &[home, ("XDG_DATA_HOME", "x")],
                Some("/home/anna/.local/share/candor"),
            ),
            (None, &[home, ("CANDOR_DATA_DIR", "/c")], Some("/c")),
            (Some("d"), &[home, ("CANDOR_DATA_DIR", "/c")], Some("d")),
            (Some("d"), &[], Some("d")),
            (None, &[], None),
        ];
        for (data_dir, environment, expected) in cases {
            let variable = |name: &str| {
                let found = environment.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| OsString::from(value))
            };
            let found = data_folder(data_dir.map(OsStr::new), variable).ok();
            assert_eq!(
                found,
                expected.map(PathBuf::from),
                "{data_dir:?} {environment:?}"
            );
        }
    }
}
