//! The window, killed at random moments while it writes; driven by the window's own tests.

use anyhow::{Context, Result};

use super::Bench;
use super::figures::{Figure, all_within};
use super::window;

/// Kills, as the report asks for.
const KILLS: usize = 20;

/// What the window's test says after each kill that left everything in order.
const KEPT: &str = "KEPT: ";

pub(super) fn measure(_: &Bench) -> Result<Vec<Figure>> {
    let kept = window::tests(&["killed_at_any_moment"], &[("CANDOR_KILLS", KILLS)])?;
    let mut figure = Figure::new("kills at random moments after which question and text are there");
    for _ in kept
        .text
        .lines()
        .filter(|line| line.trim_start().starts_with(KEPT))
    {
        figure.counted();
    }
    if let Some(failure) = kept.failure {
        figure.fault(failure);
    }
    let times = kept
        .text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("STARTED AGAIN: "));
    let mut again =
        Figure::new("start after a kill, to the usable window").limit(all_within(1_500));
    for time in times {
        let ms: f64 = time.trim_end_matches(" ms").parse().context("a time")?;
        again.timed(std::time::Duration::from_secs_f64(ms / 1e3));
    }
    Ok(vec![figure, again])
}
