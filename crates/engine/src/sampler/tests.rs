//! What the sampler chooses, as tables.

use super::filters::{better_first, top_k, top_p};
use super::*;

mod golden;

fn sampling(change: impl FnOnce(&mut Sampling)) -> Sampling {
    let mut sampling = Sampling {
        temperature: 1.0,
        ..Sampling::greedy()
    };
    change(&mut sampling);
    sampling
}

fn given(history: &[u32], draw: u64) -> Given<'_> {
    Given {
        history,
        draw,
        allowed: None,
    }
}

/// What a stage leaves of these logits; they are changed as it changes them.
fn left_by(
    stage: fn(&Sampling, &mut Pool<'_>),
    sampling: &Sampling,
    logits: &mut [f32],
) -> Vec<Candidate> {
    apply(stage, sampling, logits, (&[], &[]))
}

/// As [`left_by`], after a history, with tokens that end a repetition.
fn apply(
    stage: fn(&Sampling, &mut Pool<'_>),
    sampling: &Sampling,
    logits: &mut [f32],
    (history, breakers): (&[u32], &[u32]),
) -> Vec<Candidate> {
    let (mut kept, mut dry) = (Vec::new(), DryScratch::default());
    let mut pool = Pool {
        logits,
        kept: &mut kept,
        given: given(history, 0),
        bias: &[],
        breakers,
        dry: &mut dry,
    };
    stage(sampling, &mut pool);
    kept
}

/// How often each of `n` tokens is chosen in `draws` draws.
fn histogram(sampling: Sampling, logits: &[f32], history: &[u32], draws: u64) -> Vec<f64> {
    let mut sampler = Sampler::new(sampling).unwrap();
    let mut counts = vec![0u32; logits.len()];
    for draw in 0..draws {
        let token = sampler
            .next(&mut logits.to_vec(), given(history, draw))
            .unwrap();
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
                let chosen = sampler.next(&mut logits.clone(), given(&[], draw));
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
        let mut kept = left_by(top_k, &sampling(|s| s.top_k = k), &mut logits.clone());
        kept.sort_by(better_first);
        assert_eq!(kept, sorted[..k], "top-k {k}");
    }
    let weight = |c: &Candidate| f64::from(c.logit - sorted[0].logit).exp();
    let total: f64 = sorted.iter().map(weight).sum();
    for p in [0.01f32, 0.3, 0.9, 0.999] {
        let kept = left_by(top_p, &sampling(|s| s.top_p = p), &mut logits.clone());
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
            sampler.next(&mut logits.to_vec(), given(&[], 0)),
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
            let expected = Err(NoToken::NotFinite(NotFinite { token: *token }));
            assert_eq!(
                sampler.next(&mut logits.to_vec(), given(&[], 0)),
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
        (|s| s.presence_penalty = 2.5, "presence penalty"),
        (|s| s.frequency_penalty = -2.5, "frequency penalty"),
        (|s| s.dry_multiplier = f32::NAN, "DRY multiplier"),
        (|s| s.dry_base = 0.9, "DRY base"),
        (|s| s.dry_allowed_length = 0, "DRY allowed length"),
        (|s| s.dry_window = usize::MAX, "DRY window"),
        (|s| s.xtc_probability = 1.5, "XTC probability"),
        (|s| s.xtc_threshold = -0.1, "XTC threshold"),
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
            .map(|n| sampler.next(&mut logits.clone(), given(&[], n)).unwrap())
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
        [
            "grammar",
            "logit_bias",
            "penalties",
            "dry",
            "top_k",
            "top_p",
            "min_p",
            "xtc",
            "temperature"
        ]
    );
}

#[test]
fn xtc_leaves_the_least_likely_of_the_top_choices_as_often_as_asked() {
    // 0.4, 0.3 and 0.2 reach the threshold; of these 0.2 stays.
    let always = |s: &mut Sampling| (s.xtc_probability, s.xtc_threshold) = (1.0, 0.15);
    check_filter("always", always, [1.0, 0.0, 2.0, 0.0]);
    let one_reaches = |s: &mut Sampling| (s.xtc_probability, s.xtc_threshold) = (1.0, 0.35);
    check_filter("a single top choice", one_reaches, [1.0, 4.0, 2.0, 3.0]);
    let after_top_k = |s: &mut Sampling| {
        (s.xtc_probability, s.xtc_threshold, s.top_k) = (1.0, 0.15, 2);
    };
    check_filter("of what top-k left", after_top_k, [0.0, 0.0, 0.0, 1.0]);
    let half = |s: &mut Sampling| (s.xtc_probability, s.xtc_threshold) = (0.5, 0.15);
    // Half of the draws as without it, half as with it always.
    let mixed = [0.05 + 1.0 / 6.0, 0.2, 0.1 + 2.0 / 6.0, 0.15];
    check_filter("half of the time", half, mixed);
    let greedy = Sampling {
        xtc_probability: 1.0,
        ..Sampling::greedy()
    };
    let mut sampler = Sampler::new(greedy).unwrap();
    let mut logits = logits_of(&[0.1, 0.4, 0.2, 0.3]);
    assert_eq!(
        sampler.next(&mut logits, given(&[], 0)),
        Ok(1),
        "the best is the best"
    );
}

#[test]
fn a_bias_moves_shares_and_forbids() {
    let logits = logits_of(&[0.1, 0.4, 0.2, 0.3]);
    type Case<'a> = (&'a [(u32, f32)], Option<u32>);
    let cases: [Case<'_>; 5] = [
        (&[], Some(1)),
        (&[(1, -100.0)], Some(3)),
        (&[(0, 2.0)], Some(0)),
        (&[(1, f32::NEG_INFINITY), (3, f32::NEG_INFINITY)], Some(2)),
        (
            &[
                (0, f32::NEG_INFINITY),
                (1, f32::NEG_INFINITY),
                (2, f32::NEG_INFINITY),
                (3, f32::NEG_INFINITY),
            ],
            None,
        ),
    ];
    for (bias, expected) in cases {
        for sampling in [Sampling::greedy(), sampling(|s| s.top_k = 1)] {
            let sampler = Sampler::new(sampling).unwrap();
            let mut sampler = sampler.with_bias(bias.to_vec(), 4).unwrap();
            assert_eq!(sampler.takes_best(), bias.is_empty() && sampling.top_k == 0);
            let found = sampler.next(&mut logits.clone(), given(&[], 0));
            assert_eq!(found, expected.ok_or(NoToken::NothingAllowed), "{bias:?}");
        }
    }
    let refused = |bias: Vec<(u32, f32)>| {
        let sampler = Sampler::new(Sampling::greedy()).unwrap();
        sampler.with_bias(bias, 4).map(|_| ()).unwrap_err()
    };
    assert!(matches!(
        refused(vec![(4, 0.0)]),
        BiasError::UnknownToken { token: 4, .. }
    ));
    assert!(matches!(refused(vec![(0, f32::NAN)]), BiasError::Value(_)));
    assert!(matches!(
        refused(vec![(0, f32::INFINITY)]),
        BiasError::Value(_)
    ));
    assert!(matches!(
        refused(vec![(0, 0.0); BIASES_MAX + 1]),
        BiasError::TooMany { .. }
    ));
}

#[test]
fn only_what_a_mask_allows_is_chosen() {
    let logits: Vec<f32> = (0..70).map(|i| i as f32 / 10.0).collect();
    let all = [u32::MAX; 3];
    let cases: [(&[u32], Option<u32>); 6] = [
        (&all, Some(69)),
        (&[u32::MAX, 1], Some(32)),
        (&[u32::MAX], Some(31)),
        (&[0b1010], Some(3)),
        (&[0, 0, 0b1_0000], Some(68)),
        (&[], None),
    ];
    for (allowed, expected) in cases {
        let given = Given {
            allowed: Some(allowed),
            ..Given::default()
        };
        for sampling in [Sampling::greedy(), sampling(|s| s.top_k = 1)] {
            let mut sampler = Sampler::new(sampling).unwrap();
            let found = sampler.next(&mut logits.clone(), given);
            assert_eq!(
                found,
                expected.ok_or(NoToken::NothingAllowed),
                "{allowed:?}"
            );
        }
    }
}

#[test]
fn greedy_heeds_penalties_and_repetitions() {
    let logits = [1.0, 1.5, 0.9];
    type Change = fn(&mut Sampling);
    let cases: [(Change, u32); 5] = [
        (|_| (), 1),
        (|s| s.repeat_penalty = 2.0, 2),
        (|s| s.presence_penalty = 0.7, 2),
        (|s| s.frequency_penalty = 0.3, 2),
        (|s| (s.dry_multiplier, s.dry_allowed_length) = (1.0, 1), 2),
    ];
    for (change, expected) in cases {
        let mut greedy = Sampling::greedy();
        change(&mut greedy);
        let mut sampler = Sampler::new(greedy).unwrap();
        // Tokens 0 and 1 came before, and both would go on with a repetition.
        let found = sampler.next(&mut logits.to_vec(), given(&[1, 0, 1, 1], 0));
        assert_eq!(found, Ok(expected), "{greedy:?}");
        assert_eq!(sampler.takes_best(), greedy == Sampling::greedy());
    }
}

#[test]
fn log_probabilities_are_those_of_a_direct_softmax() {
    let rows = [
        logits_of(&[0.1, 0.4, 0.2, 0.3]),
        (0..3_000)
            .map(|i| (uniform(5, i) * 30.0) as f32 - 20.0)
            .collect(),
        vec![88.0, -88.0, 0.0, 88.0],
        vec![f32::NEG_INFINITY, 1.0, 1.0],
    ];
    for logits in rows {
        let exact: Vec<f64> = logits.iter().map(|logit| f64::from(*logit)).collect();
        let lse = exact.iter().map(|logit| logit.exp()).sum::<f64>().ln();
        let mut order: Vec<usize> = (0..logits.len()).collect();
        order.sort_by(|a, b| exact[*b].total_cmp(&exact[*a]).then(a.cmp(b)));
        let mut scratch = LogprobScratch::default();
        scratch.keep(&logits);
        for (chosen, top) in [(0, 0), (1, 1), (2, 5), (0, TOP_LOGPROBS_MAX)] {
            let found = scratch.of(chosen, top);
            let near = |found: f32, expected: f64| {
                f64::from(found) == expected || (f64::from(found) - expected).abs() < 1e-5
            };
            assert!(
                near(found.chosen, exact[chosen as usize] - lse),
                "{found:?}"
            );
            let ids: Vec<usize> = found.top.iter().map(|(id, _)| *id as usize).collect();
            assert_eq!(ids, order[..top.min(order.len())]);
            assert!(
                found
                    .top
                    .iter()
                    .all(|(id, p)| near(*p, exact[*id as usize] - lse))
            );
        }
    }
}
