//! The backend: which threads and which kernels.

use std::sync::Arc;

use candor_arch::{Graph, Op, check};
use candor_backend::{
    Backend, DeviceInfo, DeviceKind, LoadError, Loaded, Model, OpenOptions, Part, Precision,
    Progress, Unavailable, Unsupported,
};
use candor_modelfile::Index;

use crate::loaded::CpuLoaded;
use crate::simd::{Chosen, Isa, choose};
use crate::threads::{Pool, cores};
use crate::weights::{PackedWeights, Weights};

/// How the backend is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuConfig {
    /// Threads that compute, the caller's own among them; see [`crate::default_threads`].
    pub threads: usize,
    /// The instructions to use; the best that the machine has where nothing is said.
    pub isa: Option<Isa>,
    /// For which sessions a load readies the weights. For others it is done when the first one is
    /// opened, without progress.
    pub prepare: Precision,
}

impl CpuConfig {
    /// So many threads, the best instructions, ready for fast sessions.
    pub fn new(threads: usize) -> Self {
        Self {
            threads,
            isa: None,
            prepare: Precision::Fast,
        }
    }
}

/// Threads beyond this would only wait for each other.
const THREADS_MAX: usize = 256;

/// The processor as a backend.
pub struct CpuBackend {
    pool: Arc<Pool>,
    kernels: Chosen,
    prepare: Precision,
}

impl CpuBackend {
    /// Starts the threads (as many as the system allows) and chooses the kernels.
    pub fn new(config: CpuConfig) -> Self {
        Self {
            pool: Arc::new(Pool::new(config.threads.clamp(1, THREADS_MAX))),
            kernels: choose(config.isa),
            prepare: config.prepare,
        }
    }
}

impl Backend for CpuBackend {
    fn probe(&self) -> Result<DeviceInfo, Unavailable> {
        let name = self.kernels.kernels.name;
        let isa = match &self.kernels.reason {
            None => name.to_owned(),
            Some(reason) => format!("{name}: {reason}"),
        };
        Ok(DeviceInfo {
            kind: DeviceKind::Cpu,
            name: cores::processor_name().unwrap_or_else(|| "CPU".to_owned()),
            isa,
            threads: self.pool.threads(),
            memory_bytes: None,
        })
    }

    /// Everything: a new operation or kind of state does not compile before it is computed here,
    /// and types without kernels of their own go the way of the exact path.
    fn supports(&self, _: &Graph, _: &Index, _: &OpenOptions) -> Vec<Unsupported> {
        Vec::new()
    }

    fn load(
        &mut self,
        model: Arc<Model>,
        part: Part,
        progress: &mut dyn Progress,
    ) -> Result<Box<dyn Loaded>, LoadError> {
        let Part::All = part;
        let problems = check(&model.graph, model.file.index());
        if !problems.is_empty() {
            return Err(LoadError::Problems(problems));
        }
        let weights = Arc::new(Weights::new(model));
        let packed = match self.prepare {
            Precision::Fast => Some(Arc::new(PackedWeights::new(
                &weights, &self.pool, progress,
            )?)),
            Precision::Exact => None,
        };
        let pool = Arc::clone(&self.pool);
        Ok(Box::new(CpuLoaded::new(
            pool,
            self.kernels.kernels,
            weights,
            packed,
        )))
    }

    /// The exact path reads weights where the file is mapped.
    fn load_exact(&mut self, model: Arc<Model>) -> Result<Box<dyn Loaded>, LoadError> {
        let problems = check(&model.graph, model.file.index());
        if !problems.is_empty() {
            return Err(LoadError::Problems(problems));
        }
        let weights = Arc::new(Weights::new(model));
        let pool = Arc::clone(&self.pool);
        let kernels = self.kernels.kernels;
        Ok(Box::new(CpuLoaded::new(pool, kernels, weights, None)))
    }
}

/// The weights that an operation multiplies with, each once, in the order of the graph.
pub(crate) fn multiplied(graph: &Graph) -> Vec<candor_arch::WeightId> {
    let mut all = Vec::new();
    for node in &graph.nodes {
        let of_node: &[candor_arch::WeightId] = match &node.op {
            Op::Linear { weight, .. } | Op::Logits { weight, .. } => &[*weight],
            Op::GatedFfn { gate, up, down, .. } | Op::Experts { gate, up, down, .. } => {
                &[*gate, *up, *down]
            }
            _ => &[],
        };
        for id in of_node {
            if !all.contains(id) {
                all.push(*id);
            }
        }
    }
    all
}
