//! What a composition root decides for this crate. Nothing below reads the environment or a clock.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use candor_engine::WithSleep;
use candor_engine::guard::Power;

use crate::compose::{Backends, ProbeCommand};
use crate::downloads::Network;

/// The time of day and the time that passes.
#[derive(Clone)]
pub struct Clock {
    /// Milliseconds since 1970.
    pub now_ms: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// For durations.
    pub instant: Arc<dyn Fn() -> Instant + Send + Sync>,
}

/// What a composition root sees of the machine.
#[derive(Clone)]
pub struct Machine {
    /// Time since the machine was started, that in which it slept included; none where nobody
    /// counts that.
    pub with_sleep: WithSleep,
    /// Where its power comes from.
    pub power: Arc<dyn Fn() -> Power + Send + Sync>,
}

impl Machine {
    /// One of which nothing is known.
    pub fn unknown() -> Self {
        Self {
            with_sleep: Arc::new(|| None),
            power: Arc::new(|| Power::Battery),
        }
    }
}

/// What a composition root decides.
#[derive(Clone)]
pub struct AppConfig {
    /// Version of the program.
    pub version: String,
    /// The clocks.
    pub clock: Clock,
    /// The machine.
    pub machine: Machine,
    /// Bytes of memory that the machine can still give; none if it does not say.
    pub free_memory: Arc<dyn Fn() -> Option<u64> + Send + Sync>,
    /// A seed for a reply whose settings name none.
    pub fresh_seed: Arc<dyn Fn() -> u32 + Send + Sync>,
    /// Threads that compute unless the user chose otherwise.
    pub threads: usize,
    /// How the driver is asked for.
    pub probe: ProbeCommand,
    /// How long the driver may take to answer.
    pub probe_limit: Duration,
    /// Files that would be the starter model; the first that is there is it.
    pub starters: Vec<PathBuf>,
    /// How the network is reached, where a person asks for something of it.
    pub network: Network,
    /// Makes what computes.
    pub backends: Backends,
}
