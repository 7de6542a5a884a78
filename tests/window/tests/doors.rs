//! The doors that the window does not have: a reply is text from a stranger.

use anyhow::{Result, ensure};
use candor_window_tests::{Home, Requirements, Window};
use serde_json::json;

#[test]
fn nothing_foreign_runs_or_loads_in_the_page() -> Result<()> {
    let Some(needs) = Requirements::find("what the page may load") else {
        return Ok(());
    };
    let home = Home::new()?;
    let window = Window::open(&needs, &home, &[])?;
    // (what, code that tries it and calls done(true) if it went through)
    let attempts = [
        (
            "an inline script",
            "const s = document.createElement('script'); s.textContent = 'window.canary = 1';
             document.body.append(s); setTimeout(() => done(window.canary === 1), 200);",
        ),
        (
            "an inline handler",
            "const d = document.createElement('div'); d.innerHTML = '<img src=x onerror=\"window.canary = 2\">';
             document.body.append(d); setTimeout(() => done(window.canary === 2), 300);",
        ),
        ("eval", "try { done(window.eval('1') === 1); } catch { done(false); }"),
        (
            "a script from elsewhere",
            "const s = document.createElement('script'); s.src = 'http://127.0.0.1:9/x.js';
             s.onload = () => done(true); s.onerror = () => done(false); document.body.append(s);",
        ),
        (
            "a picture from elsewhere",
            "const i = new Image(); i.onload = () => done(true); i.onerror = () => done(false);
             i.src = 'http://127.0.0.1:9/x.png';",
        ),
        (
            "a request to elsewhere",
            "fetch('http://127.0.0.1:9/').then(() => done(true), () => done(false));",
        ),
        (
            "a style in the page",
            "const s = document.createElement('style'); s.textContent = 'body { --canary: 3 }';
             document.body.append(s);
             done(getComputedStyle(document.body).getPropertyValue('--canary').trim() === '3');",
        ),
        (
            "a frame",
            "const f = document.createElement('iframe'); f.srcdoc = '<script>parent.canary = 4</script>';
             document.body.append(f); setTimeout(() => done(window.canary === 4), 300);",
        ),
    ];
    for (what, code) in attempts {
        let body = format!("const done = arguments[0]; {code}");
        ensure!(
            window.script_later(&body, &[])? == json!(false),
            "{what} went through"
        );
    }
    // It was the policy that held, not a dead address.
    let body = "const done = arguments[0]; let seen = 0;
        document.addEventListener('securitypolicyviolation', () => { seen += 1; });
        fetch('http://127.0.0.1:9/').catch(() => {});
        new Image().src = 'http://127.0.0.1:9/x.png';
        setTimeout(() => done(seen), 500);";
    let seen = window.script_later(body, &[])?;
    ensure!(
        seen == json!(2),
        "{seen} violations of the policy were reported instead of 2"
    );
    window.close()
}

#[test]
fn only_our_own_commands_are_granted() -> Result<()> {
    let Some(needs) = Requirements::find("what the page may ask for") else {
        return Ok(());
    };
    let home = Home::new()?;
    let window = Window::open(&needs, &home, &[])?;
    let ask = |command: &str, arguments: serde_json::Value| {
        let body = "const [command, given, done] = arguments;
            window.__TAURI_INTERNALS__.invoke(command, given).then(
                () => done('granted'), (error) => done(JSON.stringify(error)));";
        window.script_later(body, &[json!(command), arguments])
    };
    for (command, arguments) in [
        ("plugin:window|close", json!({})),
        (
            "plugin:event|emit",
            json!({ "event": "status", "payload": null }),
        ),
        (
            "plugin:webview|create_webview_window",
            json!({ "options": {} }),
        ),
        ("plugin:path|resolve_directory", json!({ "directory": 1 })),
        ("no_such_command", json!({})),
        ("open_link", json!({ "url": "file:///etc/passwd" })),
    ] {
        let answer = ask(command, arguments)?;
        ensure!(answer != json!("granted"), "{command} was granted");
    }
    ensure!(
        ask("bootstrap", json!({ "system": "english" }))? == json!("granted"),
        "our own command is granted"
    );
    let global = window.script("return typeof window.__TAURI__", &[])?;
    ensure!(
        global == json!("undefined"),
        "Tauri is in the page's global scope"
    );
    let before = window.script("return location.href", &[])?;
    window.script("location.href = 'http://127.0.0.1:9/'; return null", &[])?;
    window.wait_for("[data-testid=banner]")?;
    let after = window.script("return location.href", &[])?;
    ensure!(before == after, "the page went to {after}");
    window.close()
}
