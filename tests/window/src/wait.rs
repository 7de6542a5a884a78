//! Waiting for a state, never for a time.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Nothing that the window does by itself takes this long unless it hangs.
pub const HANG_LIMIT: Duration = Duration::from_secs(10);

/// A model of half a gigabyte, in a debug build, on two busy cores.
pub const LOAD_LIMIT: Duration = Duration::from_secs(120);

/// How often the state is looked at.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks until there is something to see.
///
/// # Errors
/// If there is nothing after the limit, or if looking fails.
pub fn eventually<T>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(seen) = look()? {
            return Ok(seen);
        }
        if start.elapsed() > limit {
            bail!("waited {limit:?} for: {what}");
        }
        sleep(PAUSE);
    }
}
