//! The banner where there is no card, where its driver does not work, and over a simulated one:
//! what a person reads, and the pictures of it.
#![cfg(target_os = "linux")]

use std::path::Path;

use anyhow::{Result, ensure};
use candor_window_tests::{Banner, Home, LOAD_LIMIT, Requirements, Window, eventually};
use simcuda::{Driver, Folder};

/// A tiny model that runs on cards.
const MODEL: &str = "../golden/models/s10-qwen2-q4_k_m.gguf";

/// A kernel that gives other values than it should.
const WRONG: &str = "kernel=attention*:scaled";

/// A window over a driver, with the model on its way. The folder has to outlive the window.
fn opened(needs: &Requirements, driver: Driver, settings: &str) -> Result<(Folder, Home, Window)> {
    let folder = Folder::new(driver, settings)?;
    let mut home = Home::new()?;
    for (name, value) in folder.environment() {
        home.set(name, value);
    }
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join(MODEL);
    home.place(&model, "tiny.gguf")?;
    let path = home.join("tiny.gguf").to_string_lossy().into_owned();
    let window = Window::open(needs, &home, &[&path])?;
    Ok((folder, home, window))
}

/// What is to be read once a model answers.
fn check(needs: &Requirements, driver: Driver, settings: &str, want: (&str, &str)) -> Result<()> {
    let (kind, words) = want;
    let (_folder, _home, window) = opened(needs, driver, settings)?;
    let banner = window.wait_for_model("tiny.gguf")?;
    ensure!(
        banner.kind == kind && banner.reason.contains(words),
        "{driver:?} with {settings:?}: {banner:?}"
    );
    window.click("[data-testid=details]")?;
    window.wait_for("[data-testid=details-panel]")?;
    let name = if settings.is_empty() {
        format!("{driver:?}")
    } else {
        settings.to_owned()
    };
    let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    needs.picture(&window, &format!("b17-{}", name.to_lowercase()))?;
    window.close()
}

#[test]
fn each_driver_that_does_not_work_is_named_in_its_own_words() -> Result<()> {
    let Some(needs) = Requirements::find("the banner over drivers that do not work") else {
        return Ok(());
    };
    let cases = [
        (
            Driver::Empty,
            "",
            "the NVIDIA driver does not answer (its library lacks ",
        ),
        (
            Driver::Simulated,
            "init=999",
            "the NVIDIA driver does not answer (it failed",
        ),
        (
            Driver::Simulated,
            "init=803",
            "its parts are of different versions",
        ),
        (
            Driver::Simulated,
            "driver=11040",
            "the NVIDIA driver is too old (470; 525 or newer",
        ),
        (
            Driver::Simulated,
            "devices=0",
            "the driver sees no NVIDIA card",
        ),
        (
            Driver::Simulated,
            "memory=200M,used=199M",
            "the model needs ",
        ),
        (Driver::Simulated, "hang=any", "it did not answer within "),
        (
            Driver::Simulated,
            "crash=any",
            "it crashed when it was asked",
        ),
    ];
    for (driver, settings, words) in cases {
        check(&needs, driver, settings, ("cpu", words))?;
    }
    if simcuda::driver_is_installed() {
        eprintln!("NOT RUN: the banner without a driver: this machine has one");
        return Ok(());
    }
    check(&needs, Driver::None, "", ("cpu", "no NVIDIA driver found"))
}

#[test]
fn a_card_that_computes_the_same_writes_the_reply() -> Result<()> {
    let Some(needs) = Requirements::find("a reply of a simulated card") else {
        return Ok(());
    };
    let (_folder, home, window) = opened(&needs, Driver::Simulated, "")?;
    let mut checking = false;
    let banner: Banner = eventually("the card is proven", LOAD_LIMIT, || {
        let banner = window.banner()?;
        if banner.kind == "proving" && !checking {
            checking = true;
            needs.picture(&window, "card-checking")?;
        }
        Ok((banner.kind == "gpu").then_some(banner))
    })?;
    ensure!(checking, "the check was not to be seen");
    ensure!(
        banner.reason.contains("Simulated GPU · proven on ")
            && banner.reason.contains("lowest match"),
        "{banner:?}"
    );
    window.click("[data-testid=details]")?;
    window.wait_for("[data-testid=copy-report]")?;
    needs.picture(&window, "card-proven")?;
    window.click("[data-testid=details]")?;
    window.answer_to("Hello")?;
    window.wait_for("[data-testid=stats]")?;
    let line = window.text("[data-testid=stats]")?.unwrap_or_default();
    ensure!(line.contains("GPU, proven"), "{line}");
    needs.picture(&window, "card-reply")?;
    window.close()?;
    drop(home);
    Ok(())
}

