//! Backends, and models on their way into one.

use std::fmt;
use std::sync::Arc;

use candor_arch::{Graph, KvType};
use candor_modelfile::{Index, ModelFile};

use crate::device::{DeviceInfo, Unavailable};
use crate::error::{LoadError, OpenError};
use crate::session::Session;

/// A mapped file and the graph that its architecture makes of it. The graph was checked against
/// the file's index.
#[derive(Debug)]
pub struct Model {
    /// The mapped bytes.
    pub file: ModelFile,
    /// What to compute.
    pub graph: Graph,
}

/// Which part of a model a backend takes. More will come with models that are larger than a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    All,
}

/// The arithmetic that a session is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Activations and state in float32: what the file means.
    Exact,
    /// As fast as the device can, within the limits that the documentation states.
    Fast,
}

/// How a session is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Tokens that one slot may hold.
    pub ctx_len: usize,
    /// Independent sequences.
    pub slots_max: usize,
    /// Tokens that all slots together may hold; pages of 256 come from one pool.
    pub state_tokens: usize,
    /// How keys and values are kept.
    pub kv: KvType,
    /// Which arithmetic.
    pub precision: Precision,
}

/// Something in a model that a backend cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// An operation, by its name.
    Op(&'static str),
    /// A storage type, by its name.
    Type(String),
    /// A kind of state, by its name.
    State(&'static str),
    /// What a session is asked for, by its name.
    Option(&'static str),
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Op(name) => write!(f, "the operation {name}"),
            Self::Type(name) => write!(f, "{name} weights"),
            Self::State(name) => write!(f, "{name} state"),
            Self::Option(name) => f.write_str(name),
        }
    }
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Go on.
    Go,
    /// Stop as soon as possible.
    Stop,
}

/// Hears how far a load has come, and may stop it. Asked at least every few milliseconds.
pub trait Progress {
    /// `done` of `total` bytes are ready.
    fn report(&mut self, done_bytes: u64, total_bytes: u64) -> Step;
}

/// One way to run models.
pub trait Backend: Send {
    /// What it would compute on, or why it cannot.
    fn probe(&self) -> Result<DeviceInfo, Unavailable>;

    /// Everything in this model that it cannot run; empty if it can.
    fn supports(&self, graph: &Graph, index: &Index, options: &OpenOptions) -> Vec<Unsupported>;

    /// The first of these ways to open a session for which there is room beside the weights, before
    /// anything of either is taken. A backend that knows it only later takes the first. What is
    /// loaded next keeps room for it.
    ///
    /// # Errors
    /// [`LoadError::OutOfMemory`] with what the last of them takes, if none fits; as for
    /// [`Backend::load`] otherwise.
    fn fit(
        &mut self,
        _model: &Arc<Model>,
        wishes: &[OpenOptions],
        _progress: &mut dyn Progress,
    ) -> Result<OpenOptions, LoadError> {
        let first = wishes.first();
        Ok(*first.expect("somebody who loads has a wish"))
    }

    /// Readies the weights.
    ///
    /// # Errors
    /// [`LoadError`]; `Stopped` if `progress` said so, after everything taken was given back.
    fn load(
        &mut self,
        model: Arc<Model>,
        part: Part,
        progress: &mut dyn Progress,
    ) -> Result<Box<dyn Loaded>, LoadError>;

    /// Readies only what sessions of [`Precision::Exact`] need, and as little of that as it can:
    /// a device is held against them while its own copy of the weights is in memory.
    ///
    /// # Errors
    /// As for [`Backend::load`].
    fn load_exact(&mut self, model: Arc<Model>) -> Result<Box<dyn Loaded>, LoadError> {
        self.load(model, Part::All, &mut Unwatched)
    }

    /// What its results depend on beside the device and the model, such as the driver's version
    /// and the kernels: logits that are remembered under another fingerprint are of no use.
    fn fingerprint(&self) -> String {
        String::new()
    }
}

/// Nobody watches, and nobody stops it.
struct Unwatched;

impl Progress for Unwatched {
    fn report(&mut self, _done_bytes: u64, _total_bytes: u64) -> Step {
        Step::Go
    }
}

/// Weights that are ready. Several sessions share one.
pub trait Loaded {
    /// Opens a session.
    ///
    /// # Errors
    /// [`OpenError`] if its state does not fit or an option is out of bounds.
    fn open(&self, options: OpenOptions) -> Result<Box<dyn Session>, OpenError>;

    /// Memory that the weights take beside the mapped file.
    fn weights_bytes(&self) -> u64;

    /// The model it was made of.
    fn model(&self) -> &Arc<Model>;
}
