//! How long mutations run, and what memory they took.

use std::time::{Duration, Instant};

#[allow(dead_code, reason = "each test program uses a part of it")]
/// Rounds of a test, or as many as there are in the seconds of `CANDOR_FUZZ_SECONDS`, for a
/// longer search than each change needs.
pub(crate) enum Budget {
    Rounds(usize),
    Until(Instant),
}

#[allow(dead_code, reason = "each test program uses a part of it")]
impl Budget {
    pub(crate) fn rounds(rounds: usize) -> Self {
        #[expect(clippy::disallowed_methods, reason = "a test is a root of composition")]
        let seconds = std::env::var("CANDOR_FUZZ_SECONDS").ok();
        match seconds.and_then(|seconds| seconds.parse().ok()) {
            Some(seconds) => Self::Until(Instant::now() + Duration::from_secs(seconds)),
            None => Self::Rounds(rounds),
        }
    }

    pub(crate) fn allows(&self, round: usize) -> bool {
        match self {
            Self::Rounds(rounds) => round < *rounds,
            Self::Until(end) => Instant::now() < *end,
        }
    }
}

/// The largest address space that this process ever had.
#[allow(dead_code, reason = "each test program uses a part of it")]
pub(crate) fn peak_kb() -> Option<u64> {
    figure_kb("VmPeak:")
}

/// A figure that the system keeps of this process, in kB.
pub(crate) fn figure_kb(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
