//! Every rule is needed: without it something is accepted that must not be.

use candor_backend::{Arithmetic, Numerics};

use super::super::compare::Measure;
use super::super::rules::{Evidence, Limits, OwnBest, RULES, Row, Rule, Seen, Spot, judge, limits};
use super::*;

const POSITIONS: usize = 100;

const NUMERICS: Numerics = Numerics {
    prefill: Arithmetic::F16,
    decode: Arithmetic::Q8Block32,
    kv: Arithmetic::F16,
};

fn limit() -> &'static Limits {
    limits(NUMERICS, Path::Decode)
}

fn spot(position: usize) -> Spot {
    Spot {
        position,
        path: Path::Decode,
        way: 0,
    }
}

/// What a device gives that is right to the last bit.
fn right() -> Evidence {
    let seen = |position| Seen {
        spot: spot(position),
        row: Row::Compared(Measure {
            cosine: 1.0,
            kl: 0.0,
            reference_token: 5,
            candidate_token: 5,
            margin: 0.0,
        }),
        excused: false,
    };
    Evidence {
        numerics: NUMERICS,
        positions: (0..POSITIONS).map(seen).collect(),
        asked: POSITIONS,
        next: spot(POSITIONS),
        best: Some(OwnBest {
            spot: spot(POSITIONS),
            by_logits: Some(5),
            by_device: Some(5),
        }),
    }
}

/// Changes what was measured at some positions.
fn measured(positions: std::ops::Range<usize>, change: impl Fn(&mut Measure)) -> Evidence {
    let mut evidence = right();
    for seen in &mut evidence.positions[positions] {
        if let Row::Compared(measure) = &mut seen.row {
            change(measure);
        }
    }
    evidence
}

fn excused(mut evidence: Evidence, positions: std::ops::Range<usize>) -> Evidence {
    for seen in &mut evidence.positions[positions] {
        seen.excused = true;
    }
    evidence
}

/// For every rule what it alone rejects.
fn planted(rule: &str) -> Evidence {
    let limit = limit();
    match rule {
        "every position is there" => {
            let mut evidence = right();
            evidence.positions.pop();
            evidence
        }
        "every logit is there" => {
            let mut evidence = right();
            evidence.positions[9].row = Row::Length {
                found: 10,
                expected: 256,
            };
            evidence
        }
        "logits are numbers" => {
            let mut evidence = right();
            evidence.positions[9].row = Row::NotFinite;
            evidence
        }
        "cosine" => measured(9..10, |m| m.cosine = limit.cosine - 1e-4),
        "divergence" => measured(9..10, |m| m.kl = 1.01 * limit.kl),
        "best token" => measured(9..10, |m| {
            (m.candidate_token, m.margin) = (6, 1.01 * limit.margin)
        }),
        "mean divergence" => measured(0..POSITIONS, |m| m.kl = 1.01 * limit.mean_kl),
        "cosine at a near tie" => excused(measured(9..10, |m| m.cosine = 0.4), 9..10),
        "few near ties" => excused(measured(0..40, |m| m.cosine = 0.96), 0..40),
        "own best token" => {
            let mut evidence = right();
            evidence.best = evidence.best.map(|best| OwnBest {
                by_device: Some(6),
                ..best
            });
            evidence
        }
        other => panic!("no case is planted for {other}"),
    }
}

#[test]
fn each_rule_is_needed() {
    assert_eq!(judge(RULES, &right()), None);
    for rule in RULES {
        let evidence = planted(rule.name);
        let broken = judge(RULES, &evidence);
        assert_eq!(broken.map(|broken| broken.rule), Some(rule.name));
        let others = RULES.iter().filter(|other| other.name != rule.name);
        let others: Vec<&Rule> = others.collect();
        assert_eq!(judge(others, &evidence), None, "without {}", rule.name);
    }
}

#[test]
fn nothing_that_is_no_number_passes_a_limit() {
    for change in [
        (|m: &mut Measure| m.cosine = f64::NAN) as fn(&mut Measure),
        |m| m.kl = f64::NAN,
        |m| m.kl = f64::INFINITY,
        |m| m.margin = f64::NAN,
    ] {
        assert!(judge(RULES, &measured(9..10, change)).is_some());
    }
}

#[test]
fn the_first_position_is_named() {
    let mut evidence = measured(30..31, |m| m.cosine = 0.1);
    evidence.positions[12].row = Row::NotFinite;
    assert_eq!(judge(RULES, &evidence).unwrap().spot.position, 12);
}

#[test]
fn our_limits_lie_within_the_seeds() {
    for arithmetic in [Arithmetic::F32, Arithmetic::F16, Arithmetic::Q8Block32] {
        let numerics = Numerics {
            prefill: arithmetic,
            decode: arithmetic,
            kv: Arithmetic::F16,
        };
        for path in [Path::Prefill, Path::Decode, Path::Greedy] {
            assert!(limits(numerics, path).cosine > 0.98);
        }
    }
}
