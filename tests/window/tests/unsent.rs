//! What was typed and not sent is there again, however the window went.

use anyhow::{Result, ensure};
use candor_window_tests::{HANG_LIMIT, Home, Requirements, Window, eventually};
use serde_json::json;

const BOX: &str = "[data-testid=composer]";

/// The words in the box, once there are some.
fn found(window: &Window) -> Result<String> {
    eventually("words in the box", HANG_LIMIT, || {
        let body = "return document.querySelector(arguments[0]).value";
        let words = window.script(body, &[json!(BOX)])?;
        let words = words.as_str().unwrap_or_default();
        Ok((!words.is_empty()).then(|| words.to_owned()))
    })
}

#[test]
fn words_that_were_not_sent_are_there_after_a_close_and_after_a_kill() -> Result<()> {
    let Some(needs) = Requirements::find("words that were not sent") else {
        return Ok(());
    };
    let home = Home::new()?;
    let window = Window::open(&needs, &home, &[])?;
    window.type_into(BOX, "Dear model, ")?;
    // At once: what was typed last must not need a pause to be kept.
    window.close()?;

    let window = Window::open(&needs, &home, &[])?;
    let words = found(&window)?;
    ensure!(words == "Dear model, ", "after a close: {words:?}");
    window.type_into(BOX, "I was wondering")?;
    let kept = "Dear model, I was wondering";
    // A kill may take what was typed in its last half second.
    std::thread::sleep(std::time::Duration::from_secs(1));
    window.kill()?;

    let window = Window::open(&needs, &home, &[])?;
    let words = found(&window)?;
    ensure!(words == kept, "after a kill: {words:?}");
    window.close()
}
