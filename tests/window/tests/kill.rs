//! A power cut at any moment, and the gentler ways to be ended by the system.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use candor_testkit::Random;
use candor_window_tests::{HANG_LIMIT, Home, Model, Reply, Requirements, Window, eventually};

/// Kills in a plain test run; a soak asks for more.
const KILLS: usize = 3;

/// The text on the screen this long before the kill must be there again.
const MAY_BE_LOST: Duration = Duration::from_secs(1);

/// The question of the given round, so that each is told from the others.
fn question(round: usize) -> String {
    format!("Write a long story about ship number {round} and its crew, in many chapters.")
}

#[test]
fn killed_at_any_moment_it_keeps_the_question_and_the_text() -> Result<()> {
    let Some((needs, model)) =
        Requirements::with(Model::SmolLm2, "a kill in the middle of a reply")
    else {
        return Ok(());
    };
    let home = Home::new()?;
    // Without chance, this model never comes to an end of this story: a reply that was finished
    // before the kill would prove nothing.
    home.write_settings(r#"{"sampling": {"temperature": 0}}"#)?;
    let path = model.to_string_lossy();
    let mut random = Random::new(14);
    for round in 0..needs.repeats("CANDOR_KILLS", KILLS) {
        let window = Window::open(&needs, &home, &[&path])?;
        if round > 0 {
            println!(
                "STARTED AGAIN: {:.0} ms",
                window.opened_in().as_secs_f64() * 1e3
            );
            ensure!(
                window.count("[data-testid=conversation-item]")? == round,
                "all are listed"
            );
        }
        window.wait_for_model("smollm2")?;
        window.ask(&question(round))?;
        eventually("the question is shown", HANG_LIMIT, || {
            Ok(window.reply()?.map(drop))
        })?;
        // The first kill is in the middle for certain, the others at any moment.
        let sure = if round == 0 {
            window.watch_it_grow(40)?.text
        } else {
            String::new()
        };
        let wait = if round == 0 {
            MAY_BE_LOST
        } else {
            anything_up_to_3_s(&mut random)
        };
        let seen = watch(&window, wait)?;
        window.kill()?;
        let least = if seen.len() > sure.len() {
            &seen
        } else {
            &sure
        };
        let kept = look_again(&needs, &home, round)?;
        ensure!(
            kept.text.starts_with(least.trim_end()),
            "round {round}: {least:?} not in {kept:?}"
        );
        ensure!(round > 0 || kept.state == "interrupted", "{kept:?}");
        println!(
            "KEPT: {} characters after a kill",
            kept.text.chars().count()
        );
    }
    Ok(())
}

#[test]
fn asked_to_end_by_the_system_it_ends_as_when_it_is_closed() -> Result<()> {
    let Some((needs, model)) =
        Requirements::with(Model::SmolLm2, "a log-out in the middle of a reply")
    else {
        return Ok(());
    };
    let path = model.to_string_lossy();
    for signal in [None, Some("TERM"), Some("HUP"), Some("INT")] {
        let home = Home::new()?;
        home.write_settings(r#"{"sampling": {"temperature": 0}}"#)?;
        let window = Window::open(&needs, &home, &[&path])?;
        window.wait_for_model("smollm2")?;
        window.ask(&question(0))?;
        let seen = window.watch_it_grow(40)?.text;
        match signal {
            None => window.close()?,
            Some(signal) => window.end(signal)?,
        }
        let kept = look_again(&needs, &home, 0)?;
        ensure!(kept.state == "stopped", "{signal:?}: {kept:?}");
        ensure!(
            kept.text.starts_with(seen.trim_end()),
            "{signal:?}: {seen:?} not in {kept:?}"
        );
    }
    Ok(())
}

/// Opens the program again, and returns the reply that was being written.
fn look_again(needs: &Requirements, home: &Home, round: usize) -> Result<Reply> {
    let window = Window::open(needs, home, &[])?;
    window.open_first_conversation()?;
    let asked = window
        .text("[data-testid=message][data-role=user]")?
        .context("a question")?;
    ensure!(asked.trim() == question(round), "{asked}");
    let kept = window.stands_still()?;
    let ended = ["interrupted", "stopped", "finished", "length"];
    ensure!(
        ended.contains(&kept.state.as_str()),
        "round {round}: {kept:?}"
    );
    window.close()?;
    Ok(kept)
}

/// Watches for a while, and returns what had been on the screen long enough to be kept.
fn watch(window: &Window, wait: Duration) -> Result<String> {
    let start = Instant::now();
    let mut seen: Vec<(Instant, String)> = Vec::new();
    while start.elapsed() < wait {
        let text = window.reply()?.unwrap_or_default().text;
        seen.push((Instant::now(), text));
        std::thread::sleep(Duration::from_millis(20));
    }
    let old_enough = seen
        .into_iter()
        .rev()
        .find(|(when, _)| when.elapsed() >= MAY_BE_LOST);
    Ok(old_enough.map(|(_, text)| text).unwrap_or_default())
}

fn anything_up_to_3_s(random: &mut Random) -> Duration {
    Duration::from_millis(u64::try_from(random.below(3_000)).unwrap_or(0))
}
