//! From a path to a session that may serve, in two parts: [`prepare`] reads and checks, [`place`]
//! takes the memory. In between, whoever loads decides what has to give way.

mod check;
mod failure;
mod passed;
mod place;
mod prepare;
mod reference;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use candor_arch::Footprint;
use candor_backend::{
    Backend, CancelToken, DeviceInfo, KvType, Loaded, Model, Numerics, OpenOptions, Precision, Step,
};
use candor_modelfile::Assumed;
use candor_text::Tokenizer;

pub(crate) use check::ExactSide;
pub use failure::{LoadCode, LoadFailure};
pub use passed::{PassedOver, WhyNot};
pub(crate) use place::{At, Host, License, place};
pub(crate) use prepare::{Prepared, prepare};
pub(crate) use reference::{Source, reference_live};

use crate::constraint::Grammars;
use crate::guard::{
    Candidate, Mode, Remembered, Report, Servable, Subject, VerdictId, VerdictMemory,
};
use crate::message::LoadStage;

/// Tokens of context where nobody asks for another number: as much as a long conversation needs,
/// and little enough for a small machine.
pub const CONTEXT_TOKENS_DEFAULT: usize = 8_192;

/// The shortest context that a device serves with where nobody asks for one: a question and its
/// answer. The reference has more.
pub const CONTEXT_TOKENS_LEAST: usize = 512;

/// Replies that are written at once: as many as the engine takes.
pub const SLOTS_MAX: usize = crate::thread::SEQUENCES_MAX;

/// Which model, and how.
#[derive(Clone, Debug)]
pub struct LoadSpec {
    /// The file.
    pub path: PathBuf,
    /// What a person states about it.
    pub assumed: Assumed,
    /// How.
    pub options: LoadOptions,
    /// The tokens by which a device is judged; none for a built-in text.
    pub probe: Option<Vec<u32>>,
    /// Where verdicts are kept; none if they are not.
    pub memory: Option<VerdictMemory>,
    /// Stops the load.
    pub cancel: CancelToken,
    /// Passes over what is not the reference, also while it is being readied or judged; the load
    /// goes on.
    pub use_reference: CancelToken,
}

impl LoadSpec {
    /// A file with usual options, which nothing stops.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            assumed: Assumed::default(),
            options: LoadOptions::default(),
            probe: None,
            memory: None,
            cancel: CancelToken::new(),
            use_reference: CancelToken::new(),
        }
    }
}

/// Who is to compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceWish {
    /// The first that can; the reference if none else.
    #[default]
    Auto,
    /// The reference, without a look at anything else.
    Reference,
    /// A device that is not the reference, or nobody.
    Device,
}

/// How a model is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// Tokens of context; none for what the model was trained for, at most
    /// [`CONTEXT_TOKENS_DEFAULT`].
    pub ctx_len: Option<usize>,
    /// Sequences at once, at most [`SLOTS_MAX`].
    pub slots: usize,
    /// Slots beside them that keep what was written last, as far as the pool of all slots has room.
    /// None where a model keeps sums, which take memory for each slot.
    pub kept: usize,
    /// The arithmetic.
    pub precision: Precision,
    /// How keys and values are kept; none for what belongs to the arithmetic.
    pub kv: Option<KvType>,
    /// Whether text is read and written.
    pub text: TextSide,
    /// Who computes.
    pub device: DeviceWish,
    /// When a device is held against the reference.
    pub f2: Mode,
}

/// Whether a load needs a vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSide {
    /// A model without one that can be used is refused.
    Needed,
    /// Token ids go in and come out; text comes out as far as the file tells.
    IdsOnly,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            ctx_len: None,
            slots: 1,
            kept: 0,
            precision: Precision::Fast,
            kv: None,
            text: TextSide::Needed,
            device: DeviceWish::Auto,
            f2: Mode::Probe,
        }
    }
}

/// Makes other backends on the engine thread, once it is known that the file is good. The last one
/// is the reference.
pub type MakeBackends = Box<dyn FnOnce() -> Vec<Box<dyn Backend>> + Send>;

/// Tells the loads of one engine apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModelId(pub u64);

