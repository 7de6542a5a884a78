//! The engine: one thread that owns the session, and a handle that everybody may hold.
//!
//! [`Engine::spawn`] starts the thread. Its [`EngineHandle`] loads a model, takes
//! [`GenerateRequest`]s and gives back a [`TurnLog`] for each, which any number of readers follow.
//! Stopping is setting a [`CancelToken`]: it waits in no queue, and the thread reads the flag
//! before every forward and inside it.
//!
//! What it deliberately does not do: it names no concrete backend, knows no chat template and no
//! conversation, reads no clock and no environment by itself (see [`EngineConfig`]), and never
//! waits for a reader.
//!
//! Start reading at [`schedule::step`], which is the whole of generation; `thread` is the loop
//! around it, [`guard`] says who may serve, and [`direct`] is for measurements that need the
//! session itself.
#![forbid(unsafe_code)]

mod config;
mod constraint;
pub mod direct;
mod draw;
mod embedding;
pub mod guard;
mod guarded;
mod load;
mod message;
mod prefix;
mod repetition;
mod request;
mod sampler;
pub mod schedule;
mod sequence;
#[cfg(test)]
mod testing;
mod thread;
mod turn_log;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use candor_backend::Backend;
use tokio::sync::{mpsc, oneshot, watch};

pub use candor_backend::CancelToken;
pub use config::{AvailableMemory, Clock, EngineConfig, Today, WithSleep};
pub use constraint::{CONSTRAINT_BYTES_MAX, Constraint, ConstraintError};
pub use embedding::{EmbedRequest, NoEmbedding, Pooling};
pub use guard::{
    Basis, FirstBad, Key, Located, Mode, NodeDistance, NotJudged, Remembered, Report, Served,
    Unproven, VerdictId, VerdictMemory, VerdictStore,
};
pub use load::{
    CONTEXT_TOKENS_DEFAULT, CONTEXT_TOKENS_LEAST, DeviceWish, LoadCode, LoadFailure, LoadOptions,
    LoadSpec, LoadedModel, MakeBackends, ModelId, PassedOver, Proof, SLOTS_MAX, TextSide, Watch,
    WhyNot,
};
pub use message::{
    EngineState, FinishReason, LoadStage, Loading, Recheck, Rechecked, Refused, Stats, TurnCode,
    WhyNoModel,
};
pub use prefix::Reuse;
pub use repetition::{REPEATED_TOKENS_MIN, Repeated};
pub use request::{
    EndTokens, GenerateOptions, GenerateRequest, Priority, REPLY_TOKENS_MAX, RequestError,
};
pub use sampler::{
    BIAS_MAX, BIASES_MAX, BiasError, DRY_BASE_MAX, DRY_BASE_MIN, DRY_LENGTH_MAX,
    DRY_MULTIPLIER_MAX, DRY_WINDOW_MAX, Given, Logprobs, NoToken, NotFinite, PENALTY_MAX,
    REPEAT_PENALTY_MAX, REPEAT_PENALTY_MIN, REPEAT_WINDOW, Sampler, Sampling, SamplingError,
    TEMPERATURE_MAX, TOP_LOGPROBS_MAX, stage_names,
};
pub use sequence::{End, Sequence};
pub use thread::{INBOX_MAX, SEQUENCES_MAX};
pub use turn_log::{Entry, Event, READ_MAX, TurnLog, TurnState};

use message::{Command, LoadJob, RecheckJob};
use thread::Worker;

/// The engine. Only its thread exists; everything else goes through an [`EngineHandle`].
#[derive(Debug)]
pub struct Engine;

impl Engine {
    /// Starts the engine thread. The last backend is the reference.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn spawn(
        config: EngineConfig,
        backends: Vec<Box<dyn Backend>>,
    ) -> io::Result<EngineHandle> {
        let (inbox, receiver) = mpsc::channel(INBOX_MAX);
        let (sender, state) = watch::channel(EngineState::NoModel(WhyNoModel::NotLoaded));
        let closing = CancelToken::new();
        let clock = Arc::clone(&config.clock);
        let heard = closing.clone();
        let thread = std::thread::Builder::new()
            .name(String::from("engine"))
            .spawn(move || Worker::new(config, backends, receiver, sender, heard).run())?;
        let thread = Arc::new(Mutex::new(Some(thread)));
        Ok(EngineHandle {
            inbox,
            state,
            closing,
            clock,
            audit: Arc::default(),
            thread,
        })
    }
}

/// Why the engine did not take a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// Its inbox is full; ask again later.
    #[error("the engine has too much to do")]
    Busy,
    /// It has ended.
    #[error("the engine has ended")]
    Closed,
}

