//! The program's processes, as the system shows them.

use std::fs;
use std::process::Command;

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
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let figure = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(figure.context("a figure in kB")?.parse()?)
}

/// Whether a process runs; one that has ended and waits to be collected does not.
pub fn is_alive(pid: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    // The name may hold anything, so the state is what follows the last parenthesis.
    status
        .rsplit(')')
        .next()
        .is_some_and(|rest| !rest.trim_start().starts_with('Z'))
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
