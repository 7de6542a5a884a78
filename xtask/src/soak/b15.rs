//! Closing, leaving and coming back while a reply is written; driven by the window's own tests.

use anyhow::Result;

use super::Bench;
use super::figures::{Figure, all_within};
use super::{measured, window};

/// Closings in the middle of a reply.
const CLOSES: usize = 10;

pub(super) fn measure(_: &Bench) -> Result<Vec<Figure>> {
    let kept = window::tests(
        &[
            "leav",
            "closed_in_the_middle",
            "page_that_dies",
            "second_start",
            "asked_to_end",
        ],
        &[("CANDOR_CLOSES", CLOSES)],
    )?;
    measured::figures(
        "tests of leaving, closing, a second start, a page that dies, the system's signals",
        &kept,
        &[("last process gone", all_within(2_000))],
    )
}
