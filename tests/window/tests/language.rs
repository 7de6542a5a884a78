//! A German window is German throughout, also where the program speaks.

use anyhow::{Result, ensure};
use candor_testkit::{Damage, TinyModel};
use candor_window_tests::{HANG_LIMIT, Home, Requirements, Window, eventually};
use serde_json::json;

/// Words that stand in nearly every English sentence and in no German one.
const ENGLISH: [&str; 9] = ["the", "is", "are", "with", "and", "of", "for", "it", "this"];

/// What is read at this place, held to be German.
fn german(window: &Window, css: &str) -> Result<String> {
    let body = "const all = [...document.querySelectorAll(arguments[0])];
        return all.map((one) => one.innerText).join(' ');";
    let found = window.script(body, &[json!(css)])?;
    let text = found.as_str().unwrap_or_default().to_owned();
    ensure!(!text.trim().is_empty(), "{css} says nothing");
    let words = text.split(|sign: char| !sign.is_alphanumeric());
    let english: Vec<&str> = words.filter(|word| ENGLISH.contains(word)).collect();
    ensure!(english.is_empty(), "{css} says {english:?}: {text}");
    Ok(text)
}

#[test]
fn a_german_window_speaks_german_of_models_and_of_what_is_wrong_with_files() -> Result<()> {
    let Some(needs) = Requirements::find("the language of the window") else {
        return Ok(());
    };
    let home = Home::new()?;
    home.write_settings(r#"{"language": "german", "device": "cpu"}"#)?;
    let tiny = TinyModel::llama();
    let good = home.join("good.gguf");
    tiny.write(&good)?;
    let page = Damage::HtmlPage.write(&home.join("."), &tiny)?;
    let window = Window::open(&needs, &home, &[])?;
    let first = window.banner()?;
    ensure!(first.state == "Kein Modell geöffnet.", "{first:?}");
    german(&window, "[data-testid=banner]")?;

    window.pick(&home, &good)?;
    let open = window.wait_for_model("good.gguf")?;
    ensure!(open.reason.starts_with("von dir gewählt"), "{open:?}");
    window.click("[data-testid=details]")?;
    window.wait_for("[data-testid=details-panel]")?;
    let details = german(&window, "[data-testid=details-panel]")?;
    for name in ["Befehlssatz", "Belegter Speicher", "Quantisierung"] {
        ensure!(details.contains(name), "{details}");
    }
    needs.picture(&window, "german-details")?;
    window.click("[data-testid=details]")?;

    // What a file is, whether there is room for it, and what is to be known of it.
    window.open_menu()?;
    window.click("[data-testid=model-info]")?;
    window.wait_for("[data-testid=details-fit]")?;
    let described = german(&window, "[data-testid=model-details]")?;
    ensure!(described.contains("Es braucht"), "{described}");
    needs.picture(&window, "german-model")?;
    window.script(
        "document.querySelector('dialog[open]')?.close(); return null",
        &[],
    )?;

    window.pick(&home, &page)?;
    eventually("a refusal", HANG_LIMIT, || {
        let banner = window.banner()?;
        let said = "Es ist eine Webseite (HTML)";
        Ok((banner.state == "Nicht geladen" && banner.reason.contains(said)).then_some(()))
    })?;
    german(&window, "[data-testid=banner]")?;
    needs.picture(&window, "german-refused")?;
    window.close()
}
