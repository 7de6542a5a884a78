//! The backend: one card.

use std::sync::Arc;

use candor_arch::{Graph, check};
use candor_backend::{
    Backend, DeviceInfo, DeviceKind, KvType, LoadError, Loaded, Model, OpenOptions, Part,
    Precision, Progress, Step, Unavailable, Unsupported,
};
use candor_modelfile::Index;

use crate::answer::CudaDevice;
use crate::device::Device;
use crate::loaded::CudaLoaded;
use crate::machine::{Base, Blueprint, Replies};

/// An NVIDIA card as a backend.
pub struct CudaBackend {
    device: CudaDevice,
    replies: Replies,
}

impl CudaBackend {
    /// On a card that the probe has seen. Touches no driver yet.
    pub fn new(device: CudaDevice) -> Self {
        Self {
            device,
            replies: Replies::Captured,
        }
    }

    /// The same with the steps of a token launched one by one, never captured: the same kernels with
    /// the same results, to be measured and compared.
    #[must_use]
    pub fn stepwise(self) -> Self {
        Self {
            replies: Replies::Stepwise,
            ..self
        }
    }

    /// The card in use.
    pub fn device(&self) -> &CudaDevice {
        &self.device
    }
}

/// What a session is asked for that no card does.
pub(crate) fn unsupported(options: &OpenOptions) -> Vec<Unsupported> {
    let mut missing = Vec::new();
    if options.precision == Precision::Exact {
        missing.push(Unsupported::Option("float32 arithmetic on the GPU"));
    }
    if options.kv != KvType::F16 {
        missing.push(Unsupported::Option(match options.kv {
            KvType::Q8_0 => "8-bit keys and values on the GPU",
            _ => "float32 keys and values on the GPU",
        }));
    }
    missing
}

impl Backend for CudaBackend {
    fn probe(&self) -> Result<DeviceInfo, Unavailable> {
        let (major, minor) = self.device.capability;
        Ok(DeviceInfo {
            kind: DeviceKind::Gpu,
            name: self.device.name.clone(),
            isa: format!("compute capability {major}.{minor}"),
            threads: 1,
            memory_bytes: Some(self.device.total_bytes),
        })
    }

    fn supports(&self, graph: &Graph, index: &Index, options: &OpenOptions) -> Vec<Unsupported> {
        let mut missing = unsupported(options);
        missing.extend(crate::ops::unsupported(graph, index));
        missing
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
        let missing = crate::ops::unsupported(&model.graph, model.file.index());
        if !missing.is_empty() {
            return Err(LoadError::Unsupported(missing));
        }
        let device = Device::open(self.device.ordinal)?;
        let mut base = Base::new(device, model, self.replies);
        let total = base.weights.bytes() as u64;
        // The driver translates the kernels before the weights come, so that a card that does not
        // take them says so at once.
        let mut go_on = || match progress.report(0, total) {
            Step::Go => Ok(()),
            Step::Stop => Err(LoadError::Stopped),
        };
        Blueprint::new(&base, SMALLEST, &mut go_on)?;
        base.device.check_memory(total)?;
        base.weights = base.weights.upload(&base.device, &base.model, progress)?;
        Ok(Box::new(CudaLoaded::new(base)))
    }

    fn fingerprint(&self) -> String {
        format!(
            "driver {} kernels {}",
            self.device.driver_version,
            crate::ptx::fingerprint()
        )
    }
}

/// A session that asks for as little as there is, to see that its kernels are there.
const SMALLEST: OpenOptions = OpenOptions {
    ctx_len: 1,
    slots_max: 1,
    state_tokens: 1,
    kv: KvType::F16,
    precision: Precision::Fast,
};
