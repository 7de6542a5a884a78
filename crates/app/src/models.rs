//! The model that answers, and how it changes: loads run on threads of their own, and the model
//! before stays until the new one is ready.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use candor_arch::{FootprintOptions, footprint};
use candor_backend::{CancelToken, Precision};
use candor_engine::{
    CONTEXT_TOKENS_DEFAULT, EngineHandle, LoadFailure, LoadOptions, LoadSpec, LoadedModel,
    schedule::CHUNK_TOKENS,
};
use candor_modelfile::ModelFile;
use candor_text::ChatFormat;

use crate::banner::ModelFacts;
use crate::wire::OpenModel;
use crate::{facts, library, path_id, words};

/// Bytes of a value in the state of a fast session, which is float16.
pub(crate) const STATE_VALUE_BYTES: usize = 2;

/// The state comes in pages of this many tokens.
const PAGE_TOKENS: u64 = 256;

/// With less context than this a model can hold no conversation; it is refused instead.
const CONTEXT_TOKENS_MIN: u64 = 512;

/// How often a wait looks whether it was stopped.
pub(crate) const GLANCE: Duration = Duration::from_millis(50);

/// A model that answers.
pub(crate) struct ChatModel {
    pub(crate) id: String,
    pub(crate) loaded: Arc<LoadedModel>,
    pub(crate) format: ChatFormat,
    pub(crate) facts: ModelFacts,
}

impl ChatModel {
    fn new(loaded: Arc<LoadedModel>, context_wanted: Option<u64>) -> Self {
        let index = loaded.model.file.index();
        let format = ChatFormat::new(index.chat_template.as_deref(), loaded.tokenizer.controls());
        let facts = ModelFacts {
            name: model_name(&loaded.path),
            file: loaded.path.to_string_lossy().into_owned(),
            architecture: index.architecture.clone(),
            quantization: facts::quantization(index),
            context: loaded.ctx_len as u64,
            trained: loaded.model.graph.hparams.context_length as u64,
            context_wanted,
            template_fallback: format.fallback().map(ToString::to_string),
            device: loaded.device.clone(),
            memory_bytes: loaded.footprint.total_bytes(),
        };
        Self {
            id: path_id::encode(&loaded.path),
            loaded,
            format,
            facts,
        }
    }

    pub(crate) fn wire(&self) -> OpenModel {
        OpenModel {
            id: self.id.clone(),
            name: self.facts.name.clone(),
            context: u32::try_from(self.facts.context).unwrap_or(u32::MAX),
            architecture: self.facts.architecture.clone(),
            quantization: self.facts.quantization.clone(),
            template_fallback: self.facts.template_fallback.clone(),
        }
    }
}

/// A model's name as shown in sentences: its file's, without the ending that all of a format have.
pub(crate) fn model_name(path: &Path) -> String {
    let name = library::shown_name(path);
    let stem = name.strip_suffix(".gguf").or(name.strip_suffix(".apr"));
    stem.map_or(name.clone(), String::from)
}

/// Why a file was not loaded, as the banner says it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) file: String,
    pub(crate) message: String,
    pub(crate) advice: Option<String>,
}

impl Refusal {
    pub(crate) fn new(path: &Path, failure: &LoadFailure) -> Self {
        let message = words::load_failure(failure);
        let advice = match failure {
            LoadFailure::File(error) => error.advice(),
            LoadFailure::OutOfMemory { .. } => {
                Some("close other programs, or open a smaller file of the model")
            }
            _ => None,
        };
        Self {
            file: library::shown_name(path),
            message,
            advice: advice.map(String::from),
        }
    }
}

/// A load under way.
#[derive(Clone)]
pub(crate) struct RunningLoad {
    pub(crate) path: PathBuf,
    pub(crate) cancel: CancelToken,
    /// Tells this load from a later one of the same file.
    number: u64,
}

