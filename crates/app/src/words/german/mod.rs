//! What the layers below say, in German. They know one language; here each of their errors is said
//! once more, from its fields. A variant that nobody translated does not compile.
//!
//! What the system, a driver or a library said stays as it was said.

mod advice;
mod driver;
mod engine;
mod file;
mod model;
mod text;

use std::fmt;
use std::path::Path;

use super::phrase::{Phrase, Tongue, numbers};

pub(crate) use advice::advice;
pub(crate) use engine::turn_code;
pub(crate) use file::note;
pub(crate) use text::fallback;

/// Something whose `Display` is English.
pub(crate) trait German: fmt::Display {
    /// The same in German.
    fn german(&self) -> String;
}

impl Phrase {
    /// What a layer below says.
    pub(crate) fn of(said: &(impl German + ?Sized)) -> Self {
        Self::new(said.to_string(), said.german())
    }
}

/// An English number with its unit.
fn number(english: impl fmt::Display) -> String {
    numbers(english.to_string(), Tongue::German)
}

/// A file's name for a message.
fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// With a capital: in German what follows a colon, and is a sentence, begins so.
pub(crate) fn capital(german: &str) -> String {
    let mut signs = german.chars();
    let first: String = signs
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    format!("{first}{}", signs.as_str())
}

/// The first of several, and how many more there are.
fn first<T: German>(all: &[T], none: &str) -> String {
    match all {
        [] => none.to_owned(),
        [one] => one.german(),
        [one, rest @ ..] => format!("{} (und {} weitere)", one.german(), rest.len()),
    }
}

/// "1 to 5": what would do, as the layers below write it.
fn bounds(expected: &str) -> String {
    match expected.split_once(" to divide ") {
        Some((part, whole)) => format!("dass {part} {whole} teilt"),
        None if expected == "none" => String::from("keines"),
        None => expected
            .replacen(
                "the name of an architecture",
                "der Name einer Architektur",
                1,
            )
            .replacen("a positive number", "eine positive Zahl", 1)
            .replacen("a whole number from ", "eine ganze Zahl von ", 1)
            .replacen("a number above ", "eine Zahl über ", 1)
            .replacen(", at most ", ", höchstens ", 1)
            .replacen(" to ", " bis ", 1)
            .replacen(" or ", " oder ", 1),
    }
}

#[cfg(test)]
mod tests;