/// Speaks with the engine thread. Cheap to clone; no call waits for work, but for
/// [`EngineHandle::shutdown`].
#[derive(Clone)]
pub struct EngineHandle {
    inbox: mpsc::Sender<Command>,
    state: watch::Receiver<EngineState>,
    closing: CancelToken,
    clock: Clock,
    /// Ends the audit that runs, within its forward.
    audit: Arc<Mutex<CancelToken>>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl EngineHandle {
    /// What the engine is doing, now and whenever it changes.
    pub fn state(&self) -> watch::Receiver<EngineState> {
        self.state.clone()
    }

    /// Loads a model once the replies that were asked for before have ended. The model before
    /// stays until the new one is ready, as far as memory allows.
    ///
    /// # Errors
    /// [`NotTaken`]; how the load went is in the answer.
    pub fn load(&self, spec: LoadSpec) -> Result<LoadAnswer, NotTaken> {
        self.begin_load(spec, None)
    }

    /// As [`EngineHandle::load`], but what `others` makes computes from this model on. Backends and
    /// model before stay together if the load fails; for a file that is refused none are made.
    ///
    /// # Errors
    /// As for [`EngineHandle::load`].
    pub fn load_on(&self, spec: LoadSpec, others: MakeBackends) -> Result<LoadAnswer, NotTaken> {
        self.begin_load(spec, Some(others))
    }

    fn begin_load(
        &self,
        spec: LoadSpec,
        others: Option<MakeBackends>,
    ) -> Result<LoadAnswer, NotTaken> {
        let (answer, receiver) = oneshot::channel();
        let job = Box::new(LoadJob {
            spec,
            others,
            answer,
        });
        self.send(Command::Load(job)).map_err(|(why, _)| why)?;
        Ok(LoadAnswer(receiver))
    }

    /// Whether the thread has ended: it answers nothing any more, and another engine has to be
    /// started.
    pub fn has_ended(&self) -> bool {
        self.inbox.is_closed()
    }

    /// Writes a reply. The log is the request's own, and it ends whatever happens.
    ///
    /// # Errors
    /// [`NotTaken`]; the log says the same.
    pub fn generate(&self, mut request: GenerateRequest) -> Result<Arc<TurnLog>, NotTaken> {
        let log = request.log();
        request.asked = Some((self.clock)());
        // Nobody waits for an audit.
        self.audit().cancel();
        match self.send(Command::Generate(Box::new(request))) {
            Ok(()) => Ok(log),
            Err((why, command)) => {
                if let Command::Generate(request) = command {
                    request.fail(match why {
                        NotTaken::Busy => TurnCode::Busy,
                        NotTaken::Closed => TurnCode::Closed,
                    });
                }
                Err(why)
            }
        }
    }

    /// Makes a vector of a text. The log is the request's own, and it ends whatever happens.
    ///
    /// # Errors
    /// [`NotTaken`]; the log says the same.
    pub fn embed(&self, request: EmbedRequest) -> Result<Arc<TurnLog>, NotTaken> {
        self.generate(request.0)
    }

    /// Holds a device that serves against the reference once more, once the replies that were
    /// asked for before have ended. An audit ends when anything else is asked for.
    ///
    /// # Errors
    /// [`NotTaken`]; what it came to is in the answer, which errs if the engine has ended.
    pub fn recheck(
        &self,
        what: Recheck,
        cancel: &CancelToken,
    ) -> Result<oneshot::Receiver<Rechecked>, NotTaken> {
        let (answer, receiver) = oneshot::channel();
        let cancel = CancelToken::any([cancel.clone()]);
        if what == Recheck::Audit {
            *self.audit() = cancel.clone();
        }
        let job = Box::new(RecheckJob {
            what,
            cancel,
            answer,
        });
        self.send(Command::Recheck(job)).map_err(|(why, _)| why)?;
        Ok(receiver)
    }

    /// The flag of the audit that was asked for last.
    fn audit(&self) -> std::sync::MutexGuard<'_, CancelToken> {
        self.audit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the model's memory back. Replies that are being written fail.
    ///
    /// # Errors
    /// [`NotTaken`].
    pub fn unload(&self) -> Result<(), NotTaken> {
        self.send(Command::Unload).map_err(|(why, _)| why)
    }

    /// Ends the engine: stops what runs, answers what waits, and returns when the thread is gone.
    /// A second call does nothing.
    pub fn shutdown(&self) {
        self.closing.cancel();
        // A thread with a full inbox is awake and will see the flag.
        self.inbox.try_send(Command::Wake).ok();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // Its logs and answers are ended even if it broke down, so there is nothing to do.
            thread.join().ok();
        }
    }

    fn send(&self, command: Command) -> Result<(), (NotTaken, Command)> {
        use mpsc::error::TrySendError::{Closed, Full};
        self.inbox.try_send(command).map_err(|error| match error {
            Full(command) => (NotTaken::Busy, command),
            Closed(command) => (NotTaken::Closed, command),
        })
    }
}

impl std::fmt::Debug for EngineHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineHandle")
            .field("state", &*self.state.borrow())
            .finish_non_exhaustive()
    }
}

/// The answer to a load, once there is one.
#[derive(Debug)]
pub struct LoadAnswer(oneshot::Receiver<Result<Arc<LoadedModel>, LoadFailure>>);

impl LoadAnswer {
    /// Waits for the end of the load.
    ///
    /// # Errors
    /// [`LoadFailure`].
    ///
    /// # Panics
    /// When called inside an asynchronous runtime; await the receiver of
    /// [`LoadAnswer::into_receiver`] there.
    pub fn wait(self) -> Result<Arc<LoadedModel>, LoadFailure> {
        self.0.blocking_recv().unwrap_or(Err(LoadFailure::Closed))
    }

    /// The answer as a future. It errs if the engine has ended without an answer.
    pub fn into_receiver(self) -> oneshot::Receiver<Result<Arc<LoadedModel>, LoadFailure>> {
        self.0
    }
}

#[cfg(test)]
mod tests;
