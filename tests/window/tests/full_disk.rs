//! A disk that becomes full while a reply is written.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use candor_window_tests::{HANG_LIMIT, Home, Model, Requirements, Window, eventually};

#[test]
fn a_disk_that_becomes_full_is_said_and_survived() -> Result<()> {
    const WHAT: &str = "a disk that becomes full";
    let Some(disk) = Requirements::small_disk(WHAT) else {
        return Ok(());
    };
    let Some((needs, model)) = Requirements::with(Model::SmolLm2, WHAT) else {
        return Ok(());
    };
    let home = Home::new()?;
    ensure!(
        home.data().starts_with(&disk),
        "TMPDIR is not on the small disk"
    );
    home.write_settings(r#"{"sampling": {"temperature": 0}}"#)?;
    let window = Window::open(&needs, &home, &[&model.to_string_lossy()])?;
    window.wait_for_model("smollm2")?;
    let kept = window.answer_to("Name one colour.")?;
    window.ask("Write a long story about a lighthouse and its keeper.")?;
    let seen = window.watch_it_grow(40)?;
    let filler = fill(&disk)?;

    // The reply is written on, and all of it is to be read, whether or not it could be kept.
    let more = window.watch_it_grow(seen.text.chars().count() + 200)?;
    let ended = window.end_it()?;
    ensure!(ended.text.starts_with(more.text.trim_end()), "{ended:?}");
    // What cannot be kept is refused in words, and the window stays as it was.
    window.ask("Is there room?")?;
    let said = |css: &str| -> Result<bool> {
        let words = window.text(css)?.unwrap_or_default();
        Ok(words.contains("The disk is full"))
    };
    eventually("it is said", HANG_LIMIT, || {
        let is_said = said("[data-testid=problem]")? || said("[data-testid=failure]")?;
        Ok(is_said.then_some(()))
    })?;

    fs::remove_file(filler)?;
    let again = window.answer_to("Name one animal.")?;
    ensure!(!again.text.is_empty(), "{again:?}");
    window.close()?;
    let window = Window::open(&needs, &home, &[])?;
    window.open_first_conversation()?;
    let body = "return [...document.querySelectorAll('[data-testid=reply-text]')].map((text) => text.textContent)";
    let texts = window.script(body, &[])?;
    ensure!(texts[0] == kept.text.as_str(), "{texts}");
    ensure!(
        window
            .reply()?
            .is_some_and(|reply| reply.text == again.text),
        "{texts}"
    );
    window.close()
}

/// Writes until nothing more can be written.
fn fill(disk: &Path) -> Result<PathBuf> {
    let path = disk.join("filler");
    let mut file = File::create(&path)?;
    let mut bytes = vec![0; 1 << 20];
    loop {
        match file.write_all(&bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::StorageFull && bytes.len() > 1 => {
                bytes.truncate(bytes.len() / 2);
            }
            Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(path),
            Err(error) => return Err(error.into()),
        }
    }
}
