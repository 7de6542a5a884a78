//! Stop while a prompt is read: how long the session goes on computing, and whether it is right
//! afterwards.
//!
//! `cargo bench -p candor-cpu --bench stop -- MODEL [TRIES]` reads a prompt of 4,096 tokens in chunks
//! of 512. Each chunk is cancelled again and again, at places from its first to its last
//! millisecond, and then read to its end: the sixteen best logits there are compared with those of
//! an undisturbed reading, bit for bit. It prints the distribution of the times from the
//! cancellation to the end of the call, in milliseconds, and panics if a chunk's logits differ, or
//! if a try takes longer than the limit.
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
    let expected: Vec<(Best, Duration)> = ids
        .chunks(common::CHUNK)
        .map(|chunk| read(&mut *session, chunk))
        .collect();
    let whole: Duration = expected.iter().map(|(_, took)| *took).sum();
    println!("reading {TOKENS} tokens takes {:.2} s", whole.as_secs_f64());
    session.reset(common::SLOT).expect("a new beginning");
    let each = tries.div_ceil(expected.len());
    let mut times = Vec::new();
    for (chunk, (best, took)) in ids.chunks(common::CHUNK).zip(&expected) {
        let kept = session.position(common::SLOT);
        for number in 0..each {
            let after = took.mul_f64((number as f64 + 0.5) / each as f64);
            match stop(&mut *session, chunk, after) {
                Some(time) => times.push(time),
                None => println!("after {after:?}: it was done before the Stop"),
            }
            let reached = session
                .seek(common::SLOT, kept)
                .expect("a place in the text");
            assert_eq!(reached, kept, "what was read before is still there");
        }
        assert!(
            read(&mut *session, chunk).0 == *best,
            "other logits behind {kept} tokens"
        );
    }
    times.sort();
    let at = |percent: usize| {
        let rank = (times.len() * percent).div_ceil(100).max(1) - 1;
        times[rank].as_secs_f64() * 1e3
    };
    println!(
        "{} stops: median {:.1} ms, 95 % {:.1} ms, worst {:.1} ms; the state was right afterwards",
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

/// The best tokens and the bits of their logits.
type Best = Vec<(u32, u32)>;

/// Reads a chunk to its end; gives what is best behind it, and how long it took.
fn read(session: &mut dyn Session, chunk: &[u32]) -> (Best, Duration) {
    let start = Instant::now();
    let (outcome, rows) = common::forward(session, chunk, &CancelToken::new());
    assert_eq!(outcome, Outcome::Done);
    let Some(RowOutput::Top { best, .. }) = rows.outputs.last() else {
        panic!("the best were asked for");
    };
    let bits = |(id, logit): &(u32, f32)| (*id, logit.to_bits());
    (best.iter().map(bits).collect(), start.elapsed())
}

/// Reads a chunk, and cancels after some time. How long the session went on; none if it was done
/// before.
fn stop(session: &mut dyn Session, chunk: &[u32], after: Duration) -> Option<Duration> {
    let cancel = CancelToken::new();
    let pressed = Mutex::new(None);
    let stopped = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(after);
            *pressed.lock().expect("nobody panics here") = Some(Instant::now());
            cancel.cancel();
        });
        let (outcome, _) = common::forward(session, chunk, &cancel);
        (outcome == Outcome::Cancelled).then(Instant::now)
    })?;
    let pressed = pressed.into_inner().ok().flatten()?;
    Some(stopped.saturating_duration_since(pressed))
}
