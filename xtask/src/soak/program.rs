//! Runs the command line program as a script would, with a clock beside it.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// No run that is measured here takes this long unless it hangs.
const HANG_LIMIT: Duration = Duration::from_secs(600);

/// The program.
pub(crate) struct Candor {
    path: PathBuf,
}

/// One call of it.
pub(crate) struct Call {
    command: Command,
}

/// How a call went.
pub(crate) struct Ran {
    /// The exit code; none if a signal ended it.
    pub(crate) exit: Option<i32>,
    /// What it said, line by line; each is JSON where `--json` was asked for.
    pub(crate) lines: Vec<String>,
    /// What it said on the other channel.
    pub(crate) errors: String,
    /// From the start to the end.
    pub(crate) wall: Duration,
    /// From the Stop to the end, and the lines that had come before it.
    pub(crate) stopped: Option<(Duration, usize)>,
}

/// When to press Ctrl-C.
#[derive(Clone, Copy)]
pub(crate) enum StopAt {
    /// Never.
    Never,
    /// So long after the start.
    Time(Duration),
    /// After so many lines.
    Lines(usize),
}

impl Candor {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// A call with these words.
    pub(crate) fn call(&self, words: &[&str]) -> Call {
        let mut command = Command::new(&self.path);
        command.args(words);
        Call { command }
    }
}

impl Call {
    /// Adds a word that need not be text.
    pub(crate) fn word(mut self, word: impl AsRef<OsStr>) -> Self {
        self.command.arg(word);
        self
    }

    /// Adds several words.
    pub(crate) fn words(mut self, words: &[&str]) -> Self {
        self.command.args(words);
        self
    }

    /// Sets a variable.
    pub(crate) fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.command.env(name, value.into());
        self
    }

    /// Runs to the end.
    pub(crate) fn run(self) -> Result<Ran> {
        self.run_and_stop(StopAt::Never)
    }

    /// Runs, and presses Ctrl-C once.
    pub(crate) fn run_and_stop(mut self, stop: StopAt) -> Result<Ran> {
        self.command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let start = Instant::now();
        let mut child = self
            .command
            .spawn()
            .context("candor could not be started")?;
        let mut errors = child.stderr.take().context("stderr")?;
        let errors = thread::spawn(move || {
            let mut text = Vec::new();
            // What was read before a failure is as good as it gets.
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let output = BufReader::new(child.stdout.take().context("stdout")?);
        let (sender, arriving) = mpsc::channel();
        thread::spawn(move || {
            for line in output.split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut lines = Vec::new();
        let mut stopped: Option<(Instant, usize)> = None;
        loop {
            let due = match stop {
                StopAt::Time(after) if stopped.is_none() => after.saturating_sub(start.elapsed()),
                _ => HANG_LIMIT.saturating_sub(start.elapsed()),
            };
            match arriving.recv_timeout(due) {
                Ok(line) => lines.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if start.elapsed() >= HANG_LIMIT => {
                    let _ = child.kill();
                    bail!("candor did not end within {HANG_LIMIT:?}");
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if stopped.is_none() && stop.is_due(start.elapsed(), lines.len()) {
                let at = Instant::now();
                interrupt(&child)?;
                // What came while the signal was on its way came before the Stop.
                lines.extend(arriving.try_iter());
                stopped = Some((at, lines.len()));
            }
        }
        let exit = child.wait()?.code();
        let end = Instant::now();
        Ok(Ran {
            exit,
            lines,
            errors: errors.join().unwrap_or_default(),
            wall: end - start,
            stopped: stopped.map(|(at, lines)| (end - at, lines)),
        })
    }
}

impl StopAt {
    fn is_due(self, after: Duration, lines: usize) -> bool {
        match self {
            Self::Never => false,
            Self::Time(at) => after >= at,
            Self::Lines(count) => lines >= count,
        }
    }
}

impl Ran {
    /// The last line as JSON.
    pub(crate) fn last(&self) -> Result<Value> {
        let line = self.lines.iter().rev().find(|line| !line.trim().is_empty());
        let line = line.with_context(|| format!("it said nothing: {}", self.errors.trim()))?;
        serde_json::from_str(line).with_context(|| format!("not JSON: {line}"))
    }
}

fn interrupt(child: &Child) -> Result<()> {
    let number = child.id().to_string();
    let status = Command::new("kill").args(["-INT", &number]).status()?;
    if !status.success() {
        bail!("the program had ended before it could be stopped");
    }
    Ok(())
}