#[test]
fn a_card_that_computes_something_else_writes_nothing_and_can_be_reported() -> Result<()> {
    let Some(needs) = Requirements::find("a simulated card that is wrong") else {
        return Ok(());
    };
    let (_folder, _home, window) = opened(&needs, Driver::Simulated, WRONG)?;
    let banner = window.wait_for_model("tiny.gguf")?;
    let words = "GPU found (Simulated GPU), but its answers differed";
    ensure!(
        banner.kind == "cpu" && banner.reason.contains(words),
        "{banner:?}"
    );
    window.click("[data-testid=details]")?;
    for part in ["banner-advice", "copy-report", "banner-check-again"] {
        window.wait_for(&format!("[data-testid={part}]"))?;
    }
    needs.picture(&window, "card-rejected")?;
    window.click("[data-testid=details]")?;
    window.answer_to("Hello")?;
    window.wait_for("[data-testid=stats]")?;
    let line = window.text("[data-testid=stats]")?.unwrap_or_default();
    ensure!(line.contains("CPU") && !line.contains("GPU"), "{line}");
    window.close()
}

#[test]
fn the_processor_of_ones_own_choice_is_no_fault_and_can_be_taken_back() -> Result<()> {
    let Some(needs) = Requirements::find("the choice of the processor") else {
        return Ok(());
    };
    let folder = Folder::new(Driver::Simulated, "")?;
    let mut home = Home::new()?;
    for (name, value) in folder.environment() {
        home.set(name, value);
    }
    home.write_settings(r#"{"device":"cpu"}"#)?;
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join(MODEL);
    home.place(&model, "tiny.gguf")?;
    let path = home.join("tiny.gguf").to_string_lossy().into_owned();
    let window = Window::open(&needs, &home, &[&path])?;
    let banner = window.wait_for_model("tiny.gguf")?;
    ensure!(banner.reason.starts_with("chosen by you"), "{banner:?}");
    let tone = window.attribute("[data-testid=banner]", "data-tone")?;
    ensure!(tone.as_deref() == Some("neutral"), "{tone:?}");
    window.click("[data-testid=details]")?;
    window.wait_for("[data-testid=banner-use-gpu]")?;
    needs.picture(&window, "b17-chosen")?;
    window.click("[data-testid=banner-use-gpu]")?;
    eventually("the card is proven", LOAD_LIMIT, || {
        Ok((window.banner()?.kind == "gpu").then_some(()))
    })?;
    window.close()
}

/// A window in which a card is just being checked.
fn checking(needs: &Requirements) -> Result<(Folder, Home, Window)> {
    let (folder, home, window) = opened(needs, Driver::Simulated, "")?;
    eventually("the card is being checked", LOAD_LIMIT, || {
        let banner = window.banner()?;
        Ok((banner.kind == "proving").then_some(()))
    })?;
    Ok((folder, home, window))
}

#[test]
fn a_check_can_be_stopped_or_left_out() -> Result<()> {
    let Some(needs) = Requirements::find("the buttons beside a check of a card") else {
        return Ok(());
    };
    let (_folder, _home, window) = checking(&needs)?;
    window.click("[data-testid=banner-use-cpu]")?;
    let banner = window.wait_for_model("tiny.gguf")?;
    ensure!(
        banner.kind == "cpu" && banner.reason.contains("chosen by you"),
        "{banner:?}"
    );
    window.close()?;

    let (_folder, _home, window) = checking(&needs)?;
    window.click("[data-testid=banner-stop-loading]")?;
    eventually("no model is open", LOAD_LIMIT, || {
        let banner = window.banner()?;
        Ok((banner.kind == "no-model").then_some(()))
    })?;
    window.close()
}
