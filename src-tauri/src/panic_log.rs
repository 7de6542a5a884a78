//! Writes what went wrong inside the program to a file instead of into the user's face.

use std::backtrace::Backtrace;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::panic;
use std::path::{Path, PathBuf};

use crate::surroundings;

/// The file's name in the folder for logs.
const FILE: &str = "panics.log";

/// A program that panics again and again must not fill the disk: at this size it starts anew.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// From now on a panic is written there. The thread still ends; whoever waits for it says so.
pub(crate) fn install(folder: PathBuf) {
    panic::set_hook(Box::new(move |panic| {
        let text = format!(
            "{} ms: {panic}\n{}\n",
            surroundings::now_ms(),
            Backtrace::force_capture()
        );
        // There is nobody left to tell if the log cannot be written either.
        let _ = append(&folder, &text);
    }));
}

/// The log in this folder.
pub(crate) fn file(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

fn append(folder: &Path, text: &str) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let path = file(folder);
    let full = fs::metadata(&path).is_ok_and(|metadata| metadata.len() >= FILE_BYTES_MAX);
    let mut options = OpenOptions::new();
    options.create(true).write(true);
    if full {
        options.truncate(true)
    } else {
        options.append(true)
    };
    options.open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_grows_and_starts_anew_when_it_is_full() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let logs = folder.path().join("state").join("logs");
        let read = || fs::read_to_string(logs.join(FILE)).expect("the log");
        append(&logs, "one\n").expect("written");
        append(&logs, "two\n").expect("written");
        assert_eq!(read(), "one\ntwo\n");
        let limit = usize::try_from(FILE_BYTES_MAX).expect("small");
        append(&logs, &"x".repeat(limit)).expect("written");
        append(&logs, "three\n").expect("written");
        assert_eq!(read(), "three\n");
    }
}
