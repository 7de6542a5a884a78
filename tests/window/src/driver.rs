//! WebKit's own driver, and the few words of the WebDriver protocol that we speak.

use std::fs::File;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use ureq::Agent;

use crate::home::Home;
use crate::wait::{HANG_LIMIT, eventually};

/// The program starts within this, or not at all: a debug build on two busy cores.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// A command that took longer is named in the test's output: where a test waited in vain, it tells a
/// window that did not answer from a driver that did not ask.
const SLOW: Duration = Duration::from_secs(3);

/// The driver's process and the one session in it.
pub(crate) struct Driver {
    child: Child,
    agent: Agent,
    base: String,
    session: Option<String>,
}

/// How a command goes over the wire.
pub(crate) enum Verb {
    /// Asks.
    Get,
    /// Tells.
    Post(Value),
    /// Ends.
    Delete,
}

impl Driver {
    /// Starts a driver that will start programs with this home's answer to the file dialog.
    pub(crate) fn start(home: &Home) -> Result<Self> {
        // A port that was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        // Never inherited or piped: helpers that GTK starts keep a pipe open, and whoever reads
        // it waits for ever.
        let log = File::create(home.join("driver.log"))?;
        let child = Command::new("WebKitWebDriver")
            .args([format!("--port={port}"), "--host=127.0.0.1".to_owned()])
            .env("TAURI_WEBVIEW_AUTOMATION", "true")
            .env("CANDOR_TEST_PICK", home.dialog_answer())
            .env("NO_AT_BRIDGE", "1")
            .env_remove("CANDOR_DATA_DIR")
            .envs(home.variables())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("WebKitWebDriver")?;
        let config = Agent::config_builder()
            .timeout_global(Some(ANSWER_LIMIT))
            .http_status_as_error(false)
            .build();
        let base = format!("http://127.0.0.1:{port}");
        let driver = Self {
            child,
            agent: config.into(),
            base,
            session: None,
        };
        eventually("the driver answers", HANG_LIMIT, || {
            let answer = driver.agent.get(format!("{}/status", driver.base)).call();
            Ok(answer.is_ok().then_some(()))
        })?;
        Ok(driver)
    }

    /// Has the driver start the program.
    pub(crate) fn open(&mut self, program: &str, arguments: &[String]) -> Result<()> {
        let options = json!({ "binary": program, "args": arguments });
        let wanted = json!({ "alwaysMatch": { "webkitgtk:browserOptions": options } });
        let body = json!({ "capabilities": wanted });
        let value = self.exchange(&Verb::Post(body), &format!("{}/session", self.base))?;
        let session = value["sessionId"]
            .as_str()
            .context("a session has a number")?;
        self.session = Some(session.to_owned());
        Ok(())
    }

    /// A command of the session.
    pub(crate) fn command(&self, verb: &Verb, path: &str) -> Result<Value> {
        let session = self.session.as_deref().context("no session is open")?;
        self.exchange(verb, &format!("{}/session/{session}{path}", self.base))
    }

    /// Ends the session, which closes the program.
    pub(crate) fn end_session(&mut self) -> Result<()> {
        if self.session.is_some() {
            self.command(&Verb::Delete, "")?;
            self.session = None;
        }
        Ok(())
    }

    fn exchange(&self, verb: &Verb, url: &str) -> Result<Value> {
        let start = Instant::now();
        let value = self.converse(verb, url);
        if start.elapsed() > SLOW {
            let path = url.strip_prefix(&self.base).unwrap_or(url);
            println!("driver: {path} took {} s", start.elapsed().as_secs());
        }
        value
    }

    fn converse(&self, verb: &Verb, url: &str) -> Result<Value> {
        let answer = match verb {
            Verb::Get => self.agent.get(url).call(),
            Verb::Post(body) => self.agent.post(url).send_json(body),
            Verb::Delete => self.agent.delete(url).call(),
        };
        let mut answer = answer.with_context(|| url.to_owned())?;
        let text = answer.body_mut().read_to_string()?;
        let body: Value = serde_json::from_str(&text).map_err(|_| anyhow!("{url}: {text}"))?;
        let value = body["value"].clone();
        if !answer.status().is_success() {
            bail!(
                "{}: {}",
                value["error"].as_str().unwrap_or("?"),
                value["message"]
            );
        }
        Ok(value)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The driver may have ended already, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
