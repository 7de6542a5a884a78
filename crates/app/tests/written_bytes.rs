//! How much a reply costs the disk. A test of its own, because the system counts for the process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "this is a test")]

#[path = "product/desk.rs"]
#[allow(dead_code, reason = "only a part of it is needed here")]
mod desk;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use candor_app::wire::MessageState;

use desk::{Desk, ask, load};

const TOKENS: u32 = 2_000;

/// How far the clock goes each time it is looked at: as if the model wrote a few tokens a second,
/// so that the words go to disk as often as they ever do.
const TICK: Duration = Duration::from_millis(60);

/// Bytes that this process has given to the system to write.
fn written() -> Option<u64> {
    let counts = fs::read_to_string("/proc/self/io").ok()?;
    let line = counts
        .lines()
        .find_map(|line| line.strip_prefix("wchar: "))?;
    line.parse().ok()
}

#[test]
fn a_reply_of_2000_tokens_writes_less_than_20_times_its_text() {
    let desk = Desk::with_model(&candor_testkit::TinyModel::llama().context(4_096));
    let mut config = desk.config();
    let (start, ticks) = (Instant::now(), AtomicU64::new(0));
    config.clock.instant = Arc::new(move || {
        let tick = u32::try_from(ticks.fetch_add(1, Ordering::Relaxed)).unwrap();
        start + TICK * tick
    });
    let app = desk.open_with(config);
    load(&app, &desk.model);
    let mut settings = app.settings();
    settings.sampling.max_tokens = TOKENS;
    app.save_settings(settings).unwrap();
    // A word and a half for a token, as models write.
    let words: Vec<u32> = (0..TOKENS).map(|i| 256 + i % 40).collect();
    desk.script.reply(&words);
    let Some(before) = written() else {
        eprintln!("NOT RUN: bytes written for a reply: the system does not count them");
        return;
    };
    let (_, end) = ask(&app, None, "A long one?");
    let written = written().unwrap() - before;
    assert_eq!(end.message.state, MessageState::Length);
    let text = end.message.text.len() as u64;
    assert!(text > 4_000, "{text}");
    assert!(written < 20 * text, "{written} bytes for {text} of text");
}
