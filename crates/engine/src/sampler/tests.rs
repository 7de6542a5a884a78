//! What the sampler chooses, as tables.

use super::*;

fn sampling(change: impl FnOnce(&mut Sampling)) -> Sampling {
    let mut sampling = Sampling {
        temperature: 1.0,
        ..Sampling::greedy()
    };
    change(&mut sampling);
    sampling
}

/// How often each of `n` tokens is chosen in `draws` draws.
fn histogram(sampling: Sampling, logits: &[f32], history: &[u32], draws: u64) -> Vec<f64> {
    let mut sampler = Sampler::new(sampling).unwrap();
    let mut counts = vec![0u32; logits.len()];
    for draw in 0..draws {
        let token = sampler.next(&mut logits.to_vec(), history, draw).unwrap();
        counts[token as usize] += 1;
    }
    counts
        .into_iter()
        .map(|count| f64::from(count) / draws as f64)
        .collect()
}

/// The chosen shares are within five standard deviations of the expected ones.
fn check(what: &str, sampling: Sampling, logits: &[f32], history: &[u32], expected: &[f64]) {
    const DRAWS: u64 = 20_000;
    let found = histogram(sampling, logits, history, DRAWS);
    for (token, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let allowed = 5.0 * (expected * (1.0 - expected) / DRAWS as f64).sqrt();
        assert!(
            (found - expected).abs() <= allowed,
            "{what}: token {token} was chosen {found}, expected {expected} ± {allowed}"
        );
    }
}

/// Logits of these probabilities.
fn logits_of(probabilities: &[f64]) -> Vec<f32> {
    probabilities.iter().map(|p| p.ln() as f32).collect()
}

/// Probabilities 0.1, 0.4, 0.2 and 0.3 become these shares, which are made to sum to one.
fn check_filter(what: &str, change: fn(&mut Sampling), shares: [f64; 4]) {
    let sum: f64 = shares.iter().sum();
    let logits = logits_of(&[0.1, 0.4, 0.2, 0.3]);
    check(
        what,
        sampling(change),
        &logits,
        &[],
        &shares.map(|share| share / sum),
    );
}

#[test]
fn shares_follow_each_filter() {
    check_filter("plain", |_| (), [1.0, 4.0, 2.0, 3.0]);
    check_filter("top-k 1", |s| s.top_k = 1, [0.0, 1.0, 0.0, 0.0]);
    check_filter("top-k 2", |s| s.top_k = 2, [0.0, 4.0, 0.0, 3.0]);
    check_filter("top-k all", |s| s.top_k = 9, [1.0, 4.0, 2.0, 3.0]);
    check_filter("top-p 0", |s| s.top_p = 0.0, [0.0, 1.0, 0.0, 0.0]);
    check_filter("top-p two", |s| s.top_p = 0.65, [0.0, 4.0, 0.0, 3.0]);
    check_filter("top-p three", |s| s.top_p = 0.75, [0.0, 4.0, 2.0, 3.0]);
    check_filter("min-p", |s| s.min_p = 0.6, [0.0, 4.0, 0.0, 3.0]);
    check_filter("min-p 1", |s| s.min_p = 1.0, [0.0, 1.0, 0.0, 0.0]);
    check_filter("cool", |s| s.temperature = 0.5, [1.0, 16.0, 4.0, 9.0]);
    let forbidden = [f32::NEG_INFINITY, 0.0, 0.0, f32::NEG_INFINITY];
    check(
        "−∞ is never chosen",
        sampling(|_| ()),
        &forbidden,
        &[],
        &[0.0, 0.5, 0.5, 0.0],
    );
}

#[test]
fn the_smallest_temperature_still_takes_the_best() {
    for temperature in [1e-6, f32::MIN_POSITIVE, f32::from_bits(1)] {
        for logits in [[1.0, 21.0, 20.0], [-30.0, -10.0, -20.0], [0.0, 3e38, 2e38]] {
            let cold = sampling(|s| s.temperature = temperature);
            let mut sampler = Sampler::new(cold).unwrap();
            for draw in 0..8 {
                let chosen = sampler.next(&mut logits.clone(), &[], draw);
                assert_eq!(chosen, Ok(1), "{temperature:e} {logits:?}");
            }
        }
    }
}

#[test]
fn each_stage_sees_what_the_one_before_left() {
    // Of what top-k leaves, the best alone has half.
    let top_p_after_top_k = |s: &mut Sampling| (s.top_k, s.top_p) = (2, 0.5);
    check_filter("top-k, top-p", top_p_after_top_k, [0.0, 1.0, 0.0, 0.0]);
    // Were temperature first, only the best would have its share.
    let cool_after_min_p = |s: &mut Sampling| (s.temperature, s.min_p) = (0.5, 0.6);
    check_filter(
        "min-p, temperature",
        cool_after_min_p,
        [0.0, 16.0, 0.0, 9.0],
    );
}