/// An engine and what it was started with.
pub(crate) struct Seat {
    pub(crate) engine: EngineHandle,
    pub(crate) threads: usize,
}

/// What is known of the model that answers.
#[derive(Default)]
pub(crate) struct ModelState {
    pub(crate) seat: Option<Seat>,
    chat: Option<Arc<ChatModel>>,
    /// The number of the load that gave it.
    chat_load: u64,
    pub(crate) load: Option<RunningLoad>,
    pub(crate) refusal: Option<Refusal>,
    /// What a broken engine said, until a model is loaded again.
    pub(crate) broken: Option<String>,
    loads: u64,
}

impl ModelState {
    /// The model that would answer now. The engine may have given it up meanwhile.
    pub(crate) fn chat(&self) -> Option<Arc<ChatModel>> {
        let chat = self.chat.as_ref()?;
        let state = self.seat.as_ref()?.engine.state();
        let is_loaded = state
            .borrow()
            .model()
            .is_some_and(|model| model.id == chat.loaded.id);
        is_loaded.then(|| Arc::clone(chat))
    }

    /// The file of the model that answered last.
    pub(crate) fn last_path(&self) -> Option<PathBuf> {
        self.chat.as_ref().map(|chat| chat.loaded.path.clone())
    }
}

/// The model that answers, and the loads that change it.
#[derive(Default)]
pub(crate) struct Models {
    state: Mutex<ModelState>,
    changed: Condvar,
}

/// What a reply has to go on with.
pub(crate) enum Answerer {
    /// This model, on this engine.
    Model(Arc<ChatModel>, EngineHandle),
    /// No model is open.
    None,
    /// It was stopped while it waited.
    Stopped,
}

impl Models {
    pub(crate) fn state(&self) -> MutexGuard<'_, ModelState> {
        // Each change is complete when the lock is given back, also by a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a load begins; one before it is stopped.
    pub(crate) fn begin(&self, path: &Path) -> RunningLoad {
        let mut state = self.state();
        if let Some(load) = &state.load {
            load.cancel.cancel();
        }
        state.loads += 1;
        state.refusal = None;
        let (path, cancel) = (path.to_owned(), CancelToken::new());
        let load = RunningLoad {
            path,
            cancel,
            number: state.loads,
        };
        state.load = Some(load.clone());
        load
    }

