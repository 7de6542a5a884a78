//! A report on the program and the machine that a person reads before passing it on: it names
//! nobody, and holds no word of a conversation.

use std::fs;
use std::io;
use std::path::Path;

use crate::app::App;
use crate::error::Error;
use crate::logs;
use crate::wire::{BannerKind, Code};
use crate::words::phrase;
use crate::words::size;

/// So much of the end of the log of faults goes into a report: the last one or two.
const FAULTS_BYTES_MAX: usize = 6_000;

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// As it should.
    Fine,
    /// It works, with a remark.
    Note,
    /// It does not work.
    Problem,
}

impl State {
    /// In one word, as reports have it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Note => "note",
            Self::Problem => "problem",
        }
    }
}

/// What a shell knows of its surroundings.
#[derive(Default)]
pub struct Surroundings<'a> {
    /// What it sees of the machine, line by line: name and value.
    pub rows: Vec<(&'static str, String)>,
    /// The home of the person, whose name is left out.
    pub home: Option<&'a Path>,
}

impl App {
    /// The report.
    pub fn diagnostics(&self, around: &Surroundings<'_>) -> String {
        let mut report = Report::default();
        let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
        let version = &self.inner.config.version;
        report.line(&format!("Candor {version}, {os} {arch}"));
        report.part("Machine", &around.rows);
        report.part("What computes", &self.computing());
        report.part("Choices", &self.choices());
        report.part("Kept", &self.kept());
        let folder = self.inner.paths.logs_dir();
        let faults = logs::end_of(&folder, logs::PANICS, FAULTS_BYTES_MAX);
        report.line("\nLast faults inside the program");
        report.line(match faults.trim() {
            "" => "none",
            some => some,
        });
        match around.home {
            Some(home) => redacted(&report.text, home),
            None => report.text,
        }
    }

    fn computing(&self) -> Vec<(&'static str, String)> {
        let status = self.status();
        let banner = status.banner;
        let mut rows = vec![("state", banner.state)];
        // Who waits is told which conversation it waits for, by its title.
        if banner.kind != BannerKind::Waiting {
            rows.push(("reason", banner.reason));
        }
        if let Some(model) = status.model {
            let what = format!("{}, {}", model.architecture, model.quantization);
            rows.push(("model", format!("{} ({what})", model.name)));
            rows.push(("context", model.context.to_string()));
        }
        let details = banner.details.into_iter();
        rows.extend(details.map(|row| ("detail", format!("{}: {}", row.name, row.value))));
        rows
    }

    fn choices(&self) -> Vec<(&'static str, String)> {
        let settings = self.settings();
        let chosen = |number: Option<u32>| match number {
            Some(number) => number.to_string(),
            None => String::from("left to the program"),
        };
        vec![
            ("computes", format!("{:?}", settings.device)),
            ("threads", chosen(settings.threads)),
            ("context", chosen(settings.context)),
            ("keys and values", format!("{:?}", settings.kv)),
            ("GPU check", format!("{:?}", settings.gpu_check)),
            (
                "network",
                String::from(if settings.offline {
                    "never asked"
                } else {
                    "may be asked"
                }),
            ),
        ]
    }

    fn kept(&self) -> Vec<(&'static str, String)> {
        let paths = &self.inner.paths;
        let conversations = self.inner.store.summaries();
        let mut rows = vec![(
            "conversations",
            match conversations {
                Ok(list) => list.len().to_string(),
                Err(error) => error.to_string(),
            },
        )];
        if let Ok(models) = self.models() {
            let missing = models.iter().filter(|model| model.missing).count();
            rows.push((
                "models",
                format!("{}, {missing} of them missing", models.len()),
            ));
        }
        let models = paths.models_dir();
        let folders = [
            ("data folder", &paths.data),
            ("models folder", &models),
            ("settings folder", &paths.config),
            ("cache folder", &paths.cache),
            ("state folder", &paths.state),
        ];
        rows.extend(folders.map(|(name, path)| {
            let (state, message) = folder(path);
            (name, format!("{}: {message}", state.word()))
        }));
        rows.push(("logs", size(logs::bytes(&paths.logs_dir()))));
        rows
    }
}

/// Keeps a report where the person said.
///
/// # Errors
/// If it cannot be written there.
pub fn save(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|source| {
        let message = phrase!(
            "The report could not be saved: {source}.",
            "Der Bericht ließ sich nicht speichern: {source}.",
            source,
        );
        Error::new(Code::Storage, message).because(source)
    })
}

/// Whether a folder is there and can be written. A folder that is not there is made when needed,
/// so it is no problem; nothing is created here.
pub fn folder(path: &Path) -> (State, String) {
    let shown = path.display();
    match fs::metadata(path) {
        Ok(found) if !found.is_dir() => (State::Problem, format!("{shown} is not a folder")),
        Ok(found) if found.permissions().readonly() => {
            (State::Problem, format!("{shown} cannot be written"))
        }
        Ok(_) => (State::Fine, shown.to_string()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            (State::Note, format!("{shown} is not there yet"))
        }
        Err(error) => (State::Problem, format!("{shown}: {error}")),
    }
}

/// A text without the name of the person, also where it is JSON: the home folder becomes `~`.
pub fn redacted(text: &str, home: &Path) -> String {
    let shown = home.to_string_lossy();
    // In JSON a quote or a backslash of the path is written otherwise.
    let quoted = serde_json::Value::from(shown.as_ref()).to_string();
    let mut text = text.replace(quoted.trim_matches('"'), "~");
    text = text.replace(shown.as_ref(), "~");
    let name = home.file_name().map(|name| name.to_string_lossy());
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        for slash in ["/", "\\\\", "\\"] {
            text = text.replace(&format!("{slash}{name}"), "/~");
        }
    }
    text
}

#[derive(Default)]
struct Report {
    text: String,
}

impl Report {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn part(&mut self, title: &str, rows: &[(&'static str, String)]) {
        self.line(&format!("\n{title}"));
        for (name, value) in rows {
            self.line(&format!("{name:16} {value}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_no_person() {
        let cases = [
            ("/home/anna", "\"/home/anna/.cache\"", "\"~/.cache\""),
            ("/home/anna", "\"/media/anna/disk\"", "\"/media/~/disk\""),
            ("/home/an\"na", "\"/home/an\\\"na/x\"", "\"~/x\""),
            ("/home/an\"na", "at /home/an\"na/x", "at ~/x"),
            ("/home/anna", "\"/usr/lib\"", "\"/usr/lib\""),
            (r"C:\Users\anna", r"in C:\Users\anna\x", r"in ~\x"),
        ];
        for (home, text, want) in cases {
            assert_eq!(redacted(text, Path::new(home)), want);
        }
    }

    #[test]
    fn a_folder_is_looked_at_and_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let missing = dir.path().join("missing");
        let cases = [
            (dir.path(), State::Fine, ""),
            (&file, State::Problem, "is not a folder"),
            (&missing, State::Note, "is not there yet"),
        ];
        for (path, want, words) in cases {
            let (state, message) = folder(path);
            assert_eq!(state, want, "{message}");
            assert!(message.ends_with(words), "{message}");
        }
        assert!(!missing.exists());
    }
}
