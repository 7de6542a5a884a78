//! What is kept of the reference, and what is left out.

use half::f16;

use super::super::compare::{Entries, KeptRow, Unfit};
use super::*;

/// `len` logits around `offset`.
fn logits(len: usize, offset: f32, seed: u64) -> Vec<f32> {
    let mut random = candor_testkit::Random::new(seed);
    (0..len)
        .map(|_| offset + 4.0 * random.signed_unit())
        .collect()
}

#[test]
fn a_common_offset_hides_nothing() {
    // The seed's cosine of these is 0.993.
    let row = logits(256, 40.0, 1);
    let mut reversed = row.clone();
    reversed.reverse();
    let kept = KeptRow::new(&row, 0, 1).unwrap();
    let same: Vec<f32> = row.iter().map(|logit| logit - 40.0).collect();
    assert!(kept.compare(&same).unwrap().cosine > 0.9999);
    assert!(kept.compare(&reversed).unwrap().cosine < 0.5);
}

#[test]
fn what_is_no_number_is_told_from_what_is_small() {
    let row = logits(300, 0.0, 2);
    let kept = KeptRow::new(&row, 0, 1).unwrap();
    let with = |value: f32| {
        let mut row = row.clone();
        row[299] = value;
        row
    };
    for value in [f32::NAN, f32::INFINITY] {
        assert_eq!(
            kept.compare(&with(value)),
            Err(Unfit::NotFinite { token: 299 })
        );
        assert!(KeptRow::new(&with(value), 0, 1).is_none());
    }
    // A token that cannot be chosen is one that both sides know.
    let kept = KeptRow::new(&with(f32::NEG_INFINITY), 0, 1).unwrap();
    let measure = kept.compare(&with(f32::NEG_INFINITY)).unwrap();
    assert!(measure.cosine > 0.9999 && measure.kl < 1e-3, "{measure:?}");
    assert!(KeptRow::new(&[f32::NEG_INFINITY; 4], 0, 1).is_none());
    assert!(matches!(
        kept.compare(&row[..10]),
        Err(Unfit::Length {
            found: 10,
            expected: 300
        })
    ));
}

#[test]
fn divergence_is_that_of_the_probabilities() {
    // ln 3 apart: p = (3/4, 1/4) against (1/2, 1/2).
    let kept = KeptRow::new(&[3f32.ln(), 0.0], 0, 1).unwrap();
    let expected = 0.75 * 1.5f64.ln() + 0.25 * 0.5f64.ln();
    let found = kept.compare(&[1.0, 1.0]).unwrap().kl;
    assert!((found - expected).abs() < 1e-3, "{found}, {expected}");
    // Ties go to the lower id on both sides.
    assert_eq!(kept.compare(&[1.0, 1.0]).unwrap().candidate_token, 0);
    assert_eq!(
        kept.compare(&[1.0, 3.0]).unwrap().margin,
        f16::from_f64(3f64.ln()).to_f64()
    );
}

#[test]
fn sampled_rows_go_through_the_whole_vocabulary_and_measure_the_same() {
    const VOCABULARY: usize = 50_000;
    const ROWS: usize = 289;
    let mut seen = vec![false; VOCABULARY];
    let mut full = 0;
    for row in 0..ROWS {
        let reference = logits(VOCABULARY, 20.0, row as u64);
        let kept = KeptRow::new(&reference, row, ROWS).unwrap();
        match kept.entries {
            Entries::All => full += 1,
            Entries::Some { .. } => kept
                .entries
                .ids(VOCABULARY as u32)
                .for_each(|id| seen[id as usize] = true),
        }
        if row % 96 != 1 {
            continue;
        }
        let noise = logits(VOCABULARY, 0.0, 1_000);
        let candidate: Vec<f32> = reference
            .iter()
            .zip(&noise)
            .map(|(a, b)| a + 0.05 * b)
            .collect();
        let all = KeptRow::new(&reference, 0, 1)
            .unwrap()
            .compare(&candidate)
            .unwrap();
        let some = kept.compare(&candidate).unwrap();
        assert!((all.cosine - some.cosine).abs() < 1e-3, "{all:?} {some:?}");
        assert_eq!(all.candidate_token, some.candidate_token);
        // What is left out counts as one, so it can only be less.
        assert!(some.kl <= all.kl + 1e-3, "{all:?} {some:?}");
    }
    assert_eq!(full, 65);
    assert!(
        seen.iter().all(|seen| *seen),
        "a part of the vocabulary is never looked at"
    );
}

