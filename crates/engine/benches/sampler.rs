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
    let logits: Vec<f32> = (0..VOCABULARY as u64)
        .map(|id| {
            let noise = id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            -(noise as f32 / (1u64 << 24) as f32 * 20.0) + if id % 9_973 == 0 { 8.0 } else { 0.0 }
        })
        .collect();
    let history: Vec<u32> = (0..HISTORY as u32).map(|i| i * 37 % 911).collect();
    let mask = vec![0x5555_5555u32; VOCABULARY.div_ceil(32)];
    let plain = Sampling {
        temperature: 0.8,
        ..Sampling::greedy()
    };
    let usual = Sampling {
        top_k: 40,
        top_p: 0.95,
        min_p: 0.05,
        ..plain
    };
    let cases: [(&str, Sampling, Option<&[u32]>); 10] = [
        ("best", Sampling::greedy(), None),
        ("best of a mask", Sampling::greedy(), Some(&mask)),
        ("plain", plain, None),
        ("top-k 40", Sampling { top_k: 40, ..plain }, None),
        (
            "top-p 0.95",
            Sampling {
                top_p: 0.95,
                ..plain
            },
            None,
        ),
        (
            "min-p 0.05",
            Sampling {
                min_p: 0.05,
                ..plain
            },
            None,
        ),
        (
            "penalties",
            Sampling {
                presence_penalty: 0.5,
                frequency_penalty: 0.5,
                ..usual
            },
            None,
        ),
        (
            "DRY over 8,192",
            Sampling {
                dry_multiplier: 0.8,
                ..usual
            },
            None,
        ),
        (
            "XTC",
            Sampling {
                xtc_probability: 1.0,
                ..usual
            },
            None,
        ),
        ("usual", usual, None),
    ];
    for (what, sampling, allowed) in cases {
        let mut sampler = Sampler::new(sampling).unwrap();
        let mut copy = logits.clone();
        let mut best = Duration::MAX;
        for _ in 0..RUNS {
            let mut spent = Duration::ZERO;
            for draw in 0..TOKENS {
                copy.copy_from_slice(&logits);
                let given = Given {
                    history: &history,
                    draw,
                    allowed,
                };
                let started = Instant::now();
                black_box(sampler.next(&mut copy, given)).unwrap();
                spent += started.elapsed();
            }
            best = best.min(spent / TOKENS as u32);
        }
        println!("{what:16} {:8.1} µs", best.as_secs_f64() * 1e6);
    }
}
