//! One open window.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use serde_json::{Value, json};

use crate::driver::{Driver, Verb};
use crate::home::Home;
use crate::processes::{self, Family};
use crate::requirements::Requirements;
use crate::wait::{HANG_LIMIT, eventually};

/// The name under which the protocol hides an element's number.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// What every window of the program has in its title.
const TITLE: &str = "Candor";

/// Clicks the button that a window manager would draw.
const CLOSE: &str = include_str!("close_window.py");

/// The program with its window open.
pub struct Window {
    driver: Driver,
    program: String,
    data: String,
    opened_in: Duration,
}

impl Window {
    /// Starts the program in this home, with these further words on its command line.
    ///
    /// # Errors
    /// If it does not show its pages.
    pub fn open(needs: &Requirements, home: &Home, words: &[&str]) -> Result<Self> {
        let program = needs.app.to_str().context("the program's path")?.to_owned();
        let data = home.data().to_str().context("the home's path")?.to_owned();
        let mut arguments = vec!["--data-dir".to_owned(), data.clone()];
        arguments.extend(words.iter().map(ToString::to_string));
        let mut driver = Driver::start(home)?;
        let start = Instant::now();
        driver.open(&program, &arguments)?;
        let mut window = Self {
            driver,
            program,
            data,
            opened_in: Duration::ZERO,
        };
        window.wait_for("[data-testid=window][data-phase=ready]")?;
        window.opened_in = start.elapsed();
        Ok(window)
    }

    /// How long the program took from its start until it could be used, the driver's part in it
    /// included.
    pub fn opened_in(&self) -> Duration {
        self.opened_in
    }

    /// The program's process and those that it has started.
    ///
    /// # Errors
    /// If the program does not run.
    pub fn family(&self) -> Result<Vec<Family>> {
        Ok(Family::of(self.process()?))
    }

    /// Runs a function's body in the page and returns what it returns.
    ///
    /// # Errors
    /// If it throws.
    pub fn script(&self, body: &str, arguments: &[Value]) -> Result<Value> {
        let body = json!({ "script": body, "args": arguments });
        self.driver.command(&Verb::Post(body), "/execute/sync")
    }

    /// The same for a body that calls its last argument when it is done.
    ///
    /// # Errors
    /// If it throws.
    pub fn script_later(&self, body: &str, arguments: &[Value]) -> Result<Value> {
        let body = json!({ "script": body, "args": arguments });
        self.driver.command(&Verb::Post(body), "/execute/async")
    }

    /// How many elements match.
    ///
    /// # Errors
    /// If the window does not answer.
    pub fn count(&self, css: &str) -> Result<usize> {
        let found = self.script(
            "return document.querySelectorAll(arguments[0]).length",
            &[json!(css)],
        )?;
        Ok(usize::try_from(found.as_u64().context("a number")?)?)
    }

    /// The text of the last element that matches; none if none does.
    ///
    /// # Errors
    /// If the window does not answer.
    pub fn text(&self, css: &str) -> Result<Option<String>> {
        self.of_last(css, "textContent")
    }

    /// An attribute of the last element that matches.
    ///
    /// # Errors
    /// If the window does not answer.
    pub fn attribute(&self, css: &str, name: &str) -> Result<Option<String>> {
        let body = "const all = document.querySelectorAll(arguments[0]);
                    return all.length ? all[all.length - 1].getAttribute(arguments[1]) : null";
        Ok(self
            .script(body, &[json!(css), json!(name)])?
            .as_str()
            .map(str::to_owned))
    }

    /// Waits until an element matches.
    ///
    /// # Errors
    /// If none does in time.
    pub fn wait_for(&self, css: &str) -> Result<()> {
        eventually(css, HANG_LIMIT, || Ok((self.count(css)? > 0).then_some(())))
    }

    /// Waits until no element matches.
    ///
    /// # Errors
    /// If one still does after the limit.
    pub fn wait_until_gone(&self, css: &str) -> Result<()> {
        eventually(&format!("no {css}"), HANG_LIMIT, || {
            Ok((self.count(css)? == 0).then_some(()))
        })
    }

