//! The only place that names concrete backends.

use std::sync::Arc;

use candor_backend::{Backend, Precision};
use candor_cpu::{CpuBackend, CpuConfig};

pub use candor_cuda::{PROBE_ARGUMENT, PROBE_LIMIT, ProbeCommand, probe, probe_child};

/// What a set of backends depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendChoice {
    /// Threads that compute.
    pub threads: usize,
    /// For which sessions a load readies the weights.
    pub precision: Precision,
}

/// Makes what computes; the last one is the reference. Tests pass a scripted one.
pub type Backends = Arc<dyn Fn(BackendChoice) -> Vec<Box<dyn Backend>> + Send + Sync>;

/// What this version computes with.
pub fn backends() -> Backends {
    Arc::new(|choice| {
        let config = CpuConfig {
            prepare: choice.precision,
            ..CpuConfig::new(choice.threads)
        };
        vec![Box::new(CpuBackend::new(config))]
    })
}

/// The number of threads that help on this machine.
pub fn default_threads() -> usize {
    candor_cpu::default_threads()
}
