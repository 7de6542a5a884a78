//! What the composition root gives the engine, because libraries do not look for it themselves.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Says what time it is.
pub type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// Says how many bytes of memory can be taken now, if that is known.
pub type AvailableMemory = Arc<dyn Fn() -> Option<u64> + Send + Sync>;

/// Says how long the machine has been up, the time in which it slept included; none where nobody
/// counts that.
pub type WithSleep = Arc<dyn Fn() -> Option<Duration> + Send + Sync>;

/// Says how many milliseconds have gone since 1970.
pub type Today = Arc<dyn Fn() -> i64 + Send + Sync>;

/// How an engine is set up.
#[derive(Clone)]
pub struct EngineConfig {
    /// The time.
    pub clock: Clock,
    /// The memory that a new model may take.
    pub available_memory: AvailableMemory,
    /// The time that also counts sleep. A device that serves is proven again when it has gone
    /// further than `clock`.
    pub with_sleep: WithSleep,
    /// The date, for reports.
    pub today: Today,
}

impl fmt::Debug for EngineConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineConfig").finish_non_exhaustive()
    }
}
