//! Weights on a card, and the sessions that share them, on the card's own thread.

use std::cell::RefCell;
use std::rc::Rc;

use candor_backend::{LoadError, OpenError, OpenOptions};

use crate::machine::{Base, Blueprint};
use crate::session::CudaSession;

/// A model on a card.
pub(crate) struct CudaLoaded {
    /// A session for which memory was taken before the weights came. Goes before them.
    ready: RefCell<Option<(OpenOptions, CudaSession)>>,
    base: Rc<Base>,
}

impl CudaLoaded {
    pub(crate) fn new(base: Rc<Base>, ready: RefCell<Option<(OpenOptions, CudaSession)>>) -> Self {
        Self { ready, base }
    }

    /// The session that is ready, where it is of this kind, else another one.
    pub(crate) fn open(&self, options: OpenOptions) -> Result<CudaSession, OpenError> {
        let ready = self.ready.take();
        if let Some((_, session)) = ready.filter(|(kind, _)| *kind == options) {
            return Ok(session);
        }
        let open = || -> Result<CudaSession, LoadError> {
            let device = &self.base.device;
            device.bind()?;
            let blueprint = Blueprint::new(&self.base, options, &mut || Ok(()))?;
            device.check_memory(blueprint.bytes())?;
            CudaSession::open(&self.base, blueprint)
        };
        open().map_err(|error| match error {
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
        })
    }

    pub(crate) fn weights_bytes(&self) -> u64 {
        self.base.weights.bytes() as u64
    }
}