/// A model that is loaded, for everybody who wants to know.
#[derive(Clone)]
pub struct LoadedModel {
    /// Which load.
    pub id: ModelId,
    /// Where it came from.
    pub path: PathBuf,
    /// The file and its graph.
    pub model: Arc<Model>,
    /// Made of the file's vocabulary.
    pub tokenizer: Arc<Tokenizer>,
    /// What replies can be held to, by this vocabulary.
    pub(crate) grammars: Arc<Grammars>,
    /// Entries of a row of logits.
    pub vocabulary: usize,
    /// Tokens that a conversation may have.
    pub ctx_len: usize,
    /// Tokens that it was to have, where so many do not fit beside the weights on what computes.
    pub ctx_wished: Option<usize>,
    /// Sequences at once.
    pub slots: usize,
    /// What computes.
    pub device: DeviceInfo,
    /// Why others do not, in the order in which they were asked.
    pub passed_over: Vec<PassedOver>,
    /// By what right it serves.
    pub proof: Proof,
    /// What it computes with.
    pub numerics: Numerics,
    /// How keys and values are kept.
    pub kv: KvType,
    /// What it takes, as arithmetic.
    pub footprint: Footprint,
    /// Memory that the weights take beside the mapped file, as the backend counts it.
    pub weights_bytes: u64,
    /// How long it took to load.
    pub load_time: Duration,
}

/// By what right something serves.
#[derive(Clone, Debug, PartialEq)]
pub enum Proof {
    /// It is what others are held against.
    Reference,
    /// It does not serve yet: it is judged on the next prompt.
    Awaited(Mode),
    /// It was held against the reference.
    Proven(Arc<Report>),
    /// It was never compared; only measurements can have that.
    Skipped {
        /// Why not.
        reason: &'static str,
    },
}

impl fmt::Debug for LoadedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedModel")
            .field("id", &self.id)
            .field("path", &self.path)
            .field("ctx_len", &self.ctx_len)
            .field("slots", &self.slots)
            .field("device", &self.device)
            .field("proof", &self.proof)
            .finish_non_exhaustive()
    }
}

/// Hears how a load goes on, and may stop it: the stage, then what is ready and what there is in
/// all (bytes; positions while a device is being judged), 0 where nothing can be counted.
pub type Watch<'a> = dyn FnMut(LoadStage, u64, u64) -> Step + 'a;

/// A model that is loaded. What serves is dropped before the weights.
pub(crate) struct Live {
    pub(crate) serving: Serving,
    /// The weights have to outlive the sessions.
    pub(crate) weights: Box<dyn Loaded>,
    /// The reference's side of a device, for checks to come.
    pub(crate) exact: Option<Box<dyn Loaded>>,
    /// What the reference said to the probe.
    pub(crate) remembered: Option<Arc<Remembered>>,
    pub(crate) info: Arc<LoadedModel>,
    /// How its session was opened.
    pub(crate) options: OpenOptions,
    /// Who is to compute, and when that is judged.
    pub(crate) wish: DeviceWish,
    pub(crate) mode: Mode,
    /// The tokens by which it is judged, if they were given.
    pub(crate) probe: Option<Vec<u32>>,
}

/// What computes.
pub(crate) enum Serving {
    /// Somebody who may.
    Ready(Servable),
    /// A device that is judged by the next prompt.
    Awaiting(Candidate),
    /// Nobody: it was taken out, and whoever took it broke down.
    Nobody,
}

impl LoadedModel {
    /// The proof by which a device serves.
    pub(crate) fn verdict(&self) -> Option<VerdictId> {
        match &self.proof {
            Proof::Proven(report) => Some(report.id),
            Proof::Reference | Proof::Awaited(_) | Proof::Skipped { .. } => None,
        }
    }

    /// What a probe of it is for.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject {
            model: &self.model,
            tokenizer: &self.tokenizer,
            ctx_len: self.ctx_len,
        }
    }
}

impl Live {
    /// Who serves, if somebody may.
    pub(crate) fn servable(&mut self) -> Option<&mut Servable> {
        match &mut self.serving {
            Serving::Ready(servable) => {
                servable.limit_active(self.info.slots);
                Some(servable)
            }
            Serving::Awaiting(_) | Serving::Nobody => None,
        }
    }
}
