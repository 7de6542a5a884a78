//! Runs other programs, and prints each before it runs.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};

/// A program with its arguments, to be run in the project's folder.
pub(crate) struct Run {
    command: Command,
}

/// Cargo, the one that runs us.
pub(crate) fn cargo(arguments: &[&str]) -> Run {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    program(cargo, arguments)
}

/// Any program.
pub(crate) fn program(name: impl AsRef<OsStr>, arguments: &[&str]) -> Run {
    let mut command = Command::new(name);
    command.args(arguments).current_dir(crate::project::root());
    // Cargo tells its children which package runs them; a cargo that we start must not
    // think that it is that package's build script.
    for name in [
        "CARGO_MANIFEST_DIR",
        "CARGO_MANIFEST_PATH",
        "CARGO_PKG_NAME",
    ] {
        command.env_remove(name);
    }
    Run { command }
}

impl Run {
    /// Runs elsewhere than in the project's folder.
    pub(crate) fn within(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Sets a variable for it.
    pub(crate) fn with(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Adds an argument that need not be text.
    pub(crate) fn argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Runs it on the terminal.
    ///
    /// # Errors
    /// If it cannot be started or does not succeed.
    pub(crate) fn run(mut self) -> Result<()> {
        self.say();
        let status = self
            .command
            .status()
            .with_context(|| self.failed_to_start())?;
        if !status.success() {
            bail!("{} ended with {status}", self.shown());
        }
        Ok(())
    }

    /// Runs it, shows what it prints on both channels, line by line, and keeps it.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(crate) fn run_and_keep(mut self) -> Result<Kept> {
        self.say();
        self.command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = self
            .command
            .spawn()
            .with_context(|| self.failed_to_start())?;
        let errors = child.stderr.take().expect("stderr is piped");
        let output = child.stdout.take().expect("stdout is piped");
        let on_errors = thread::spawn(move || show_and_keep(errors, std::io::stderr()));
        let mut text = show_and_keep(output, std::io::stdout());
        text.push_str(&on_errors.join().expect("reading a pipe does not panic"));
        let status = child.wait().context("wait")?;
        let failure = (!status.success()).then(|| format!("{} ended with {status}", self.shown()));
        Ok(Kept { text, failure })
    }

    /// Runs it without a word and returns what it prints.
    ///
    /// # Errors
    /// If it cannot be started or does not succeed; the message holds its own last words.
    pub(crate) fn quiet_output(self) -> Result<String> {
        Ok(self.quietly()?.0)
    }

    /// The same, with what it prints on its second channel at the end.
    ///
    /// # Errors
    /// If it cannot be started or does not succeed; the message holds its own last words.
    pub(crate) fn all_output(self) -> Result<String> {
        let (output, errors) = self.quietly()?;
        Ok(output + &errors)
    }

    fn quietly(mut self) -> Result<(String, String)> {
        self.command.stdin(Stdio::null());
        let output = self
            .command
            .output()
            .with_context(|| self.failed_to_start())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!(
                "{} ended with {}: {}",
                self.shown(),
                output.status,
                said.trim()
            );
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((text(&output.stdout), text(&output.stderr)))
    }

    fn say(&self) {
        println!("$ {}", self.shown());
    }

    fn failed_to_start(&self) -> String {
        format!("{} could not be started", self.shown())
    }

    fn shown(&self) -> String {
        let program = Path::new(self.command.get_program());
        let mut text = program
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        for argument in self.command.get_args() {
            text.push(' ');
            text.push_str(&argument.to_string_lossy());
        }
        text
    }
}

/// What a program printed and how it ended.
pub(crate) struct Kept {
    /// Both channels; the order between the two is lost.
    pub(crate) text: String,
    /// Why it does not count as a success.
    pub(crate) failure: Option<String>,
}

fn show_and_keep(from: impl Read, mut to: impl Write) -> String {
    let mut kept = String::new();
    let mut reader = BufReader::new(from);
    let mut line = Vec::new();
    // Bytes, not lines of text: a program may print what is not UTF-8.
    while reader
        .read_until(b'\n', &mut line)
        .is_ok_and(|read| read > 0)
    {
        let _ = to.write_all(&line);
        kept.push_str(&String::from_utf8_lossy(&line));
        line.clear();
    }
    kept
}
