//! What stands under a reply, and what it is made of, in the real window.

use anyhow::{Context, Result, ensure};
use candor_window_tests::{HANG_LIMIT, Home, Model, Requirements, Window, eventually};

/// The record under the last reply; those of others may be open too.
const RECORD: &str = "[data-testid=message][data-place=last] [data-testid=record]";

/// Opens the record under the last reply and gives its words.
fn open_record(window: &Window) -> Result<String> {
    window.click("[data-testid=message][data-place=last] [data-testid=stats]")?;
    window.wait_for(RECORD)?;
    // The file is read when somebody looks.
    eventually("the hash of the file", HANG_LIMIT, || {
        let text = window.text(RECORD)?.unwrap_or_default();
        Ok(text
            .contains("File SHA-256")
            .then_some(text)
            .filter(|text| !text.contains("Reading the file")))
    })
}

/// Has the last reply written again and gives what came out.
fn replay(window: &Window) -> Result<(String, String)> {
    window.click("[data-testid=message][data-place=last] [data-testid=replay]")?;
    let outcome = "[data-testid=message][data-place=last] [data-testid=replay-outcome]";
    let kind = eventually("the end of the replay", HANG_LIMIT, || {
        let kind = window.attribute(outcome, "data-kind")?.unwrap_or_default();
        let ends = ["same", "differs", "impossible", "stopped"];
        Ok(ends.contains(&kind.as_str()).then_some(kind))
    });
    let kind = kind.with_context(|| format!("{:?}", window.text(RECORD)))?;
    Ok((kind, window.text(outcome)?.unwrap_or_default()))
}

#[test]
fn a_reply_shows_how_it_was_written_and_comes_out_the_same_again() -> Result<()> {
    let Some((needs, model)) = Requirements::with(Model::SmolLm2, "the record and its replay")
    else {
        return Ok(());
    };
    let home = Home::new()?;
    let path = model.to_string_lossy();
    let window = Window::open(&needs, &home, &[&path])?;
    window.wait_for_model("smollm2")?;
    window.answer_to("Name three rivers, in one short sentence.")?;
    let record = open_record(&window)?;
    for words in [
        "Q4_1",
        "CPU",
        "Candor",
        "Template SHA-256",
        "Context SHA-256",
        "Seed",
        "temperature",
    ] {
        ensure!(record.contains(words), "{words} in {record}");
    }
    needs.picture(&window, "record")?;
    let (kind, words) = replay(&window)?;
    ensure!(kind == "same", "{kind}: {words}");
    needs.picture(&window, "replay-same")?;
    ensure!(window.replies()? == 1, "a replay is in no conversation");

    // After another reply the first words of the context are still in memory, or are read again:
    // it makes no difference.
    window.answer_to("And three lakes.")?;
    open_record(&window)?;
    let (kind, words) = replay(&window)?;
    ensure!(kind == "same", "{kind}: {words}");
    window.close()?;

    // After a restart too: all that it takes is in the store.
    let window = Window::open(&needs, &home, &[&path])?;
    window.wait_for_model("smollm2")?;
    window.open_first_conversation()?;
    open_record(&window)?;
    let (kind, words) = replay(&window)?;
    ensure!(kind == "same", "{kind}: {words}");
    window.close()
}

#[test]
fn formulas_and_tables_are_drawn_without_anything_from_outside() -> Result<()> {
    let Some((needs, model)) = Requirements::with(Model::SmolLm2, "formulas") else {
        return Ok(());
    };
    let home = Home::new()?;
    let path = model.to_string_lossy();
    let window = Window::open(&needs, &home, &[&path])?;
    window.wait_for_model("smollm2")?;
    let words = "Repeat exactly this and nothing else: $x^2 + y^2 = z^2$ costs $5 and $10.";
    let answered = window.answer_to(words)?;
    ensure!(!answered.text.is_empty(), "{answered:?}");
    // The policy of the page let nothing through that is not its own.
    let foreign = window.script(
        "return performance.getEntriesByType('resource').map((entry) => entry.name)\
         .filter((name) => !name.startsWith(location.origin) && !name.startsWith('ipc:')\
         && !name.includes('ipc.localhost'))",
        &[],
    )?;
    ensure!(foreign.as_array().is_some_and(Vec::is_empty), "{foreign}");
    window.close()
}