#[test]
fn what_is_kept_comes_back_and_nothing_else_does() {
    let subject = Subjected::golden("s11-qwen3-q5_k_m");
    let verdict = subject.verdict(subject.session(Precision::Exact), None);
    let Verdict::Accepted { remembered, .. } = verdict else {
        panic!("{}", report(&verdict));
    };
    let bytes = remembered.to_bytes();
    let back = Remembered::from_bytes(&bytes).unwrap();
    assert_eq!(back, *remembered);
    // The reference is not run again for it.
    let again = subject.verdict(subject.session(Precision::Exact), Some(Arc::new(back)));
    assert_eq!(report(&again).basis, Basis::Remembered);
    assert_eq!(report(&again).reference_ms, 0.0);
    // Cut anywhere, or changed anywhere, it is refused.
    for len in (0..bytes.len()).step_by(bytes.len() / 50) {
        assert!(
            Remembered::from_bytes(&bytes[..len]).is_err(),
            "{len} bytes"
        );
    }
    for at in (0..bytes.len()).step_by(bytes.len() / 50) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        assert!(Remembered::from_bytes(&changed).is_err(), "byte {at}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(Remembered::from_bytes(&longer).is_err());
}

#[test]
fn near_ties_of_experts_are_excused_by_what_is_kept() {
    let subject = Subjected::golden("s14-qwen3moe-q4_k_m");
    let first = subject.verdict(subject.session(Precision::Fast), None);
    let Verdict::Accepted { remembered, .. } = &first else {
        panic!("{}", report(&first));
    };
    assert!(report(&first).near_ties > 0, "{}", report(&first));
    let bytes = remembered.to_bytes();
    let back = Arc::new(Remembered::from_bytes(&bytes).unwrap());
    assert_eq!(back, *remembered);
    let again = subject.verdict(subject.session(Precision::Fast), Some(back));
    let (first, again) = (report(&first), report(&again));
    assert_eq!(
        (&again.basis, again.reference_ms),
        (&Basis::Remembered, 0.0)
    );
    assert_eq!(again.near_ties, first.near_ties);
    assert_eq!(again.min_cosine, first.min_cosine);
    for len in (0..bytes.len()).step_by(bytes.len() / 50) {
        assert!(Remembered::from_bytes(&bytes[..len]).is_err(), "{len}");
    }
}

#[test]
fn probes_are_cut_for_every_way_of_computing_and_fit_any_context() {
    let subject = Subjected::golden("s11-qwen3-q5_k_m");
    let probe = Probe::built_in(subject.subject()).unwrap();
    let cuts = probe.cuts();
    let rows: Vec<usize> = cuts.iter().map(|cut| cut.rows.len()).collect();
    assert_eq!(rows[..6], [97, 90, 73, 8, 4, 2]);
    assert_eq!(rows[6..], [1; 14]);
    assert!(
        cuts.iter()
            .any(|cut| cut.path == Path::Prefill && cut.rows.contains(&256))
    );
    assert!(
        cuts.iter()
            .all(|cut| cut.path != Path::Decode || cut.rows.start > 256)
    );
    for ctx_len in 0..320 {
        let context = Subject {
            ctx_len,
            ..subject.subject()
        };
        let probes = [
            Probe::built_in(context),
            Probe::of_text(&[1, 2, 3], context),
            Probe::of_prompt(&[5; 40], context),
            Probe::of_prompt(&[5; 310], context),
        ];
        for probe in probes {
            match probe {
                Err(NotJudged::TooShort { .. }) => assert!(ctx_len < 3, "{ctx_len}"),
                Err(other) => panic!("{other}"),
                Ok(probe) => {
                    assert!(probe.ids().len() < ctx_len.max(1));
                    assert!(probe.judged() >= 2);
                    let cuts = probe.all_cuts(&[128, 300]);
                    let mut next = 0;
                    for cut in &cuts {
                        let start = match cut.way {
                            0 => next,
                            // Once more, in the way of a longer context.
                            way => {
                                assert!(way >= cut.rows.end && cut.path == Path::Decode);
                                next - cut.rows.len()
                            }
                        };
                        assert_eq!(cut.rows.start, start);
                        assert!(!cut.rows.is_empty());
                        next = cut.rows.end;
                    }
                    assert_eq!(next, probe.ids().len() + 1);
                }
            }
        }
    }
}

#[test]
fn audits_wait_until_nobody_waits() {
    use std::time::Duration;
    let allowed = Conditions {
        idle: Duration::from_secs(61),
        power: Power::Mains,
        tokens: 300,
        spent: Duration::ZERO,
        expected: Duration::from_secs(5),
    };
    let cases = [
        ("all is well", allowed, Ok(())),
        (
            "somebody is there",
            Conditions {
                idle: Duration::from_secs(59),
                ..allowed
            },
            Err(NoAudit::InUse),
        ),
        (
            "no mains",
            Conditions {
                power: Power::Battery,
                ..allowed
            },
            Err(NoAudit::OnBattery),
        ),
        (
            "nothing was written",
            Conditions {
                tokens: 0,
                ..allowed
            },
            Err(NoAudit::NothingWritten),
        ),
        (
            "a long conversation",
            Conditions {
                tokens: 4_097,
                ..allowed
            },
            Err(NoAudit::TooLong),
        ),
        (
            "72 seconds an hour",
            Conditions {
                spent: Duration::from_secs(68),
                ..allowed
            },
            Err(NoAudit::EnoughThisHour),
        ),
    ];
    for (what, conditions, expected) in cases {
        assert_eq!(conditions.allow(), expected, "{what}");
    }
}
