//! The backend: one card.

use std::sync::Arc;

use candor_arch::{Graph, check};
use candor_backend::{
    Backend, DeviceInfo, DeviceKind, DriverFault, KvType, LoadError, Loaded, Model, OpenOptions,
    Part, Precision, Progress, Unavailable, Unsupported,
};
use candor_modelfile::Index;

use crate::answer::CudaDevice;
use crate::card::{Cards, Order, RemoteLoaded};
use crate::machine::Replies;

/// An NVIDIA card as a backend.
pub struct CudaBackend {
    device: CudaDevice,
    replies: Replies,
    cards: Cards,
}

impl CudaBackend {
    /// On a card that the probe has seen. Touches no driver yet.
    pub fn new(device: CudaDevice) -> Self {
        Self::among(&Cards::default(), device)
    }

    /// The same on one of the cards of this process: what one backend has learnt of it, that it is
    /// lost, all know.
    pub fn among(cards: &Cards, device: CudaDevice) -> Self {
        Self {
            device,
            replies: Replies::Captured,
            cards: cards.clone(),
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

    fn order(&self, model: &Arc<Model>) -> Order {
        Order {
            model: Arc::clone(model),
            replies: self.replies,
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

/// Refuses what does not fit its architecture, or what no kernel is there for.
fn check_model(model: &Model) -> Result<(), LoadError> {
    let problems = check(&model.graph, model.file.index());
    if !problems.is_empty() {
        return Err(LoadError::Problems(problems));
    }
    let missing = crate::ops::unsupported(&model.graph, model.file.index());
    match missing.is_empty() {
        true => Ok(()),
        false => Err(LoadError::Unsupported(missing)),
    }
}

impl Backend for CudaBackend {
    fn probe(&self) -> Result<DeviceInfo, Unavailable> {
        if let Some(reason) = self.cards.lost(self.device.ordinal) {
            let reason = DriverFault::Lost { reason };
            return Err(Unavailable::DriverBroken { reason });
        }
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

    fn fit(
        &mut self,
        model: &Arc<Model>,
        wishes: &[OpenOptions],
        progress: &mut dyn Progress,
    ) -> Result<OpenOptions, LoadError> {
        check_model(model)?;
        let card = self.cards.card(self.device.ordinal)?;
        RemoteLoaded::fit(&card, self.order(model), wishes, progress)
    }

    fn load(
        &mut self,
        model: Arc<Model>,
        part: Part,
        progress: &mut dyn Progress,
    ) -> Result<Box<dyn Loaded>, LoadError> {
        let Part::All = part;
        check_model(&model)?;
        let card = self.cards.card(self.device.ordinal)?;
        let order = self.order(&model);
        Ok(Box::new(RemoteLoaded::load(card, order, progress)?))
    }

    fn fingerprint(&self) -> String {
        format!(
            "driver {} kernels {}",
            self.device.driver_version,
            crate::ptx::fingerprint()
        )
    }
}
