//! Everything that is said between the engine thread and the rest.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use candor_backend::{CancelToken, DeviceInfo};

use crate::guard::{NotJudged, Report, Served};
use crate::load::{LoadCode, LoadFailure, LoadSpec, LoadedModel, MakeBackends};
use crate::request::GenerateRequest;

/// What the engine thread is told. Stopping is not among them: a stop sets a flag and waits in no
/// queue.
#[derive(Debug)]
pub(crate) enum Command {
    /// Load a model; the answer goes to the one who asked.
    Load(Box<LoadJob>),
    /// Write a reply into the log of the request.
    Generate(Box<GenerateRequest>),
    /// Hold a device that serves against the reference once more.
    Recheck(Box<RecheckJob>),
    /// Give the model's memory back.
    Unload,
    /// Look at the flags: the engine is to end.
    Wake,
}

/// A load with the place for its answer.
pub(crate) struct LoadJob {
    pub(crate) spec: LoadSpec,
    /// What computes from this model on, if it is to be something else.
    pub(crate) others: Option<MakeBackends>,
    pub(crate) answer: tokio::sync::oneshot::Sender<Result<Arc<LoadedModel>, LoadFailure>>,
}

/// A check with the place for its answer.
#[derive(Debug)]
pub(crate) struct RecheckJob {
    pub(crate) what: Recheck,
    pub(crate) cancel: CancelToken,
    pub(crate) answer: tokio::sync::oneshot::Sender<Rechecked>,
}

/// By what a device that serves is held against the reference once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recheck {
    /// The probe, against what the reference said at the load, if the machine has slept since. The
    /// engine asks this of itself before every forward of a device; who asks it while nothing is
    /// written spares the next reply the wait.
    AfterSleep,
    /// The conversation that was written last, at its true positions: while nobody waits. After a
    /// sleep the probe comes first.
    Audit,
}

/// What a check of a device that serves came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Rechecked {
    /// It serves on.
    Kept(Arc<Report>),
    /// It does not; the reference does.
    Withdrawn(Arc<Report>),
    /// Nobody knows. After an audit it serves on as before; after a recheck of the probe it does
    /// not write until it was judged.
    NotJudged(NotJudged),
    /// The reference serves, or nothing does.
    NotNeeded,
}

impl fmt::Debug for LoadJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadJob")
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

/// What the engine is doing, for everybody who wants to know.
#[derive(Clone, Debug)]
pub enum EngineState {
    /// No model is loaded.
    NoModel(WhyNoModel),
    /// A model is being loaded.
    Loading(Loading),
    /// This model answers.
    Ready {
        /// The model.
        model: Arc<LoadedModel>,
        /// How the last load failed, if this is the model that was kept.
        refused: Option<Refused>,
    },
    /// The engine has ended and answers nothing any more.
    Closed,
}

impl EngineState {
    /// The model that would answer now.
    pub fn model(&self) -> Option<&Arc<LoadedModel>> {
        match self {
            Self::Ready { model, .. } => Some(model),
            Self::Loading(Loading { kept, .. }) => kept.as_ref(),
            Self::NoModel(_) | Self::Closed => None,
        }
    }
}

/// Why there is no model.
#[derive(Clone, Debug, PartialEq)]
pub enum WhyNoModel {
    /// None was asked for yet.
    NotLoaded,
    /// It was unloaded on request.
    Unloaded,
    /// The load failed, and none was there before or it had to give way.
    Refused(Refused),
    /// The computation broke down; the engine thread went on without the model.
    Broken {
        /// What it said.
        reason: String,
    },
}

/// A load that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// Which file.
    pub path: PathBuf,
    /// What a shell acts on.
    pub code: LoadCode,
    /// In words.
    pub message: String,
}

/// A load under way.
#[derive(Clone, Debug)]
pub struct Loading {
    /// Which file.
    pub path: PathBuf,
    /// What is being done.
    pub stage: LoadStage,
    /// What is being readied or judged, once that is known.
    pub device: Option<DeviceInfo>,
    /// Bytes that are ready, of this stage; positions while a device is being judged.
    pub done_bytes: u64,
    /// Bytes, or positions, in all; 0 while nothing can be counted.
    pub total_bytes: u64,
    /// Time left, once it can be estimated.
    pub left: Option<Duration>,
    /// The model that stays loaded if this load fails.
    pub kept: Option<Arc<LoadedModel>>,
}

/// The stages of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadStage {
    /// Reading what the file says of itself.
    File,
    /// Building the tokenizer.
    Tokenizer,
    /// Readying the weights.
    Weights,
    /// Opening the session.
    Session,
    /// Holding a device against the reference, position by position.
    Checking,
}

/// Why a reply ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// The model said so.
    Stop,
    /// A stop string was written.
    StopString,
    /// The limit of the request.
    Length,
    /// The context is used up.
    ContextFull,
    /// Somebody stopped it.
    Cancelled,
}

/// What a shell acts on when a reply failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnCode {
    /// No model is loaded.
    NoModel,
    /// Another model is loaded than the one that the request was made for.
    ModelChanged,
    /// The model was unloaded while it wrote.
    Unloaded,
    /// The engine has too much to do; ask again later.
    Busy,
    /// The engine has ended.
    Closed,
    /// The computation gave something that is no number.
    NotFinite,
    /// What was asked for forbids every token.
    NothingAllowed,
    /// The grammar that the reply has to follow could not be followed on.
    Stuck,
    /// What computes gives no embeddings.
    NotOffered,
    /// The device stopped working.
    DeviceLost,
    /// Only the device was to compute, and the guard rejected it.
    DeviceRejected,
    /// Only the device was to compute, and nobody could tell whether it computes what it should.
    DeviceNotJudged,
    /// The computation broke down.
    Broken,
    /// The backend refused what the engine asked for: a fault of this program.
    Internal,
}

impl fmt::Display for TurnCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoModel => "no model is loaded",
            Self::ModelChanged => "another model was loaded meanwhile",
            Self::Unloaded => "the model was unloaded",
            Self::Busy => "the engine has too much to do",
            Self::Closed => "the engine has ended",
            Self::NotFinite => "the computation gave a value that is not a number",
            Self::NotOffered => "what computes this model gives no embeddings",
            Self::Stuck => "the reply could not go on as it has to",
            Self::NothingAllowed => "what was asked for forbids every token",
            Self::DeviceLost => "the device stopped working",
            Self::DeviceRejected => "the device computes something else than it should",
            Self::DeviceNotJudged => "the device could not be judged",
            Self::Broken => "the computation broke down",
            Self::Internal => "the computation refused a request of this program",
        })
    }
}

/// The figures of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Of these, found in the context and not computed again.
    pub cached_tokens: usize,
    /// From the start of the prompt's first forward to the first token.
    pub prefill_ms: f64,
    /// Tokens written. An end token that was heeded is not one.
    pub generated_tokens: usize,
    /// From the first token to the end.
    pub decode_ms: f64,
    /// From the request to the first token; 0 if there was none.
    pub time_to_first_token_ms: f64,
    /// What computed it, at the end.
    pub served: Served,
    /// Which of the request's stop strings ended it, by its place among them.
    pub stopped_by: Option<usize>,
}
