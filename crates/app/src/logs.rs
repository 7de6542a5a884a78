//! What the program notes about itself, in files that never fill the disk.
//!
//! Everything that is written as a log goes through [`append`]; nothing else writes into the folder.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// All logs together take no more than this, whatever happens how often.
pub const LOGS_BYTES_MAX: u64 = 20_000_000;

/// One file takes no more than this; then it is put aside and a new one begun. Some hundred panics
/// with their frames, or months of ordinary notes.
const FILE_BYTES_MAX: u64 = 2_000_000;

/// Faults that happened inside the program.
pub const PANICS: &str = "panics.log";

/// Notes a text in the log of this name, and removes what is oldest where all logs together would
/// take more than [`LOGS_BYTES_MAX`].
///
/// # Errors
/// If the folder or the file cannot be written.
pub fn append(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let path = folder.join(name);
    let text = beginning(text);
    let grown = size(&path) + text.len() as u64;
    if grown > FILE_BYTES_MAX {
        fs::rename(&path, path.with_extension("older.log"))?;
    }
    let mut options = OpenOptions::new();
    let mut file = options.create(true).append(true).open(&path)?;
    file.write_all(text.as_bytes())?;
    keep_within(folder, LOGS_BYTES_MAX);
    Ok(())
}

/// The end of a log, at most so many bytes of it; empty if there is none.
pub(crate) fn end_of(folder: &Path, name: &str, bytes_max: usize) -> String {
    // A file is small, see FILE_BYTES_MAX.
    let bytes = fs::read(folder.join(name)).unwrap_or_default();
    let from = bytes.len().saturating_sub(bytes_max);
    let text = String::from_utf8_lossy(&bytes[from..]);
    match from {
        0 => text.into_owned(),
        // The first line is a part of one.
        _ => text
            .split_once('\n')
            .map_or_else(String::new, |(_, rest)| rest.to_owned()),
    }
}

/// What all logs take.
pub(crate) fn bytes(folder: &Path) -> u64 {
    files(folder).iter().map(|file| file.bytes).sum()
}

/// As much of a text as one file takes.
fn beginning(text: &str) -> &str {
    let most = usize::try_from(FILE_BYTES_MAX).unwrap_or(usize::MAX);
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

struct LogFile {
    path: PathBuf,
    bytes: u64,
    changed: SystemTime,
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

fn files(folder: &Path) -> Vec<LogFile> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| {
        let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some(LogFile {
            path: entry.path(),
            bytes: metadata.len(),
            changed: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
        })
    });
    found.collect()
}

/// Removes the files that were not changed for longest until the others are small enough together.
fn keep_within(folder: &Path, bytes_max: u64) {
    let mut files = files(folder);
    files.sort_by_key(|file| std::cmp::Reverse(file.changed));
    let mut sum = 0;
    for file in files {
        sum += file.bytes;
        if sum > bytes_max {
            // One that stays is removed with the next note.
            let _ = fs::remove_file(file.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_log_grows_and_the_one_before_is_kept_when_it_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("state").join("logs");
        let read = |name: &str| fs::read_to_string(logs.join(name)).unwrap();
        append(&logs, PANICS, "one\n").unwrap();
        append(&logs, PANICS, "two\n").unwrap();
        assert_eq!(read(PANICS), "one\ntwo\n");
        let most = usize::try_from(FILE_BYTES_MAX).unwrap();
        append(&logs, PANICS, &"ä".repeat(most)).unwrap();
        assert_eq!(read("panics.older.log"), "one\ntwo\n");
        assert_eq!(read(PANICS).len(), most);
        append(&logs, PANICS, "three\n").unwrap();
        assert_eq!(read(PANICS), "three\n");
        assert_eq!(read("panics.older.log").len(), most);
        assert_eq!(end_of(&logs, PANICS, 100), "three\n");
        append(&logs, PANICS, "four\n").unwrap();
        assert_eq!(end_of(&logs, PANICS, 7), "four\n");
        assert_eq!(end_of(&logs, "none.log", 7), "");
    }

    #[test]
    fn all_logs_together_stay_below_their_limit_and_the_newest_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path();
        let before = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        for number in 0..30 {
            let path = logs.join(format!("{number}.log"));
            fs::write(&path, vec![b'x'; 1_000_000]).unwrap();
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_modified(before + Duration::from_secs(number))
                .unwrap();
        }
        append(logs, PANICS, "note\n").unwrap();
        assert!(bytes(logs) <= LOGS_BYTES_MAX, "{}", bytes(logs));
        assert!(
            bytes(logs) > LOGS_BYTES_MAX - 2_000_000,
            "no more than needed"
        );
        let is_there = |name: &str| logs.join(name).exists();
        assert!(is_there(PANICS) && is_there("29.log") && !is_there("0.log"));
    }
}
