//! Stop while a prompt is read: how long the session goes on computing, and whether it is right
//! afterwards.
//!
//! `cargo bench -p candor-cpu --bench stop -- MODEL [TRIES]` reads a prompt of 4,096 tokens again
//! and again, cancels each time at another place, and prints the distribution of the times from the
//! cancellation to the end of the call, in milliseconds. After each, what was kept is read on to the
//! end, and the sixteen best logits there are compared with those of an undisturbed reading, bit for
//! bit. It panics if they differ, or if a try takes longer than the limit.
#![allow(clippy::print_stdout)]

mod common;

use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use candor_backend::{CancelToken, KvType, Outcome, RowOutput, Session};
use candor_cpu::{CpuConfig, default_threads};

/// Tokens of the prompt.
const TOKENS: usize = 4_096;

/// Tries, where none are asked for.
const TRIES: usize = 100;

/// The longest that a person should not notice.
const LIMIT: Duration = Duration::from_millis(100);

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let Some(path) = args.next().map(PathBuf::from) else {
        println!("NOT RUN: no model was named");
        return;
    };
    let tries = args.next().and_then(|n| n.parse().ok()).unwrap_or(TRIES);
    let loaded = common::load(&path, CpuConfig::new(default_threads()));
    let mut session = common::open(&*loaded, TOKENS, KvType::F16);
    let ids = common::ids(&*session, TOKENS);
    let start = Instant::now();
    let expected = read(&mut *session, &ids);
    let whole = start.elapsed();
    println!("reading {TOKENS} tokens takes {:.2} s", whole.as_secs_f64());
    let mut times = Vec::new();
    for number in 0..tries {
        session.reset(common::SLOT).expect("a new beginning");
        // From the first hundredth of the reading to the last.
        let after = whole.mul_f64((number as f64 + 0.5) / tries as f64);
        let Some(took) = stop(&mut *session, &ids, after) else {
            println!("try {number}: the reading was done before the Stop");
            continue;
        };
        times.push(took);
        let kept = session.position(common::SLOT);
        assert_eq!(read(&mut *session, &ids[kept..]), expected, "try {number}");
    }
    times.sort();
    let at = |percent: usize| {
        let rank = (times.len() * percent).div_ceil(100).max(1) - 1;
        times[rank].as_secs_f64() * 1e3
    };
    println!(
        "{} stops: median {:.1} ms, 95 % {:.1} ms, worst {:.1} ms; the state was right after each",
        times.len(),
        at(50),
        at(95),
        at(100)
    );
    assert!(
        times.iter().all(|time| *time <= LIMIT),
        "longer than {LIMIT:?}"
    );
}

/// Reads tokens to the end and gives the bits of the best logits behind them.
fn read(session: &mut dyn Session, ids: &[u32]) -> Vec<(u32, u32)> {
    let mut best = Vec::new();
    for chunk in ids.chunks(common::CHUNK) {
        let (outcome, rows) = common::forward(session, chunk, &CancelToken::new());
        assert_eq!(outcome, Outcome::Done);
        if let Some(RowOutput::Top { best: found, .. }) = rows.outputs.last() {
            best = found
                .iter()
                .map(|(id, logit)| (*id, logit.to_bits()))
                .collect();
        }
    }
    best
}

/// Reads, and cancels after some time. How long the session went on; none if it was done before.
fn stop(session: &mut dyn Session, ids: &[u32], after: Duration) -> Option<Duration> {
    let cancel = CancelToken::new();
    let pressed = Mutex::new(None);
    let stopped = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(after);
            let mut pressed = pressed.lock().expect("nobody panics here");
            *pressed = Some(Instant::now());
            cancel.cancel();
        });
        ids.chunks(common::CHUNK)
            .any(|chunk| common::forward(session, chunk, &cancel).0 == Outcome::Cancelled)
            .then(Instant::now)
    })?;
    let pressed = pressed.into_inner().ok().flatten()?;
    Some(stopped.saturating_duration_since(pressed))
}
