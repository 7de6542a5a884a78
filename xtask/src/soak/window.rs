//! What a window costs: until it can be used, while nothing happens, after many replies; driven by the
//! window's own tests, over the program as it is shipped.

use anyhow::Result;

use super::Bench;
use super::figures::{Figure, all_within};
use super::measured;
use crate::{command, node, test, ui};

/// Starts of the program.
const STARTS: usize = 10;

/// How long an idle window is looked at.
const IDLE_SECONDS: usize = 60;

/// Questions and answers in one conversation.
const TURNS: usize = 500;

pub(super) fn measure(_: &Bench) -> Result<Vec<Figure>> {
    let kept = tests(
        &["can_be_used", "open_window_rests", "many_short_turns"],
        &[
            ("CANDOR_STARTS", STARTS),
            ("CANDOR_IDLE_SECONDS", IDLE_SECONDS),
            ("CANDOR_TURNS", TURNS),
        ],
    )?;
    measured::figures(
        "tests that go through it",
        &kept,
        &[
            ("usable window", all_within(1_500)),
            // Percent, and megabytes.
            ("at rest", all_within(1)),
            ("memory grown", all_within(20)),
        ],
    )
}

/// Builds the window as it is shipped, and runs those of its tests whose names hold one of these words.
pub(super) fn tests(words: &[&str], variables: &[(&str, usize)]) -> Result<command::Kept> {
    build()?;
    let run = test::shipped_window(words)?;
    let run = variables
        .iter()
        .fold(run, |run, (name, value)| run.with(name, value.to_string()));
    run.run_and_keep()
}

/// Builds the window as it is shipped.
pub(super) fn build() -> Result<()> {
    ui::build(&node::path()?)?;
    command::cargo(&["build", "--release", "--package", "candor-desktop"]).run()
}
