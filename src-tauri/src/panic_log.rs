//! Writes what went wrong inside the program to a file instead of into the user's face.

use std::backtrace::Backtrace;
use std::panic;
use std::path::{Path, PathBuf};

use candor_app::logs;

use crate::surroundings;

/// From now on a panic is written there. The thread still ends; whoever waits for it says so.
pub(crate) fn install(folder: PathBuf) {
    panic::set_hook(Box::new(move |panic| {
        let text = format!(
            "{} ms: {panic}\n{}\n",
            surroundings::now_ms(),
            Backtrace::force_capture()
        );
        // There is nobody left to tell if the log cannot be written either.
        let _ = logs::append(&folder, logs::PANICS, &text);
    }));
}

/// The log in this folder.
pub(crate) fn file(folder: &Path) -> PathBuf {
    folder.join(logs::PANICS)
}
