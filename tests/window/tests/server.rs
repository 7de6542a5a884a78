//! The server that answers other programs, switched in the real window.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use candor_testkit::TinyModel;
use candor_window_tests::{Home, Requirements, Window, eventually};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(20);

/// What a program gets for a question.
fn asked(base: &str) -> Result<Value> {
    let body = json!({
        "messages": [{ "role": "user", "content": "hello" }],
        "max_tokens": 4,
    });
    let mut answer = ureq::post(format!("{base}/chat/completions")).send_json(&body)?;
    Ok(answer.body_mut().read_json()?)
}

/// Where the window says that it answers.
fn address(window: &Window) -> Result<String> {
    window.wait_for("[data-testid=server-how][data-state=listening]")?;
    let address = window.text("[data-testid=server-address]")?;
    address.context("the window names no address")
}

fn is_heard(base: &str) -> bool {
    let place = base.trim_start_matches("http://").trim_end_matches("/v1");
    TcpStream::connect(place).is_ok()
}

#[test]
fn programs_are_answered_while_the_switch_is_on_and_only_then() -> Result<()> {
    let Some(needs) = Requirements::find("the switch of the server") else {
        return Ok(());
    };
    let home = Home::new()?;
    let file = home.join("tiny.gguf");
    TinyModel::llama().write(&file)?;
    let word = file.to_string_lossy().into_owned();
    let other = TcpListener::bind(("127.0.0.1", 0))?;
    let taken = other.local_addr()?.port();
    home.write_settings(&format!(r#"{{"server":{{"port":{taken}}}}}"#))?;
    let window = Window::open(&needs, &home, &[&word])?;
    window.wait_for_model("tiny.gguf")?;
    ensure!(window.count("[data-testid=server-badge]")? == 0);

    window.click("[data-testid=settings]")?;
    window.click("[data-testid=setting-server]")?;
    window.wait_for("[data-testid=server-how][data-state=port-taken]")?;
    needs.picture(&window, "server-port-taken")?;
    window.click("[data-testid=server-other]")?;
    let base = address(&window)?;
    ensure!(!base.ends_with(&format!(":{taken}/v1")), "{base}");
    needs.picture(&window, "server")?;
    let answer = asked(&base)?;
    ensure!(answer["model"] == "tiny", "{answer}");
    ensure!(
        answer["usage"]["completion_tokens"].as_u64() > Some(0),
        "{answer}"
    );

    // The window's own chat goes on beside it.
    window.type_into("[data-testid=settings-dialog]", "\u{e00c}")?;
    window.wait_for("[data-testid=server-badge]")?;
    window.answer_to("hello")?;
    window.close()?;
    ensure!(!is_heard(&base), "the server has outlived its window");

    // It is on again with the next start, and off with a click.
    let window = Window::open(&needs, &home, &[&word])?;
    window.wait_for_model("tiny.gguf")?;
    eventually("an answer after the restart", LIMIT, || {
        Ok(asked(&base).is_ok().then_some(()))
    })?;
    window.click("[data-testid=server-badge]")?;
    ensure!(address(&window)? == base);
    window.click("[data-testid=setting-server]")?;
    window.wait_for("[data-testid=server-how][data-state=off]")?;
    ensure!(!is_heard(&base), "it is heard although it is off");
    window.close()
}
