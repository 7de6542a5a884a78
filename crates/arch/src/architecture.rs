//! From a file's index to its graph.

use candor_modelfile::{Index, Purpose};

use crate::error::ArchError;
use crate::graph::{Graph, GraphBuilder};
use crate::hparams::HParams;
use crate::models::ALL;

/// How the files of one family are read. Data and two pure functions.
pub struct Architecture {
    /// What `general.architecture` says in such a file.
    pub names: &'static [&'static str],
    /// Reads and bounds the numbers.
    pub hparams: fn(&Index) -> Result<HParams, ArchError>,
    /// Writes the nodes.
    pub build: fn(&HParams, &mut GraphBuilder<'_>),
}

/// The architecture of that name.
pub fn for_name(name: &str) -> Option<&'static Architecture> {
    ALL.iter().copied().find(|a| a.names.contains(&name))
}

/// The graph of a file, from its index alone.
///
/// # Errors
/// [`ArchError`] if the file is no chat model, this version does not know the architecture or its
/// numbers make no sense.
pub fn build(index: &Index) -> Result<Graph, ArchError> {
    if let Some(purpose) = Purpose::of(index) {
        return Err(ArchError::NotChat { purpose });
    }
    let name = index.architecture.as_str();
    let architecture = for_name(name).ok_or_else(|| ArchError::Unknown {
        name: name.to_owned(),
    })?;
    let hparams = (architecture.hparams)(index)?;
    let present = |tensor: &str| index.tensor(tensor).is_some();
    let mut builder = GraphBuilder::new(&present);
    (architecture.build)(&hparams, &mut builder);
    Ok(builder.finish(name, hparams))
}
