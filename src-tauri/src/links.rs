//! Opens a link of a reply in the user's browser, if it is of a kind that cannot do harm here.

use std::process::{Command, Stdio};

use candor_app::wire::Code;
use candor_app::{Error, Phrase};
use url::Url;

use crate::graphics;

/// Nothing else leaves the window: no files, no other programs' schemes.
const ALLOWED: [&str; 3] = ["http", "https", "mailto"];

/// Longer addresses are no links that a person has looked at; browsers cut near this length.
const LENGTH_MAX: usize = 8_192;

/// Why a link was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotOpened {
    /// It is not a web or mail address.
    Refused,
    /// This machine has no program for it.
    NoProgram,
}

impl From<NotOpened> for Error {
    fn from(not_opened: NotOpened) -> Self {
        let sentence = match not_opened {
            NotOpened::Refused => Phrase::new(
                "Only web and mail addresses are opened.",
                "Geöffnet werden nur Adressen von Webseiten und E-Mails.",
            ),
            NotOpened::NoProgram => Phrase::new(
                "No program was found that opens this address.",
                "Kein Programm wurde gefunden, das diese Adresse öffnet.",
            ),
        };
        Self::new(Code::Internal, sentence)
    }
}

/// Opens the address outside.
///
/// # Errors
/// If it is not a web or mail address, or if no program on this machine opens it.
pub(crate) fn open(address: &str) -> Result<(), NotOpened> {
    let url = allowed(address).ok_or(NotOpened::Refused)?;
    let started = open::commands(url.as_str())
        .into_iter()
        .find_map(|command| start(command).ok());
    started.ok_or(NotOpened::NoProgram)
}

/// The address as it will be opened, or nothing.
fn allowed(address: &str) -> Option<Url> {
    if address.len() > LENGTH_MAX {
        return None;
    }
    let url = Url::parse(address).ok()?;
    ALLOWED.contains(&url.scheme()).then_some(url)
}

/// Starts a program that lives on its own: without our output, and without the switches that
/// were meant for our own web view.
fn start(mut command: Command) -> std::io::Result<()> {
    for switch in graphics::SWITCHES {
        command.env_remove(switch);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn()?;
    // Some openers stay until the browser ends: waited for elsewhere, none is left as a zombie.
    std::thread::spawn(move || child.wait());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_and_mail_addresses_leave_the_window() {
        let long = format!("https://example.org/{}", "a".repeat(LENGTH_MAX));
        let cases = [
            ("https://example.org/a?b=c#d", true),
            ("http://example.org", true),
            ("HTTPS://EXAMPLE.ORG", true),
            ("mailto:a@example.org", true),
            ("file:///etc/passwd", false),
            ("javascript:alert(1)", false),
            ("data:text/html,x", false),
            ("smb://host/share", false),
            ("tauri://localhost", false),
            ("/etc/passwd", false),
            ("--help", false),
            ("", false),
            (long.as_str(), false),
        ];
        for (address, expected) in cases {
            assert_eq!(allowed(address).is_some(), expected, "{address}");
        }
    }

    #[test]
    fn a_file_is_refused_before_any_program_is_looked_for() {
        assert_eq!(open("file:///etc/passwd"), Err(NotOpened::Refused));
    }
}
