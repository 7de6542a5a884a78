//! What choosing one token costs with a vocabulary of 150,000, for each stage alone and for usual
//! settings together. The best of several runs counts, since other work disturbs.
//!
//! `cargo bench -p candor-engine --bench sampler`
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use candor_engine::{Given, Sampler, Sampling};

const VOCABULARY: usize = 151_936;
const TOKENS: u64 = 20;
const RUNS: usize = 5;
const HISTORY: usize = 8_192;

fn main() {
    // Spread as a model's: most far below the best few.
    let logit = |id: u64| {
        let noise = id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        let low = noise as f32 / (1u64 << 24) as f32 * -20.0;
        if id.is_multiple_of(9_973) {
            low + 8.0
        } else {
            low
        }
    };
    let logits: Vec<f32> = (0..VOCABULARY as u64).map(logit).collect();
    let history: Vec<u32> = (0..HISTORY as u32).map(|i| i * 37 % 911).collect();
    let mask = vec![0x5555_5555u32; VOCABULARY.div_ceil(32)];
    for (what, sampling, masked) in cases() {
        let given = Given {
            history: &history,
            draw: 0,
            allowed: masked.then_some(&mask),
        };
        let best = time(sampling, &logits, given);
        println!("{what:16} {:8.1} µs", best.as_secs_f64() * 1e6);
    }
}

/// What is measured, how tokens are chosen in it, and whether a mask leaves every second one.
fn cases() -> [(&'static str, Sampling, bool); 10] {
    let greedy = Sampling::greedy();
    let plain = Sampling {
        temperature: 0.8,
        ..greedy
    };
    let with = |of: Sampling, change: fn(&mut Sampling)| {
        let mut sampling = of;
        change(&mut sampling);
        sampling
    };
    let usual = with(plain, |s| (s.top_k, s.top_p, s.min_p) = (40, 0.95, 0.05));
    let penalties = |s: &mut Sampling| (s.presence_penalty, s.frequency_penalty) = (0.5, 0.5);
    [
        ("best", greedy, false),
        ("best of a mask", greedy, true),
        ("plain", plain, false),
        ("top-k 40", with(plain, |s| s.top_k = 40), false),
        ("top-p 0.95", with(plain, |s| s.top_p = 0.95), false),
        ("min-p 0.05", with(plain, |s| s.min_p = 0.05), false),
        ("usual", usual, false),
        ("and penalties", with(usual, penalties), false),
        ("and DRY", with(usual, |s| s.dry_multiplier = 0.8), false),
        ("and XTC", with(usual, |s| s.xtc_probability = 1.0), false),
    ]
}

/// The best time of a token.
fn time(sampling: Sampling, logits: &[f32], given: Given<'_>) -> Duration {
    let mut sampler = Sampler::new(sampling).unwrap();
    let mut copy = logits.to_vec();
    let mut best = Duration::MAX;
    for _ in 0..RUNS {
        let mut spent = Duration::ZERO;
        for draw in 0..TOKENS {
            copy.copy_from_slice(logits);
            let given = Given { draw, ..given };
            let started = Instant::now();
            black_box(sampler.next(&mut copy, given)).unwrap();
            spent += started.elapsed();
        }
        best = best.min(spent / TOKENS as u32);
    }
    best
}
