//! Names with spaces, other scripts, emoji, and bytes that are no text at all.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use candor_testkit::TinyModel;
use candor_window_tests::{Home, Requirements, Window};

/// The longest name that common file systems hold, in bytes.
const NAME_BYTES_MAX: usize = 250;

/// A name, and what of it must be on the screen.
fn names() -> Vec<(OsString, String)> {
    let text = |name: &str| (OsString::from(name), name.to_owned());
    let long = format!("{}.gguf", "n".repeat(NAME_BYTES_MAX - ".gguf".len()));
    vec![
        text("qwen tiny 🙂 (final) #1 100%.gguf"),
        text("composed \u{e9}.gguf"),
        text("decomposed e\u{301}.gguf"),
        text(&long),
        (
            OsString::from_vec(b"bytes \xff\xfe.gguf".to_vec()),
            "bytes \u{fffd}\u{fffd}.gguf".to_owned(),
        ),
    ]
}

#[test]
fn any_name_opens_by_dialog_and_is_found_again_after_a_restart() -> Result<()> {
    let Some(needs) = Requirements::find("awkward names") else {
        return Ok(());
    };
    let home = Home::below("Модели  é ü 田中\u{3000}#1 100%")?;
    let folder = home.join("models \u{e9}");
    std::fs::create_dir_all(&folder)?;
    let window = Window::open(&needs, &home, &[])?;
    for (name, shown) in names() {
        let path = folder.join(name);
        TinyModel::llama().write(&path)?;
        window.pick(&home, &path)?;
        window.wait_for_model(&shown)?;
    }
    window.answer_to("x")?;
    window.close()?;

    let window = Window::open(&needs, &home, &[])?;
    let (_, last) = names().pop().context("there are names")?;
    window.wait_for_model(&last)?;
    window.open_menu()?;
    ensure!(window.count("[data-testid=model-item][data-missing=false]")? == names().len());
    for (_, shown) in names() {
        window.open_menu()?;
        window.choose_model(&shown)?;
        window.wait_for_model(&shown)?;
    }
    window.open_first_conversation()?;
    ensure!(
        window.replies()? == 1,
        "the conversation that used it opens"
    );
    window.close()
}

#[test]
fn any_name_opens_from_the_command_line() -> Result<()> {
    let Some(needs) = Requirements::find("awkward names on the command line") else {
        return Ok(());
    };
    let home = Home::below("田中  🙂")?;
    for (name, shown) in names() {
        let path = home.join(name);
        TinyModel::llama().write(&path)?;
        // The driver passes text only: what is no text goes as an address, as file managers do.
        let word = path.to_str().map_or_else(|| address(&path), str::to_owned);
        let window = Window::open(&needs, &home, &[&word])?;
        window.wait_for_model(&shown)?;
        window.close()?;
    }
    Ok(())
}

#[test]
fn a_second_start_hands_its_file_to_the_window_that_is_open() -> Result<()> {
    let Some(needs) = Requirements::find("a second start") else {
        return Ok(());
    };
    let home = Home::new()?;
    let window = Window::open(&needs, &home, &[])?;
    for (name, shown) in names() {
        let path = home.join(&name);
        TinyModel::llama().write(&path)?;
        let ended = Command::new(&needs.app)
            .args([OsStr::new("--data-dir"), home.data().as_os_str(), &name])
            .current_dir(home.join("."))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        ensure!(ended.success(), "{shown}: {ended}");
        window.wait_for_model(&shown)?;
        window.process()?;
    }
    window.close()
}

/// The path as an address, every byte but the plainest as its number.
fn address(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let bytes = path.as_os_str().as_bytes().iter();
    let written = bytes.map(|&byte| {
        if plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    });
    format!("file://{}", written.collect::<String>())
}
