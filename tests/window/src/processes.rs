//! The program's processes, as the system shows them.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// The processes of our program that were started with this word in their command line.
pub fn running(program: &str, word: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.filter(|&pid| is_ours(pid, program, word)).collect()
}

/// Memory that a process has in use.
///
/// # Errors
/// If there is no such process.
pub fn resident_kb(pid: u32) -> Result<u64> {
    kilobytes(pid, "VmRSS:")
}

fn kilobytes(pid: u32, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let figure = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(figure.context("a figure in kB")?.trim().parse()?)
}

/// Whether a process runs; one that has ended and waits to be collected does not.
pub fn is_alive(pid: u32) -> bool {
    fields(pid).is_some_and(|rest| rest.first().is_some_and(|state| state != "Z"))
}

/// One process of a program and the processes that it started.
pub struct Family {
    /// What the system calls it.
    pub name: String,
    pid: u32,
}

impl Family {
    /// The program's own process first, then those below it.
    pub fn of(program: u32) -> Vec<Self> {
        let mut found = vec![program];
        let mut at = 0;
        while let Some(&parent) = found.get(at) {
            found.extend(children(parent));
            at += 1;
        }
        let name = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let member = |pid| Self {
            name: name(pid).trim().to_owned(),
            pid,
        };
        found.into_iter().map(member).collect()
    }

    /// Whether it runs.
    pub fn is_alive(&self) -> bool {
        is_alive(self.pid)
    }

    /// Time that it has computed so far.
    ///
    /// # Errors
    /// If there is no such process any more.
    pub fn busy(&self) -> Result<Duration> {
        let rest = fields(self.pid).context("a process that runs")?;
        let ticks = |at: usize| rest.get(at).and_then(|text| text.parse::<u64>().ok());
        let (user, system) = (ticks(11), ticks(12));
        let ticks = user.zip(system).map(|(user, system)| user + system);
        // A hundred ticks a second, on every Linux that people have.
        Ok(Duration::from_millis(10 * ticks.context("its times")?))
    }

    /// Memory that no file stands behind, in units of a million bytes.
    ///
    /// # Errors
    /// If there is no such process any more.
    pub fn anonymous_mb(&self) -> Result<f64> {
        let figure = kilobytes(self.pid, "RssAnon:")?;
        Ok(figure as f64 * 1_024.0 / 1e6)
    }
}

/// The processes that show the program's pages.
pub fn page_processes(program: u32) -> Vec<u32> {
    let family = Family::of(program);
    // The system cuts names after fifteen characters.
    let pages = family
        .iter()
        .filter(|process| "WebKitWebProcess".starts_with(&process.name));
    pages.map(|process| process.pid).collect()
}

fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = parent.to_string();
    let is_child = |pid: &u32| fields(*pid).is_some_and(|rest| rest.get(1) == Some(&parent));
    numbers.filter(is_child).collect()
}

/// What the system says of a process, from its state on.
fn fields(pid: u32) -> Option<Vec<String>> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, so the rest is what follows the last parenthesis.
    let rest = line.rsplit(')').next()?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

/// Ends a process as a power cut would.
///
/// # Errors
/// If there is no such process.
pub fn kill_hard(pid: u32) -> Result<()> {
    signal(pid, "KILL")
}

/// Sends a process a signal of this name.
///
/// # Errors
/// If there is no such process.
pub(crate) fn signal(pid: u32, name: &str) -> Result<()> {
    let status = Command::new("kill")
        .args(["-s", name, &pid.to_string()])
        .status()?;
    if !status.success() {
        bail!("process {pid} did not get the signal {name}");
    }
    Ok(())
}

fn is_ours(pid: u32, program: &str, word: &str) -> bool {
    let Ok(line) = fs::read(format!("/proc/{pid}/cmdline")) else {
        return false;
    };
    let words: Vec<String> = line
        .split(|&byte| byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    is_alive(pid)
        && words.first().is_some_and(|first| first == program)
        && words.iter().any(|other| other == word)
}
