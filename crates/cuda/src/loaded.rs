//! Weights on a card, and the sessions that share them.

use std::rc::Rc;
use std::sync::Arc;

use candor_backend::{LoadError, Loaded, Model, OpenError, OpenOptions, Session};

use crate::backend::unsupported;
use crate::machine::{Base, Blueprint, Machine};
use crate::session::CudaSession;

/// A model on a card.
pub(crate) struct CudaLoaded {
    base: Rc<Base>,
}

impl CudaLoaded {
    pub(crate) fn new(base: Base) -> Self {
        Self {
            base: Rc::new(base),
        }
    }
}

impl Loaded for CudaLoaded {
    fn open(&self, options: OpenOptions) -> Result<Box<dyn Session>, OpenError> {
        options.check()?;
        let missing = unsupported(&options);
        if !missing.is_empty() {
            return Err(OpenError::Unsupported(missing));
        }
        let open = || -> Result<CudaSession, LoadError> {
            let device = &self.base.device;
            device.bind()?;
            let blueprint = Blueprint::new(&self.base, options, &mut || Ok(()))?;
            device.check_memory(blueprint.bytes())?;
            let (machine, paging) = Machine::new(&self.base, blueprint)?;
            Ok(CudaSession::new(Rc::clone(&self.base), machine, paging)?)
        };
        let session = open().map_err(|error| match error {
            LoadError::OutOfMemory {
                needed_bytes,
                available_bytes,
            } => OpenError::OutOfMemory {
                needed_bytes,
                available_bytes,
            },
            LoadError::Device { reason } => OpenError::Device { reason },
            // Nothing here stops, and the graph was checked when it was loaded.
            error => OpenError::Device {
                reason: error.to_string(),
            },
        })?;
        Ok(Box::new(session))
    }

    fn weights_bytes(&self) -> u64 {
        self.base.weights.bytes() as u64
    }

    fn model(&self) -> &Arc<Model> {
        &self.base.model
    }
}
