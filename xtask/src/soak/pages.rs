//! The window's pages in a headless Chromium over the scripted platform: long replies, long pastes.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::Bench;
use super::figures::{Figure, all_within};
use super::{counted, window};
use crate::{node, project, ui};

/// Where the scripted window is served; Vite's settings say the same.
const ADDRESS: &str = "127.0.0.1:4173";

/// It is there within this, or not at all.
const START_LIMIT: Duration = Duration::from_secs(30);

/// The browser, where the environment names no other.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Runs of the long reply: a gap that comes once in a while has to show.
const RUNS: usize = 3;

/// A reply is stopped after so long at the latest.
const REPLY_SECONDS: u32 = 120;
/// Where the reply is not what is looked at.
const HOSTILE_SECONDS: u32 = 2;

/// A long reply, who owns the scroll bar, and a conversation of 2,000 messages.
pub(super) fn b13(_: &Bench) -> Result<Vec<Figure>> {
    let _server = Server::start()?;
    let mut gaps =
        Figure::new("gap between frames, 300 kB at 200 tokens a second").limit(all_within(100));
    let mut keys = Figure::new("key to frame meanwhile").limit(all_within(50));
    let mut stop = Figure::new("Stop to the button's change, near the end").limit(all_within(100));
    let mut open = Figure::new("conversation of 2,000 messages, from the page's start")
        .limit(all_within(1_000));
    let mut cost = Figure::new("mean frame of the last tenth beside that of the first, in %")
        .limit(all_within(200));
    for _ in 0..RUNS {
        let found = script("frames.mjs", REPLY_SECONDS)?;
        times(&mut gaps, &found["framesMs"])?;
        times(&mut keys, &found["keysMs"])?;
        stop.value(found["stopMs"].as_f64().context("stopMs")?);
        open.value(
            found["longChatDrawnAfterStartMs"]
                .as_f64()
                .context("the long chat")?,
        );
        let mean = |at: usize| found["tenths"][at]["mean"].as_f64().context("tenths");
        cost.value(100.0 * mean(9)? / mean(0)?.max(1.0));
        let up = &found["scrolledUp"];
        if up["moved"] != 0 || up["selectionKept"] != true || found["atEndAfterReturn"] != true {
            gaps.fault(format!("the view or the selection moved: {found}"));
        }
    }
    Ok(vec![gaps, keys, cost, stop, open])
}

/// What an attacker or a broken model may write, each drawn within a blink or as plain text; and the
/// tests that it reaches nothing.
pub(super) fn b12(_: &Bench) -> Result<Vec<Figure>> {
    let server = Server::start()?;
    let found = script("frames.mjs", HOSTILE_SECONDS)?;
    drop(server);
    let mut drawn = Figure::new("each hostile text, to be drawn").limit(all_within(100));
    let all = found["hostileMs"].as_object().context("hostileMs")?;
    for ms in all.values() {
        drawn.value(ms.as_f64().context("a time")?);
    }
    let mut tests = Figure::new("tests in the real window that nothing foreign runs or loads");
    let kept = window::tests(&["nothing_foreign", "only_our_own"], &[])?;
    counted::note(&mut tests, &kept);
    Ok(vec![drawn, tests])
}

/// Long pastes.
pub(super) fn b11(_: &Bench) -> Result<Vec<Figure>> {
    let _server = Server::start()?;
    let found = script("pastes.mjs", REPLY_SECONDS)?;
    let mut figures = Vec::new();
    for paste in found["pastes"].as_array().context("pastes")? {
        let what = paste["what"].as_str().context("what")?;
        let mut gap = Figure::new(format!("gap between frames, {what}")).limit(all_within(200));
        times(&mut gap, &paste["gapsMs"])?;
        if let Some(wrong) = paste["wrong"].as_str() {
            gap.fault(format!("{what}: {wrong}"));
        }
        let mut keys =
            Figure::new(format!("key to frame afterwards, {what}")).limit(all_within(50));
        times(&mut keys, &paste["keysMs"])?;
        figures.extend([gap, keys]);
    }
    Ok(figures)
}

fn times(figure: &mut Figure, list: &Value) -> Result<()> {
    for ms in list.as_array().context("a list of times")? {
        figure.value(ms.as_f64().context("a time")?);
    }
    Ok(())
}

/// The last line of a script that measures.
fn script(name: &str, seconds: u32) -> Result<Value> {
    let path = node::path()?;
    let mut command = Command::new("node");
    command
        .args([
            "--experimental-websocket",
            &format!("tests/chromium/{name}"),
        ])
        .args([seconds.to_string().as_str(), "--all"])
        .current_dir(project::root().join("ui"))
        .env("PATH", &path)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let output = command.output().context("node")?;
    ensure!(
        output.status.success(),
        "{name} ended with {}",
        output.status
    );
    let text = String::from_utf8(output.stdout)?;
    let last = text.lines().last().context("it printed nothing")?;
    serde_json::from_str(last).with_context(|| last.to_owned())
}

/// Serves the scripted window. Ends when dropped.
struct Server(Child);

impl Server {
    fn start() -> Result<Self> {
        let browser =
            std::env::var_os("CHROMIUM").map_or_else(|| PathBuf::from(CHROMIUM), PathBuf::from);
        ensure!(
            browser.is_file(),
            "{} is missing: install Chromium, or say in CHROMIUM where it is",
            browser.display()
        );
        let path = node::path()?;
        ui::install(&path)?;
        ui::npm(&["run", "build:fake"], &path).run()?;
        let child = Command::new("node")
            .args([
                "node_modules/vite/bin/vite.js",
                "preview",
                "--mode",
                "fake",
                "--outDir",
                "dist-fake",
            ])
            .current_dir(project::root().join("ui"))
            .env("PATH", &path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("the scripted window")?;
        let server = Self(child);
        let start = Instant::now();
        while TcpStream::connect(ADDRESS).is_err() {
            if start.elapsed() > START_LIMIT {
                bail!("the scripted window is not served at {ADDRESS}");
            }
            sleep(Duration::from_millis(50));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
