//! The reference as what serves: at a load, and where a device that served goes no further.

use std::path::Path;
use std::sync::Arc;

use candor_backend::{
    Backend, DeviceKind, LoadError, Loaded, Model, OpenError, OpenOptions, Part, Progress, Step,
};
use candor_modelfile::{LayOutError, ModelFile};

use super::{LoadFailure, Watch, prepare};
use crate::guard::{self, Servable};
use crate::message::LoadStage;

/// What is to be served, and how.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) path: &'a Path,
    pub(crate) model: &'a Arc<Model>,
    pub(crate) options: OpenOptions,
}

/// Readies the reference and opens its session.
pub(crate) fn reference_live(
    source: Source<'_>,
    backend: &mut dyn Backend,
    watch: &mut Watch<'_>,
) -> Result<(Servable, Box<dyn Loaded>), LoadFailure> {
    let Source {
        path,
        model,
        options,
    } = source;
    let missing = backend.supports(&model.graph, model.file.index(), &options);
    if !missing.is_empty() {
        let path = path.to_owned();
        return Err(LoadFailure::Unsupported { path, missing });
    }
    prepare::go(watch(LoadStage::Weights, 0, 0))?;
    lay_out(&model.file, watch)?;
    let weights = backend
        .load(Arc::clone(model), Part::All, &mut Forward(watch))
        .map_err(|error| of_backend(error, path))?;
    let device = backend.probe().map_err(LoadFailure::NoDevice)?;
    if device.kind == DeviceKind::Gpu {
        // Whoever set the backends up put a card last. It must not serve unproven for that.
        return Err(LoadFailure::NoBackend);
    }
    prepare::go(watch(LoadStage::Session, 0, 0))?;
    let session = weights.open(options).map_err(|error| match error {
        OpenError::OutOfMemory {
            needed_bytes,
            available_bytes,
        } => LoadFailure::OutOfMemory {
            needed_bytes,
            available_bytes,
        },
        OpenError::Option { .. } => LoadFailure::Option(error),
        OpenError::Unsupported(missing) => LoadFailure::Unsupported {
            path: path.to_owned(),
            missing,
        },
        OpenError::Device { reason } => LoadFailure::Broken { reason },
    })?;
    Ok((guard::reference(session, device.kind), weights))
}

/// Lays out what the file has in a form that nothing computes with, so that it can be stopped.
pub(crate) fn lay_out(file: &ModelFile, watch: &mut Watch<'_>) -> Result<(), LoadFailure> {
    let total = file.index().unpacked_bytes;
    let laid_out = file.lay_out(&mut |done| watch(LoadStage::Weights, done, total) == Step::Go);
    laid_out.map_err(|error| match error {
        LayOutError::Stopped => LoadFailure::Stopped,
        LayOutError::NoMemory { .. } => LoadFailure::Broken {
            reason: error.to_string(),
        },
    })
}

fn of_backend(error: LoadError, path: &Path) -> LoadFailure {
    let path = path.to_owned();
    match error {
        LoadError::Stopped => LoadFailure::Stopped,
        LoadError::Problems(problems) => LoadFailure::Problems { path, problems },
        LoadError::Unsupported(missing) => LoadFailure::Unsupported { path, missing },
        LoadError::OutOfMemory {
            needed_bytes,
            available_bytes,
        } => LoadFailure::OutOfMemory {
            needed_bytes,
            available_bytes,
        },
        LoadError::Device { reason } => LoadFailure::Broken { reason },
    }
}

/// The watcher as a backend sees it.
pub(crate) struct Forward<'a, 'b>(pub(crate) &'a mut Watch<'b>);

impl Progress for Forward<'_, '_> {
    fn report(&mut self, done_bytes: u64, total_bytes: u64) -> Step {
        (self.0)(LoadStage::Weights, done_bytes, total_bytes)
    }
}
