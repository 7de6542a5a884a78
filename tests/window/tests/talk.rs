//! A conversation that is edited, searched, exported and gone on with.

use std::fs;

use anyhow::{Result, ensure};
use candor_window_tests::{HANG_LIMIT, Home, Model, Requirements, Window, eventually};
use serde_json::json;

/// A question that small models answer at length.
const LONG: &str = "Write a long story about a lighthouse keeper and her dog, in many chapters.";

/// Puts words into a field of the page, as typing does.
fn fill(window: &Window, css: &str, words: &str) -> Result<()> {
    let body = "const field = document.querySelector(arguments[0]);
                field.value = arguments[1];
                field.dispatchEvent(new InputEvent('input', { bubbles: true }));
                return null";
    window.script(body, &[json!(css), json!(words)])?;
    Ok(())
}

#[test]
fn a_conversation_is_edited_found_exported_and_gone_on_with() -> Result<()> {
    let Some((needs, model)) = Requirements::with(Model::SmolLm2, "branches, search and export")
    else {
        return Ok(());
    };
    let home = Home::new()?;
    let path = model.to_string_lossy();
    let window = Window::open(&needs, &home, &[&path])?;
    window.wait_for_model("smollm2")?;
    window.answer_to("Name one colour.")?;

    // Edit: a branch beside the first.
    window.click("[data-testid=edit-message]")?;
    window.wait_for("[data-testid=edit-field]")?;
    fill(&window, "[data-testid=edit-field]", "Name one pelican.")?;
    window.click("[data-testid=edit-save]")?;
    window.wait_for("[data-testid=version]")?;
    window.wait_for_end()?;
    let version = window.text("[data-testid=version]")?.unwrap_or_default();
    ensure!(version.trim() == "2/2", "{version}");
    window.click("[data-testid=version-before]")?;
    eventually("the first version", HANG_LIMIT, || {
        let text = window.text("[data-testid=message][data-role=user]")?;
        Ok(text
            .is_some_and(|text| text.contains("colour"))
            .then_some(()))
    })?;

    // Search: what is on the other branch is found, and shown.
    window.click("[data-testid=search]")?;
    fill(&window, "[data-testid=search]", "pelic")?;
    window.wait_for("[data-testid=found]")?;
    window.click("[data-testid=found]")?;
    eventually("the message that was found", HANG_LIMIT, || {
        let text = window.text("[data-testid=message][data-role=user]")?;
        Ok(text
            .is_some_and(|text| text.contains("pelican"))
            .then_some(()))
    })?;
    needs.picture(&window, "search")?;
    window.click("[data-testid=search-clear]")?;

    // Export: all of it, both branches.
    let file = home.join("all.json");
    home.answer_the_dialog_with(&file)?;
    window.click("[data-testid=transfer]")?;
    window.wait_for("[data-testid=export-all-json]")?;
    window.click("[data-testid=export-all-json]")?;
    window.wait_for("[data-testid=transferred]")?;
    let text = fs::read_to_string(&file)?;
    for words in ["Name one colour.", "Name one pelican."] {
        ensure!(text.contains(words), "{words} in {text}");
    }

    // Continue: a stopped reply goes on at its place.
    window.ask(LONG)?;
    window.watch_it_grow(40)?;
    window.stop()?;
    let stopped = window.stands_still()?;
    window.wait_for("[data-testid=continue]")?;
    window.click("[data-testid=continue]")?;
    eventually("the reply goes on", HANG_LIMIT, || {
        let now = window.reply()?.unwrap_or_default();
        Ok((now.state == "writing" || now.text.len() > stopped.text.len()).then_some(()))
    })?;
    let grown = window.watch_it_grow(stopped.text.len() + 4)?;
    ensure!(
        grown.text.starts_with(stopped.text.trim_end()),
        "{grown:?} after {stopped:?}"
    );
    window.end_it()?;
    window.close()
}
