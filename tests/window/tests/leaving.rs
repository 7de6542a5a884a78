//! Going away and coming back while a reply is written: nothing of it is lost, and Stop is there.

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use candor_window_tests::{
    HANG_LIMIT, Home, Model, Requirements, Window, eventually, kill_hard, page_processes,
};

const LONG: &str = "Write a long story about a lighthouse and its keeper, in many chapters.";

/// A model that never ends this story by itself writes it.
fn writing(needs: &Requirements, home: &Home, model: &str) -> Result<Window> {
    home.write_settings(r#"{"sampling": {"temperature": 0}}"#)?;
    let window = Window::open(needs, home, &[model])?;
    window.wait_for_model("smollm2")?;
    window.ask(LONG)?;
    window.watch_it_grow(40)?;
    Ok(window)
}

/// The reply that was left is written on where it can be seen, and its Stop works.
fn goes_on(window: &Window, seen: &str) -> Result<()> {
    window.wait_for("[data-testid=stop]")?;
    let now = window.watch_it_grow(seen.chars().count() + 1)?;
    ensure!(
        now.text.starts_with(seen.trim_end()),
        "{seen:?}, then {now:?}"
    );
    window.stop()?;
    let stopped = window.stands_still()?;
    ensure!(stopped.state == "stopped", "{stopped:?}");
    window.wait_for("[data-testid=send]")
}

#[test]
fn another_chat_and_a_page_shown_anew_leave_the_reply_and_its_stop() -> Result<()> {
    let Some((needs, model)) =
        Requirements::with(Model::SmolLm2, "leaving a reply and coming back")
    else {
        return Ok(());
    };
    let home = Home::new()?;
    let window = writing(&needs, &home, &model.to_string_lossy())?;
    let seen = window.reply()?.context("a reply")?.text;
    window.click("[data-testid=new-chat]")?;
    window.wait_for("[data-testid=empty-state]")?;
    window.open_first_conversation()?;
    window.wait_for("[data-testid=stop]")?;
    let there = window.watch_it_grow(seen.chars().count() + 1)?.text;

    window.script("location.reload()", &[])?;
    window.wait_for("[data-testid=window][data-phase=ready]")?;
    window.open_first_conversation()?;
    goes_on(&window, &there)?;
    window.close()
}

#[test]
fn closed_in_the_middle_it_leaves_no_process_and_opens_again_at_once() -> Result<()> {
    let Some((needs, model)) = Requirements::with(Model::SmolLm2, "closing and opening at once")
    else {
        return Ok(());
    };
    let model = model.to_string_lossy();
    for _ in 0..needs.repeats("CANDOR_CLOSES", 1) {
        let home = Home::new()?;
        let window = writing(&needs, &home, &model)?;
        let seen = window.reply()?.context("a reply")?.text;
        let family = window.family()?;
        let start = Instant::now();
        window.close()?;
        eventually("nothing of it is left", HANG_LIMIT, || {
            let left = family.iter().any(|process| process.is_alive());
            Ok((!left).then_some(()))
        })?;
        let took = start.elapsed().as_secs_f64() * 1e3;
        println!("MEASURED the button that closes, to the last process gone: {took:.0}");
        let window = Window::open(&needs, &home, &[])?;
        window.open_first_conversation()?;
        let kept = window.stands_still()?;
        ensure!(kept.state == "stopped", "{kept:?}");
        ensure!(
            kept.text.starts_with(seen.trim_end()),
            "{seen:?}, then {kept:?}"
        );
        window.close()?;
    }
    Ok(())
}

#[test]
fn a_page_that_dies_is_shown_anew_and_the_reply_is_written_on() -> Result<()> {
    let Some((needs, model)) = Requirements::with(Model::SmolLm2, "a page that dies") else {
        return Ok(());
    };
    let home = Home::new()?;
    let window = writing(&needs, &home, &model.to_string_lossy())?;
    let program = window.process()?;
    let pages = page_processes(program);
    ensure!(pages.len() == 1, "{pages:?}");
    let before = draft(&home)?.len();
    kill_hard(pages[0])?;
    // The driver has lost its page; what is left is looked at from outside.
    eventually("another page", HANG_LIMIT, || {
        let now = page_processes(program);
        Ok(now.iter().any(|page| !pages.contains(page)).then_some(()))
    })?;
    eventually("the reply is written on", HANG_LIMIT, || {
        Ok((draft(&home)?.len() > before).then_some(()))
    })?;
    window.end("TERM")?;
    let window = Window::open(&needs, &home, &[])?;
    window.open_first_conversation()?;
    let kept = window.stands_still()?;
    ensure!(
        kept.state == "stopped" && kept.text.len() > before,
        "{kept:?}"
    );
    window.close()
}

/// The words of the reply that is being written, as far as they are on the disk.
fn draft(home: &Home) -> Result<String> {
    let drafts = fs::read_dir(home.data().join("drafts"))?;
    let draft = drafts.flatten().next().context("a draft")?;
    Ok(fs::read_to_string(draft.path())?)
}
