//! Opening a model and talking to it, as a person does.

use anyhow::{Result, ensure};
use candor_window_tests::{HANG_LIMIT, Home, Model, Requirements, Window, eventually};

/// A question that small models answer at length.
const LONG: &str = "Write a long story about a lighthouse keeper and her dog, in many chapters.";

#[test]
fn a_model_is_opened_asked_stopped_and_remembered() -> Result<()> {
    let Some((needs, model)) = Requirements::with(Model::SmolLm2, "the whole way of a chat") else {
        return Ok(());
    };
    let home = Home::new()?;

    let window = Window::open(&needs, &home, &[])?;
    ensure!(
        window.banner()?.kind == "no-model",
        "{:?}",
        window.banner()?
    );
    ensure!(
        window.count("[data-testid=empty-open-file]")? == 1,
        "a way to open a file"
    );

    home.answer_the_dialog_with(&model)?;
    window.click("[data-testid=empty-open-file]")?;
    let banner = window.wait_for_model("smollm2")?;
    ensure!(banner.state == "CPU", "{banner:?}");
    for word in ["no NVIDIA driver found", "threads"] {
        ensure!(banner.reason.contains(word), "{word} in {banner:?}");
    }

    window.ask(LONG)?;
    window.watch_it_grow(400)?;
    needs.picture(&window, "streaming")?;
    let took = window.stop()?;
    println!("Stop was answered after {:.0} ms", took.as_secs_f64() * 1e3);
    let stopped = window.stands_still()?;
    ensure!(stopped.state == "stopped", "{stopped:?}");
    ensure!(
        window.count("[data-testid=stop]")? == 0,
        "Stop has turned into Send"
    );
    ensure!(
        window.count("[data-testid=send]")? == 1,
        "Stop has turned into Send"
    );
    ensure!(window.replies()? == 1, "one reply");
    needs.picture(&window, "stopped")?;

    let answered = window.answer_to("Say hello.")?;
    ensure!(
        !answered.text.is_empty(),
        "the next question is answered: {answered:?}"
    );
    window.close()?;

    let window = Window::open(&needs, &home, &[])?;
    window.open_first_conversation()?;
    ensure!(window.replies()? == 2, "both replies are there");
    let last = window.stands_still()?;
    ensure!(last == answered, "{last:?} instead of {answered:?}");
    window.close()
}

#[test]
fn escape_stops_the_reading_of_a_question_and_the_writing_of_a_reply() -> Result<()> {
    let Some((needs, model)) = Requirements::with(Model::SmolLm2, "Esc") else {
        return Ok(());
    };
    let home = Home::new()?;
    let path = model.to_string_lossy();
    let window = Window::open(&needs, &home, &[&path])?;
    window.wait_for_model("smollm2")?;

    // Some six thousand tokens: read for longer than it takes to press a key.
    window.paste(&"The keeper counts the ships and writes them down. ".repeat(550))?;
    eventually("a reply that waits for its first word", HANG_LIMIT, || {
        Ok(window.reply()?.filter(|reply| reply.state == "writing"))
    })?;
    let early = window.escape()?;
    ensure!(
        early.state == "stopped" && early.text.is_empty(),
        "{early:?}"
    );

    window.ask(LONG)?;
    let seen = window.watch_it_grow(40)?.text;
    let late = window.escape()?;
    ensure!(late.state == "stopped", "{late:?}");
    ensure!(late.text.len() + 8 >= seen.len(), "{late:?} after {seen:?}");

    let answered = window.answer_to("Say hello.")?;
    ensure!(!answered.text.is_empty(), "{answered:?}");
    window.close()
}

#[test]
fn a_model_is_described_before_it_is_opened() -> Result<()> {
    let Some((needs, model)) = Requirements::with(Model::SmolLm2, "details of a model") else {
        return Ok(());
    };
    let home = Home::new()?;
    home.write_settings(r#"{"theme": "dark"}"#)?;
    home.place(&model, "data/models/smollm2-135m-instruct-q4_1.gguf")?;
    let window = Window::open(&needs, &home, &[])?;
    window.open_menu()?;
    window.click("[data-testid=model-info]")?;
    window.wait_for("[data-testid=no-findings]")?;
    let text = window.text("[data-testid=model-details]")?;
    let text = text.unwrap_or_default();
    for words in ["llama", "Q4_1", "8,192 tokens", "runs on the CPU"] {
        ensure!(text.contains(words), "{words} in {text}");
    }
    let dark = window.script("return document.documentElement.dataset.theme", &[])?;
    ensure!(dark == "dark", "{dark}");
    needs.picture(&window, "details-dark")?;
    ensure!(window.banner()?.kind == "no-model", "nothing was opened");
    window.close()
}

#[test]
fn the_starter_model_is_one_click_away() -> Result<()> {
    let Some((needs, model)) = Requirements::with(Model::SmolLm2, "the starter model") else {
        return Ok(());
    };
    let home = Home::new()?;
    home.place(&model, "data/models/smollm2-135m-instruct-q4_1.gguf")?;
    let window = Window::open(&needs, &home, &[])?;
    window.wait_for("[data-testid=empty-starter]")?;
    needs.picture(&window, "empty")?;
    window.click("[data-testid=empty-starter]")?;
    window.wait_for_model("smollm2")?;
    window.close()
}

#[test]
fn a_reply_is_written_again_beside_the_first() -> Result<()> {
    let Some((needs, model)) = Requirements::with(Model::SmolLm2, "regenerating a reply") else {
        return Ok(());
    };
    let home = Home::new()?;
    let path = model.to_string_lossy();
    let window = Window::open(&needs, &home, &[&path])?;
    window.wait_for_model("smollm2")?;
    window.answer_to("Name one colour.")?;
    let before = window.attribute("[data-testid=message]", "data-id")?;
    window.click("[data-testid=regenerate]")?;
    eventually("another reply", HANG_LIMIT, || {
        let now = window.attribute("[data-testid=message]", "data-id")?;
        Ok((now != before).then_some(()))
    })?;
    let again = window.answer_after(0)?;
    ensure!(again.state != "failed", "{again:?}");
    ensure!(window.replies()? == 1, "it takes the first one's place");
    window.close()
}

#[test]
fn closing_while_it_writes_keeps_the_text_and_leaves_nothing_behind() -> Result<()> {
    let Some((needs, model)) =
        Requirements::with(Model::SmolLm2, "closing the window while it writes")
    else {
        return Ok(());
    };
    let home = Home::new()?;
    let path = model.to_string_lossy();
    let window = Window::open(&needs, &home, &[&path])?;
    window.wait_for_model("smollm2")?;
    window.ask(LONG)?;
    let seen = window.watch_it_grow(40)?;
    // It returns once no process of the program is left.
    window.close()?;

    let window = Window::open(&needs, &home, &[])?;
    window.open_first_conversation()?;
    let kept = window.stands_still()?;
    ensure!(kept.state == "stopped", "{kept:?}");
    ensure!(
        kept.text.len() >= seen.text.len(),
        "{kept:?} holds less than {seen:?}"
    );
    window.close()
}