#[test]
fn repeat_penalty_counts_each_token_of_the_window_once() {
    let logits = [2.0_f32.ln(), -(2.0_f32.ln()), 0.0, 0.0];
    let penal = sampling(|s| s.repeat_penalty = 2.0);
    // Token 0: √2 instead of 2; token 1: ¼ instead of ½.
    let sum = 2f64.sqrt() + 0.25 + 2.0;
    let expected = &[2f64.sqrt() / sum, 0.25 / sum, 1.0 / sum, 1.0 / sum];
    check("once", penal, &logits, &[0, 1], expected);
    check(
        "however often",
        penal,
        &logits,
        &[0, 1, 0, 0, 1, 1],
        expected,
    );
    let mut old = vec![0, 1];
    old.extend(std::iter::repeat_n(99_999, REPEAT_WINDOW));
    let sum = 2.0 + 0.5 + 2.0;
    let untouched = &[2.0 / sum, 0.5 / sum, 1.0 / sum, 1.0 / sum];
    check("not outside the window", penal, &logits, &old, untouched);
}

#[test]
fn filters_equal_a_full_sort_on_a_large_vocabulary() {
    let vocabulary = 50_000;
    let logits: Vec<f32> = (0..vocabulary)
        .map(|i| (uniform(3, i) * 400.0).floor() as f32 / 20.0)
        .collect();
    let mut sorted: Vec<Candidate> = (0u32..)
        .zip(&logits)
        .map(|(id, &logit)| Candidate { id, logit })
        .collect();
    sorted.sort_by(better_first);
    for k in [1, 2, 40, 1_000, 49_999] {
        let mut kept = Vec::new();
        let mut copy = logits.clone();
        let mut pool = Pool {
            logits: &mut copy,
            kept: &mut kept,
            history: &[],
        };
        top_k(&sampling(|s| s.top_k = k), &mut pool);
        kept.sort_by(better_first);
        assert_eq!(kept, sorted[..k], "top-k {k}");
    }
    let weight = |c: &Candidate| f64::from(c.logit - sorted[0].logit).exp();
    let total: f64 = sorted.iter().map(weight).sum();
    for p in [0.01f32, 0.3, 0.9, 0.999] {
        let mut kept = Vec::new();
        let mut copy = logits.clone();
        let mut pool = Pool {
            logits: &mut copy,
            kept: &mut kept,
            history: &[],
        };
        top_p(&sampling(|s| s.top_p = p), &mut pool);
        let mut sum = 0.0;
        let needed = sorted.iter().take_while(|c| {
            let before = sum;
            sum += weight(c);
            before < f64::from(p) * total
        });
        assert_eq!(kept, needed.copied().collect::<Vec<_>>(), "top-p {p}");
    }
}

#[test]
fn greedy_takes_the_best_and_the_lowest_id_on_ties() {
    let cases: &[(&[f32], u32)] = &[
        (&[0.0, 1.0, 1.0], 1),
        (&[3.0, 3.0, 3.0], 0),
        (&[-5.0, f32::NEG_INFINITY, -4.0], 2),
        (&[f32::MIN, f32::MAX], 1),
    ];
    for (logits, expected) in cases {
        let mut sampler = Sampler::new(Sampling::greedy()).unwrap();
        assert_eq!(
            sampler.next(&mut logits.to_vec(), &[], 0),
            Ok(*expected),
            "{logits:?}"
        );
    }
}

#[test]
fn what_is_no_number_is_an_error_and_never_a_token() {
    let cases: &[(&[f32], usize)] = &[
        (&[0.0, f32::NAN, 0.0], 1),
        (&[0.0, 0.0, f32::INFINITY], 2),
        (&[f32::NEG_INFINITY, f32::NEG_INFINITY], 0),
        (&[], 0),
    ];
    for (logits, token) in cases {
        for sampling in [Sampling::greedy(), sampling(|s| s.top_k = 1)] {
            let mut sampler = Sampler::new(sampling).unwrap();
            let expected = Err(NotFinite { token: *token });
            assert_eq!(
                sampler.next(&mut logits.to_vec(), &[], 0),
                expected,
                "{logits:?}"
            );
        }
    }
}

#[test]
fn numbers_outside_their_bounds_are_refused() {
    type Change = fn(&mut Sampling);
    let cases: &[(Change, &str)] = &[
        (|s| s.temperature = -0.1, "temperature"),
        (|s| s.temperature = f32::NAN, "temperature"),
        (|s| s.temperature = 11.0, "temperature"),
        (|s| s.top_p = 1.1, "top-p"),
        (|s| s.top_p = -0.1, "top-p"),
        (|s| s.min_p = f32::INFINITY, "min-p"),
        (|s| s.repeat_penalty = 0.0, "repeat penalty"),
    ];
    for (change, what) in cases {
        assert_eq!(Sampler::new(sampling(change)).unwrap_err().what, *what);
    }
}

#[test]
fn a_reply_depends_on_the_seed_and_not_on_what_was_sampled_before() {
    let logits = logits_of(&[0.25; 4]);
    let choose = |seed: u64, draws: std::ops::Range<u64>| {
        let mut sampler = Sampler::new(sampling(|s| s.seed = seed)).unwrap();
        draws
            .map(|n| sampler.next(&mut logits.clone(), &[], n).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(choose(1, 0..64), choose(1, 0..64));
    assert_ne!(choose(1, 0..64), choose(2, 0..64));
    assert_eq!(choose(1, 0..64)[32..], choose(1, 32..64));
}

#[test]
fn the_stages_stand_in_the_order_of_the_documentation() {
    let names: Vec<_> = stage_names().collect();
    assert_eq!(
        names,
        ["repeat_penalty", "top_k", "top_p", "min_p", "temperature"]
    );
}
