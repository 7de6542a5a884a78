//! Models in the real window: folders, the room for each, settings of one chat, and the hub that
//! is never asked before a click.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use candor_testkit::TinyModel;
use candor_window_tests::{Home, Requirements, Window, eventually};

const LIMIT: Duration = Duration::from_secs(20);

/// A hub with one model of one file; counts what it is asked.
struct Hub {
    address: String,
    asked: Arc<AtomicUsize>,
}

impl Hub {
    fn start(model: Vec<u8>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("http://{}", listener.local_addr()?);
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let mut head = [0; 4_096];
                let read = stream.read(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..read]).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default();
                let size = model.len();
                let (kind, body) = if path.starts_with("/api/models?") {
                    let list = r#"[{"id":"ana/tiny","downloads":12}]"#;
                    ("application/json", list.as_bytes().to_vec())
                } else if path.starts_with("/api/models/ana/tiny") {
                    let list = format!(
                        r#"{{"sha":"abc","siblings":[{{"rfilename":"got.gguf","size":{size}}}]}}"#
                    );
                    ("application/json", list.into_bytes())
                } else {
                    ("application/octet-stream", model.clone())
                };
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\
                     connection: close\r\n\r\n"
                );
                // Who hung up hears nothing.
                let _ = stream
                    .write_all(head.as_bytes())
                    .and_then(|()| stream.write_all(&body));
            }
        });
        Ok(Self { address, asked })
    }
}

fn open_models(window: &Window, page: &str) -> Result<()> {
    window.open_menu()?;
    window.click("[data-testid=models-open]")?;
    window.click(&format!("[data-testid=models-tab-{page}]"))
}

#[test]
fn a_folder_is_listed_with_the_room_for_its_models_and_stays_when_its_drive_goes() -> Result<()> {
    let Some(needs) = Requirements::find("folders of models") else {
        return Ok(());
    };
    let home = Home::new()?;
    let drive = home.join("drive");
    fs::create_dir_all(drive.join("deep"))?;
    TinyModel::llama().write(&drive.join("deep/far.gguf"))?;
    let window = Window::open(&needs, &home, &[])?;
    open_models(&window, "here")?;
    let path = drive.to_string_lossy();
    window.type_into("[data-testid=folder-path]", &path)?;
    window.click("[data-testid=folder-add]")?;
    window.wait_for("[data-testid=models-item][data-missing=false]")?;
    window.wait_for("[data-testid=models-item] [data-testid=fit]")?;
    needs.picture(&window, "models-here")?;
    fs::rename(&drive, home.join("unplugged"))?;
    window.click("[data-testid=folder-again]")?;
    window.wait_for("[data-testid=folder][data-state=missing]")?;
    window.wait_for("[data-testid=models-item][data-missing=true]")?;
    window.close()
}

#[test]
fn a_model_is_found_downloaded_and_opened_and_nothing_is_asked_before_a_click() -> Result<()> {
    let Some(needs) = Requirements::find("downloads") else {
        return Ok(());
    };
    let home = Home::new()?;
    let file = home.join("source.gguf");
    TinyModel::llama().write(&file)?;
    let hub = Hub::start(fs::read(&file)?)?;
    home.write_settings(&format!(r#"{{"hubAddress":"{}"}}"#, hub.address))?;
    let window = Window::open(&needs, &home, &[])?;
    open_models(&window, "find")?;
    ensure!(
        hub.asked.load(Ordering::SeqCst) == 0,
        "something was asked before a click"
    );
    window.type_into("[data-testid=hub-words]", "tiny")?;
    window.click("[data-testid=hub-search]")?;
    window.click("[data-testid=hub-model] button")?;
    window.click("[data-testid=hub-get]")?;
    window.click("[data-testid=download-open]")?;
    window.wait_for_model("got.gguf")?;
    ensure!(home.data().join("models/ana/tiny/got.gguf").is_file());
    ensure!(!home.data().join("models/ana/tiny/got.gguf.part").exists());
    window.close()
}

#[test]
fn a_chat_keeps_settings_of_its_own_through_a_restart() -> Result<()> {
    let Some(needs) = Requirements::find("settings of one chat") else {
        return Ok(());
    };
    let home = Home::new()?;
    let file = home.join("tiny.gguf");
    TinyModel::llama().write(&file)?;
    let word = file.to_string_lossy().into_owned();
    let window = Window::open(&needs, &home, &[&word])?;
    window.wait_for_model("tiny.gguf")?;
    window.click("[data-testid=chat-settings]")?;
    window.type_into("[data-testid=setting-system-prompt]", "Be brief.\t")?;
    window.wait_for("[data-testid=chat-standing][data-own=true]")?;
    window.type_into("[data-testid=chat-settings-dialog]", "\u{e00c}")?;
    // The chat that was not begun hands its settings on to the one that begins.
    window.answer_to("hello")?;
    window.close()?;

    let window = Window::open(&needs, &home, &[&word])?;
    window.wait_for_model("tiny.gguf")?;
    window.open_first_conversation()?;
    window.click("[data-testid=chat-settings]")?;
    eventually("the chat's own settings", LIMIT, || {
        let own = window.attribute("[data-testid=chat-standing]", "data-own")?;
        Ok((own.as_deref() == Some("true")).then_some(()))
    })?;
    window.close()
}