    /// Notes how a load ended, unless a later one has begun.
    pub(crate) fn end(&self, load: &RunningLoad, result: Result<ChatModel, LoadFailure>) {
        let mut state = self.state();
        let is_latest = state
            .load
            .as_ref()
            .is_some_and(|latest| latest.number == load.number);
        match result {
            // An earlier load can be noted later: its model is the engine's no more.
            Ok(chat) if load.number > state.chat_load => {
                (state.chat, state.chat_load) = (Some(Arc::new(chat)), load.number);
            }
            Ok(_) => {}
            Err(LoadFailure::Stopped | LoadFailure::Closed) => {}
            Err(failure) if is_latest => {
                state.refusal = Some(Refusal::new(&load.path, &failure));
            }
            Err(_) => {}
        }
        if is_latest {
            (state.load, state.broken) = (None, None);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// The model for a reply; waits while one is being loaded.
    pub(crate) fn answerer(&self, cancel: &CancelToken) -> Answerer {
        let mut state = self.state();
        while state.load.is_some() {
            if cancel.is_cancelled() {
                return Answerer::Stopped;
            }
            let waited = self.changed.wait_timeout(state, GLANCE);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        match (state.chat(), &state.seat) {
            (Some(chat), Some(seat)) => Answerer::Model(chat, seat.engine.clone()),
            _ => Answerer::None,
        }
    }
}

/// Loads a model. Where nobody asked for a context and the usual one does not fit in memory, what
/// fits is used.
pub(crate) fn load(
    engine: &EngineHandle,
    load: &RunningLoad,
    context: Option<u32>,
) -> Result<ChatModel, LoadFailure> {
    let options = LoadOptions {
        ctx_len: context.map(|tokens| tokens as usize),
        slots: 1,
        precision: Precision::Fast,
    };
    match attempt(engine, load, options) {
        Err(LoadFailure::OutOfMemory {
            needed_bytes,
            available_bytes,
        }) if context.is_none() => {
            let excess = needed_bytes.saturating_sub(available_bytes);
            let Some((fits, wanted)) = context_that_fits(&load.path, excess) else {
                return Err(LoadFailure::OutOfMemory {
                    needed_bytes,
                    available_bytes,
                });
            };
            let options = LoadOptions {
                ctx_len: usize::try_from(fits).ok(),
                ..options
            };
            attempt(engine, load, options).map(|loaded| ChatModel::new(loaded, Some(wanted)))
        }
        other => other.map(|loaded| ChatModel::new(loaded, None)),
    }
}

/// Whether a file can be loaded, as far as its weights need not be read for that.
pub(crate) fn is_sound(path: &Path) -> bool {
    let Ok(file) = ModelFile::open(path) else {
        return false;
    };
    let index = file.index();
    let graph = candor_arch::build(index);
    graph.is_ok_and(|graph| candor_arch::check(&graph, index).is_empty())
        && index.tokenizer.is_some()
}

fn attempt(
    engine: &EngineHandle,
    load: &RunningLoad,
    options: LoadOptions,
) -> Result<Arc<LoadedModel>, LoadFailure> {
    let spec = LoadSpec {
        path: load.path.clone(),
        options,
        cancel: load.cancel.clone(),
    };
    match engine.load(spec) {
        Ok(answer) => answer.wait(),
        Err(_) => Err(LoadFailure::Closed),
    }
}

/// The context that needs so many bytes less than the usual one, and the usual one.
fn context_that_fits(path: &Path, excess_bytes: u64) -> Option<(u64, u64)> {
    let file = ModelFile::open(path).ok()?;
    let graph = candor_arch::build(file.index()).ok()?;
    let wanted = graph.hparams.context_length.min(CONTEXT_TOKENS_DEFAULT);
    let options = FootprintOptions {
        state_tokens: wanted,
        state_value_bytes: STATE_VALUE_BYTES,
        rows_max: CHUNK_TOKENS,
    };
    let per_token = footprint(&graph, file.index(), options)
        .state_bytes_per_token
        .max(1);
    let fits = (wanted as u64).checked_sub(excess_bytes.div_ceil(per_token))?;
    let fits = fits / PAGE_TOKENS * PAGE_TOKENS;
    (fits >= CONTEXT_TOKENS_MIN).then_some((fits, wanted as u64))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use candor_engine::{Engine, EngineConfig};
    use candor_testkit::TinyModel;
    use candor_testkit::scripted::Script;

    use super::*;

    #[test]
    fn the_model_loaded_last_answers_in_whichever_order_the_loads_are_noted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tiny.gguf");
        TinyModel::llama().write(&path).unwrap();
        let config = EngineConfig {
            clock: Arc::new(Instant::now),
            available_memory: Arc::new(|| None),
        };
        let backend = Script::new(97..123).backend();
        let engine = Engine::spawn(config, vec![Box::new(backend)]).unwrap();
        let models = Models::default();
        let loaded = || {
            let running = models.begin(&path);
            let chat = load(&engine, &running, None).unwrap();
            (running, chat)
        };
        let (first, first_chat) = loaded();
        let (second, second_chat) = loaded();
        models.state().seat = Some(Seat {
            engine: engine.clone(),
            threads: 1,
        });
        let last = second_chat.loaded.id;
        models.end(&second, Ok(second_chat));
        models.end(&first, Ok(first_chat));
        let answers = models.state().chat().map(|chat| chat.loaded.id);
        assert_eq!(answers, Some(last));
        engine.shutdown();
    }
}
