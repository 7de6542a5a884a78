//! Which exchange of experts is a near tie, and which one is a fault.

use candor_arch::{Routing, Shares};
use candor_backend::{Arithmetic, Numerics};

use super::super::routing::{Tie, tie};
use super::super::rules::limits;
use super::*;

const NUMERICS: Numerics = Numerics {
    prefill: Arithmetic::F16,
    decode: Arithmetic::Q8Block32,
    kv: Arithmetic::F16,
};

/// Chosen of [`EXPERTS`].
const USED: usize = 4;

const EXPERTS: usize = 64;

/// What a router says: falling, with a spread of 1 and no two alike.
fn numbers() -> Vec<f32> {
    let middle = (EXPERTS - 1) as f32 / 2.0;
    let spread = ((EXPERTS * EXPERTS - 1) as f32 / 12.0).sqrt();
    (0..EXPERTS).map(|i| (middle - i as f32) / spread).collect()
}

fn of(reference: &[f32], candidate: &[f32]) -> Option<Tie> {
    let routing = Routing {
        n_used: USED,
        shares: Shares::OfChosen,
        scale: 1.0,
    };
    tie(reference, candidate, routing)
}

/// Whether a change of what a router says is a near tie: as a prompt is read, and as a reply is
/// written. None where nothing was exchanged.
fn check(what: &str, change: impl Fn(&mut Vec<f32>), expected: Option<(bool, bool)>) {
    let reference = numbers();
    let mut candidate = reference.clone();
    change(&mut candidate);
    let near = of(&reference, &candidate).map(|tie| {
        let on = |path| tie.is_near(limits(NUMERICS, path));
        (on(Path::Prefill), on(Path::Decode))
    });
    assert_eq!(near, expected, "{what}");
}

#[test]
fn an_exchange_is_excused_only_between_experts_that_were_all_but_tied() {
    let (last, next) = (USED - 1, USED);
    check("nothing", |_| (), None);
    check(
        "all are higher",
        |n| n.iter_mut().for_each(|n| *n += 3.0),
        None,
    );
    check("the chosen in another order", |n| n.swap(0, last), None);
    check("neighbours", |n| n.swap(last, next), Some((true, true)));
    // One number alone is wrong: all of them together are hardly further off than they may be.
    check(
        "5 further",
        |n| n[next + 5] = n[last] + 0.01,
        Some((false, true)),
    );
    check(
        "10 further",
        |n| n[next + 10] = n[last] + 0.01,
        Some((false, false)),
    );
    check(
        "the best is lost",
        |n| n[0] = n[next] - 0.01,
        Some((false, true)),
    );
    check("another half", |n| n.reverse(), Some((false, false)));
    // Without an exchange there is nothing to excuse.
    check("nobody is known", |n| n.fill(f32::NAN), None);
    check(
        "one is no number",
        |n| n[next] = f32::NAN,
        Some((false, false)),
    );
    check("too few are said", |n| n.truncate(2), Some((false, false)));
    check("too many are said", |n| n.push(9.0), Some((false, false)));
}

/// Each of the three things that make a tie near, at its limit and just above it.
#[test]
fn a_tie_is_near_by_its_input_its_numbers_and_its_gap() {
    for path in [Path::Prefill, Path::Decode] {
        let limits = limits(NUMERICS, path);
        let at = Tie {
            input: limits.router,
            distance: limits.router,
            gap: limits.router_gap,
        };
        let above = |limit: f64| limit * 1.001;
        let (router, gap) = (above(limits.router), above(limits.router_gap));
        let cases = [
            ("all at their limits", at, true),
            (
                "the input is off",
                Tie {
                    input: router,
                    ..at
                },
                false,
            ),
            (
                "the numbers are off",
                Tie {
                    distance: router,
                    ..at
                },
                false,
            ),
            ("the gap is wide", Tie { gap, ..at }, false),
            (
                "no input",
                Tie {
                    input: f64::NAN,
                    ..at
                },
                false,
            ),
            (
                "no numbers",
                Tie {
                    distance: f64::NAN,
                    ..at
                },
                false,
            ),
            (
                "no gap",
                Tie {
                    gap: f64::NAN,
                    ..at
                },
                false,
            ),
        ];
        for (what, tie, near) in cases {
            assert_eq!(tie.is_near(limits), near, "{path:?}: {what}");
        }
    }
}
