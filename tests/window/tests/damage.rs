//! Files that are no models, or no longer: a sentence, not a crash.

use anyhow::{Result, ensure};
use candor_testkit::{Damage, TinyModel};
use candor_window_tests::{HANG_LIMIT, Home, Requirements, Window, eventually, resident_kb};

/// What the program may have taken for good once all files were refused.
const GROWTH_KB_MAX: u64 = 20_000;

#[test]
fn every_damaged_file_gets_a_sentence_and_the_window_stays_usable() -> Result<()> {
    let Some(needs) = Requirements::find("damaged files") else {
        return Ok(());
    };
    let home = Home::new()?;
    let tiny = TinyModel::llama();
    let good = home.join("good.gguf");
    tiny.write(&good)?;
    let window = Window::open(&needs, &home, &[])?;
    window.pick(&home, &good)?;
    window.wait_for_model("good.gguf")?;
    let process = window.process()?;
    let before = resident_kb(process)?;

    for damage in Damage::ALL {
        let path = damage.write(&home.join("."), &tiny)?;
        let name = damage.file_name();
        window.pick(&home, &path)?;
        let said = eventually(&format!("a refusal of {name}"), HANG_LIMIT, || {
            let banner = window.banner()?;
            Ok((banner.kind == "refused" && banner.reason.contains(name)).then_some(banner.reason))
        })?;
        println!("{said}");
        ensure!(
            !damage.is_cut() || said.contains("incomplete"),
            "{name}: {said}"
        );
        if damage == Damage::HtmlPage {
            needs.picture(&window, "refused")?;
        }
        // The model that was open before is open still.
        let shown = window
            .text("[data-testid=model-button]")?
            .unwrap_or_default();
        ensure!(shown.contains("good"), "after {name}: {shown}");
    }
    ensure!(window.process()? == process, "it is the same process still");
    let after = resident_kb(process)?;
    println!("MEMORY: {before} kB before the files, {after} kB after them");
    ensure!(
        after <= before + GROWTH_KB_MAX,
        "{before} kB grew to {after} kB"
    );

    let reply = window.answer_to("x")?;
    ensure!(reply.state != "failed", "{reply:?}");
    window.close()
}

#[test]
fn a_dialog_that_is_cancelled_changes_nothing() -> Result<()> {
    let Some(needs) = Requirements::find("a cancelled dialog") else {
        return Ok(());
    };
    let home = Home::new()?;
    let window = Window::open(&needs, &home, &[])?;
    let before = window.banner()?;
    home.cancel_the_dialog()?;
    window.click("[data-testid=empty-open-file]")?;
    // Whatever is asked next is answered after it.
    window.open_menu()?;
    ensure!(window.banner()? == before, "{:?}", window.banner()?);
    ensure!(
        window.count("[data-testid=problem]")? == 0,
        "nothing went wrong"
    );
    window.close()
}
