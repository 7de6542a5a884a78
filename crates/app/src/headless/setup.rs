//! From a path to something that computes, in the calling thread or in the engine's.

use std::io;
use std::path::Path;
use std::sync::Arc;

use candor_backend::{CancelToken, KvType, Precision};
use candor_engine::direct::Direct;
use candor_engine::guard::Unproven;
use candor_engine::{
    Engine, EngineConfig, EngineHandle, LoadFailure, LoadOptions, LoadSpec, LoadedModel, Mode,
    TextSide, Watch, WithSleep,
};
use candor_modelfile::{Assumed, Note};

use super::chosen::ChosenCards;
use super::device::Choice;
use super::failure::Failure;
use crate::compose::{self, BackendChoice};
use crate::config::Clock;
use crate::verdicts::{Recall, Verdicts};

/// How a model is made ready.
#[derive(Clone)]
pub struct Setup {
    /// Threads that compute.
    pub threads: usize,
    /// The arithmetic.
    pub precision: Precision,
    /// How keys and values are kept; none for what belongs to the arithmetic.
    pub kv: Option<KvType>,
    /// Whether text is read and written.
    pub text: TextSide,
    /// What a person states about the file.
    pub assumed: Assumed,
    /// Tokens of context; none for the default.
    pub context: Option<usize>,
    /// Sequences at once.
    pub slots: usize,
    /// Slots beside them that keep what was written last.
    pub kept: usize,
    /// What is computed on, and how a card is judged.
    pub cards: Cards,
    /// The clocks.
    pub clock: Clock,
    /// Bytes of memory that the machine can still give; none if it does not say.
    pub free_memory: Arc<dyn Fn() -> Option<u64> + Send + Sync>,
    /// Time since the machine was started, that in which it slept included; none where nobody
    /// counts that.
    pub with_sleep: WithSleep,
}

/// What is computed on, and how a card is judged.
#[derive(Clone)]
pub struct Cards {
    /// What was chosen.
    pub choice: Choice,
    /// Where verdicts are kept; none if they are not.
    pub verdicts: Option<Verdicts>,
    /// Whether what was kept is used.
    pub recall: Recall,
    /// When a card is judged, where an engine writes; none for what was chosen in the window. What
    /// computes directly is judged at once.
    pub check: Option<Mode>,
    /// What was chosen in the window.
    pub chosen: ChosenCards,
    /// The tokens by which a card is judged; none for a built-in text.
    pub probe: Option<Vec<u32>>,
    /// Why a card is not judged at all; only for measurements, which have to show it.
    pub unproven: Option<&'static str>,
}

impl Setup {
    /// Loads a model into the calling thread, for raw logits and measurements.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn direct(
        &self,
        path: &Path,
        cancel: &CancelToken,
        watch: &mut Watch<'_>,
    ) -> Result<Direct, Failure> {
        let mut backends = compose::backends()(&self.choice());
        let (spec, config) = (self.spec(path, cancel, Mode::Probe), self.config());
        let loaded = match self.cards.unproven {
            Some(reason) => {
                Direct::load_unproven(&mut backends, &spec, &config, Unproven { reason }, watch)
            }
            None => Direct::load(&mut backends, &spec, &config, watch),
        };
        loaded.map_err(|source| load_failure(path, source))
    }

    /// Starts the engine without a model.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn engine(&self) -> io::Result<EngineHandle> {
        Engine::spawn(self.config(), compose::backends()(&self.choice()))
    }

    /// Loads a model into an engine and waits for it.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn load(
        &self,
        engine: &EngineHandle,
        path: &Path,
        cancel: &CancelToken,
    ) -> Result<Arc<LoadedModel>, Failure> {
        let check = self.cards.check;
        let check = check.unwrap_or_else(|| self.cards.chosen.check(path));
        let answer = engine.load(self.spec(path, cancel, check))?;
        answer.wait().map_err(|source| load_failure(path, source))
    }

    fn config(&self) -> EngineConfig {
        EngineConfig {
            clock: Arc::clone(&self.clock.instant),
            available_memory: Arc::clone(&self.free_memory),
            with_sleep: Arc::clone(&self.with_sleep),
            today: Arc::clone(&self.clock.now_ms),
        }
    }

    fn choice(&self) -> BackendChoice {
        BackendChoice {
            threads: self.threads,
            precision: self.precision,
            card: self.cards.choice.card.clone().ok(),
        }
    }

    fn spec(&self, path: &Path, cancel: &CancelToken, check: Mode) -> LoadSpec {
        let options = LoadOptions {
            ctx_len: self.context,
            slots: self.slots,
            kept: self.kept,
            precision: self.precision,
            kv: self.kv,
            text: self.text,
            device: self.cards.choice.wish.of_engine(),
            f2: check,
        };
        let card = self.cards.choice.card.as_ref().ok();
        let verdicts = card.and(self.cards.verdicts.as_ref());
        LoadSpec {
            assumed: self.assumed.clone(),
            options,
            probe: self.cards.probe.clone(),
            memory: verdicts.and_then(|all| all.of(path, &self.assumed, self.cards.recall)),
            cancel: cancel.clone(),
            ..LoadSpec::new(path.to_owned())
        }
    }
}

/// What has to be said beside the results of a model: facts that a person stated, doubtful
/// numbers, and that there is no text.
pub fn caveats(model: &LoadedModel) -> Vec<String> {
    let notes = model.model.file.index().notes.iter();
    let told = notes.filter(|note| matches!(note, Note::Told { .. } | Note::Stamped));
    let mut all: Vec<String> = told.map(ToString::to_string).collect();
    if let Some(reason) = model.tokenizer.refusal() {
        all.push(format!("{reason}; token ids go in and come out"));
    }
    all
}

/// A failed load as a failure of a command.
pub fn load_failure(path: &Path, source: LoadFailure) -> Failure {
    match source {
        LoadFailure::Stopped => Failure::Stopped,
        LoadFailure::File(error) => Failure::File(*error),
        source => Failure::Load {
            path: path.to_owned(),
            source: Box::new(source),
        },
    }
}