    /// Clicks an element as the mouse does: it must be visible and not covered.
    ///
    /// # Errors
    /// If it is not there in time.
    pub fn click(&self, css: &str) -> Result<()> {
        self.wait_for(css)?;
        let element = self.element(css)?;
        self.driver
            .command(&Verb::Post(json!({})), &format!("/element/{element}/click"))
            .map(drop)
            .with_context(|| format!("click on {css}"))
    }

    /// Types into an element; the private characters of the protocol stand for special keys.
    ///
    /// # Errors
    /// If it is not there in time.
    pub fn type_into(&self, css: &str, text: &str) -> Result<()> {
        self.wait_for(css)?;
        let element = self.element(css)?;
        let body = Verb::Post(json!({ "text": text }));
        self.driver
            .command(&body, &format!("/element/{element}/value"))
            .map(drop)
            .with_context(|| format!("typing into {css}"))
    }

    /// Keeps a picture of the window.
    ///
    /// # Errors
    /// If it cannot be taken or written.
    pub fn picture(&self, path: &Path) -> Result<()> {
        // The page is drawn a frame after it has changed; what moves has come to rest after a
        // few more.
        let body = "const done = arguments[0]; let frames = 20;
            const next = () => { frames -= 1; frames ? requestAnimationFrame(next) : done(null); };
            next();";
        self.script_later(body, &[])?;
        let value = self.driver.command(&Verb::Get, "/screenshot")?;
        let text = value.as_str().context("a picture")?;
        fs::write(
            path,
            base64::engine::general_purpose::STANDARD.decode(text)?,
        )?;
        Ok(())
    }

    /// The number of the program's process.
    ///
    /// # Errors
    /// If there is none, or more than one.
    pub fn process(&self) -> Result<u32> {
        match processes::running(&self.program, &self.data).as_slice() {
            [one] => Ok(*one),
            several => bail!("{} processes instead of one: {several:?}", several.len()),
        }
    }

    /// Closes the window as a person does, by its button, and waits until the program has gone.
    ///
    /// # Errors
    /// If it stays.
    pub fn close(self) -> Result<()> {
        let status = Command::new("python3")
            .args(["-c", CLOSE, TITLE])
            .status()?;
        ensure!(status.success(), "no window has the title {TITLE}");
        self.wait_for_its_end()
    }

    /// Asks the program to end, as a log-out does, and waits until it has gone.
    ///
    /// # Errors
    /// If it stays.
    pub fn end(self, signal: &str) -> Result<()> {
        processes::signal(self.process()?, signal)?;
        self.wait_for_its_end()
    }

    fn wait_for_its_end(&self) -> Result<()> {
        eventually("the program ends", HANG_LIMIT, || {
            Ok(processes::running(&self.program, &self.data)
                .is_empty()
                .then_some(()))
        })
    }

    /// Ends the program as a power cut would.
    ///
    /// # Errors
    /// If it was not running.
    pub fn kill(self) -> Result<()> {
        let process = self.process()?;
        processes::kill_hard(process)?;
        eventually("the program is dead", HANG_LIMIT, || {
            Ok((!processes::is_alive(process)).then_some(()))
        })
    }

    fn of_last(&self, css: &str, property: &str) -> Result<Option<String>> {
        let body = "const all = document.querySelectorAll(arguments[0]);
                    return all.length ? all[all.length - 1][arguments[1]] : null";
        Ok(self
            .script(body, &[json!(css), json!(property)])?
            .as_str()
            .map(str::to_owned))
    }

    fn element(&self, css: &str) -> Result<String> {
        let body = json!({ "using": "css selector", "value": css });
        let found = self.driver.command(&Verb::Post(body), "/element")?;
        Ok(found[ELEMENT]
            .as_str()
            .with_context(|| format!("no {css}"))?
            .to_owned())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // A test that failed leaves its window open; the next one must not find it.
        let _ = self.driver.end_session();
        for process in processes::running(&self.program, &self.data) {
            let _ = processes::kill_hard(process);
        }
    }
}
