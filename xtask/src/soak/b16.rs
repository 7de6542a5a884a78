//! Another model and another conversation while a reply is written, fifty rounds at random.

use anyhow::Result;

use super::Bench;
use super::counted::{self, Counted};
use super::figures::{Figure, all_within};
use super::measured;

const ROUNDS: usize = 50;

/// How often the fifty rounds are gone through.
const TIMES: usize = 3;

const TESTS: Counted = Counted {
    what: "fifty rounds of models and conversations changed at random, on the processor's path",
    words: &[
        "--package",
        "candor-app",
        "--test",
        "product",
        "whatever_is_picked",
        "--",
        "--show-output",
    ],
};

pub(super) fn measure(_: &Bench) -> Result<Vec<Figure>> {
    let mut kept = counted::run(&TESTS, &[("CANDOR_ROUNDS", ROUNDS.to_string())])?;
    for _ in 1..TIMES {
        let again = counted::run(&TESTS, &[("CANDOR_ROUNDS", ROUNDS.to_string())])?;
        kept.text.push_str(&again.text);
        kept.failure = kept.failure.or(again.failure);
    }
    // In megabytes.
    measured::figures(TESTS.what, &kept, &[("memory grown", all_within(30))])
}
