//! The model that answers, and how it changes: loads run on threads of their own, and the model
//! before stays until the new one is ready.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use candor_arch::{FootprintOptions, PAGE_TOKENS, StateSizes, footprint};
use candor_backend::{CancelToken, DeviceKind, KvType, Precision};
use candor_engine::{
    CONTEXT_TOKENS_DEFAULT, DeviceWish, EngineHandle, EngineState, LoadFailure, LoadOptions,
    LoadSpec, LoadedModel, Mode, PassedOver, Proof, TextSide, VerdictMemory, WhyNoModel, WhyNot,
    schedule::CHUNK_TOKENS,
};
use candor_modelfile::ModelFile;
use candor_text::ChatFormat;

use crate::banner::{ContextLimit, ModelFacts};
use crate::compose::{BackendChoice, Backends};
use crate::upkeep::{Audits, Upkeep};
use crate::verdicts::Recall;
use crate::wire::{DeviceChoice, GpuCheck, KvChoice, OpenModel, Settings};
use crate::words::{self, Phrase, Tongue, phrase};
use crate::{facts, library, path_id};

/// With less context than this a model can hold no conversation; it is refused instead.
const CONTEXT_TOKENS_MIN: usize = 512;

/// Other conversations whose context stays readable at once, in the same memory: who goes back to
/// one does not wait until all of it is read again, and a person's question goes beside a program's.
const KEPT_CHATS: usize = 3;

/// How often a wait looks whether it was stopped.
pub(crate) const GLANCE: Duration = Duration::from_millis(50);

/// A model that answers.
pub(crate) struct ChatModel {
    pub(crate) id: String,
    pub(crate) loaded: Arc<LoadedModel>,
    pub(crate) format: Arc<ChatFormat>,
    pub(crate) facts: ModelFacts,
    /// What could compute.
    choice: BackendChoice,
}

impl ChatModel {
    fn new(loaded: Arc<LoadedModel>, limit: Option<ContextLimit>, to: &Destination) -> Self {
        let index = loaded.model.file.index();
        let format = ChatFormat::new(index.chat_template.as_deref(), loaded.tokenizer.controls());
        let on_card = loaded
            .ctx_wished
            .map(|wanted| ContextLimit::Card { wanted });
        let facts = ModelFacts {
            name: model_name(&loaded.path),
            file: loaded.path.to_string_lossy().into_owned(),
            architecture: index.architecture.clone(),
            quantization: facts::quantization(index),
            context: loaded.ctx_len as u64,
            trained: loaded.model.graph.hparams.context_length as u64,
            context_limit: limit.or(on_card),
            template_fallback: format.fallback().map(words::fallback),
            device: loaded.device.clone(),
            proof: loaded.proof.clone(),
            audits: Audits::default(),
            why: loaded.passed_over.last().or(to.why.as_ref()).cloned(),
            card: to.choice.card.clone(),
            day: day_judged(&loaded),
            memory_bytes: memory_bytes(&loaded),
            kv: words::kv(loaded.kv),
        };
        Self {
            id: path_id::encode(&loaded.path),
            loaded,
            format: Arc::new(format),
            facts,
            choice: to.choice.clone(),
        }
    }

    /// What is said of it, with what audits have shown.
    pub(crate) fn facts_with(&self, upkeep: &Upkeep) -> ModelFacts {
        ModelFacts {
            audits: upkeep.audits(self.loaded.id).unwrap_or_default(),
            ..self.facts.clone()
        }
    }

    /// The same model once something else computes it, or it was proven.
    fn became(&self, loaded: Arc<LoadedModel>) -> Self {
        let why = loaded.passed_over.last().or(self.facts.why.as_ref());
        Self {
            id: self.id.clone(),
            format: Arc::clone(&self.format),
            facts: ModelFacts {
                device: loaded.device.clone(),
                proof: loaded.proof.clone(),
                why: why.cloned(),
                day: day_judged(&loaded),
                memory_bytes: memory_bytes(&loaded),
                kv: words::kv(loaded.kv),
                ..self.facts.clone()
            },
            choice: self.choice.clone(),
            loaded,
        }
    }

    pub(crate) fn wire(&self, tongue: Tongue) -> OpenModel {
        let fallback = self.facts.template_fallback.as_ref();
        OpenModel {
            id: self.id.clone(),
            name: self.facts.name.clone(),
            context: u32::try_from(self.facts.context).unwrap_or(u32::MAX),
            architecture: self.facts.architecture.clone(),
            quantization: self.facts.quantization.clone(),
            template_fallback: fallback.map(|said| said.to(tongue)),
        }
    }
}

/// The day on which a card was judged, if one was.
fn day_judged(model: &LoadedModel) -> String {
    let report = match (&model.proof, model.passed_over.last().map(|card| &card.why)) {
        (Proof::Proven(report), _) | (_, Some(WhyNot::Rejected(report))) => report,
        _ => return String::new(),
    };
    words::day(report.judged_ms)
}

/// What a model takes where it computes.
pub(crate) fn memory_bytes(loaded: &LoadedModel) -> u64 {
    let footprint = &loaded.footprint;
    match loaded.device.kind {
        DeviceKind::Cpu => footprint.total_bytes(),
        DeviceKind::Gpu => loaded.weights_bytes + footprint.state_bytes + footprint.scratch_bytes,
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
    pub(crate) message: Phrase,
    pub(crate) advice: Option<Phrase>,
}

impl Refusal {
    pub(crate) fn new(path: &Path, failure: &LoadFailure) -> Self {
        let message = words::load_failure(failure);
        let advice = match failure {
            LoadFailure::File(error) => words::advice(error),
            LoadFailure::OutOfMemory { .. } => Some(phrase!(
                "close other programs, or open a smaller file of the model",
                "schließe andere Programme oder öffne eine kleinere Datei des Modells",
            )),
            _ => None,
        };
        let file = library::shown_name(path);
        Self {
            file,
            message,
            advice,
        }
    }
}

/// Why a model is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Somebody asked for it.
    Asked,
    /// It was there before and was lost.
    Again,
}

/// A load under way.
#[derive(Clone)]
pub(crate) struct RunningLoad {
    pub(crate) path: PathBuf,
    pub(crate) cancel: CancelToken,
    /// Lets the processor compute, whatever a card is about to do for it.
    pub(crate) use_reference: CancelToken,
    pub(crate) wish: Wish,
    /// Whether the check of a card may rest on what the processor gave before.
    pub(crate) recall: Recall,
    purpose: Purpose,
    /// Tells this load from a later one of the same file.
    number: u64,
}

/// An engine, and what it computes with.
pub(crate) struct Seat {
    pub(crate) engine: EngineHandle,
    pub(crate) choice: BackendChoice,
}

/// What the settings said of a load when it began.
#[derive(Clone, Copy)]
pub(crate) struct Wish {
    /// How many compute from this model on.
    pub(crate) threads: usize,
    /// Tokens of context; none for what the program chooses.
    pub(crate) context: Option<u32>,
    /// How keys and values are kept.
    pub(crate) kv: KvType,
    /// What may compute.
    pub(crate) device: DeviceChoice,
    /// Which card, counted from 0; none for what the program chooses.
    pub(crate) card: Option<u32>,
    /// When a card is checked.
    pub(crate) check: Mode,
}

impl Wish {
    /// For the model with this id in the library; `threads` where nobody chose another number.
    pub(crate) fn of(settings: &Settings, model: &str, threads: usize) -> Self {
        let check = settings.gpu_checks.get(model);
        let own = settings.models.get(model).cloned().unwrap_or_default();
        let chosen = own.threads.or(settings.threads);
        Self {
            threads: chosen.map_or(threads, |chosen| chosen as usize),
            context: own.context.or(settings.context),
            kv: own.kv.unwrap_or(settings.kv).into(),
            device: own.device.unwrap_or(settings.device),
            card: settings.gpu,
            check: (*check.unwrap_or(&settings.gpu_check)).into(),
        }
    }
}

impl From<GpuCheck> for Mode {
    fn from(check: GpuCheck) -> Self {
        match check {
            GpuCheck::Probe => Self::Probe,
            GpuCheck::FirstPrompt => Self::FirstPrompt,
            GpuCheck::EveryPrompt => Self::EveryPrompt,
        }
    }
}

impl From<KvChoice> for KvType {
    fn from(choice: KvChoice) -> Self {
        match choice {
            KvChoice::F16 => Self::F16,
            KvChoice::Q8 => Self::Q8_0,
        }
    }
}

/// Where a model is loaded to.
pub(crate) struct Destination {
    pub(crate) engine: EngineHandle,
    /// What can compute this model.
    pub(crate) choice: BackendChoice,
    /// Makes it, if it is something else than until now.
    pub(crate) others: Option<Backends>,
    /// Why no card is among it, if so.
    pub(crate) why: Option<PassedOver>,
    /// What is kept of earlier checks.
    pub(crate) memory: Option<VerdictMemory>,
}

/// What is known of the model that answers.
#[derive(Default)]
pub(crate) struct ModelState {
    pub(crate) seat: Option<Seat>,
    chat: Option<Arc<ChatModel>>,
    /// The load that gave it.
    chat_load: Option<RunningLoad>,
    pub(crate) load: Option<RunningLoad>,
    pub(crate) refusal: Option<Refusal>,
    /// What a broken engine said, until a model is loaded again.
    pub(crate) broken: Option<Phrase>,
    loads: u64,
}

impl ModelState {
    /// The model that would answer now. The engine may have given it up meanwhile.
    pub(crate) fn chat(&self) -> Option<Arc<ChatModel>> {
        let chat = self.chat.as_ref()?;
        let engine = &self.seat.as_ref()?.engine;
        let model = engine.state().borrow().model().cloned()?;
        if model.id != chat.loaded.id || engine.has_ended() {
            return None;
        }
        Some(match Arc::ptr_eq(&model, &chat.loaded) {
            true => Arc::clone(chat),
            // What computes has changed since the load.
            false => Arc::new(chat.became(model)),
        })
    }

    /// The load of the model that answered last, if the engine has lost that, and what a broken
    /// engine said to it.
    fn lost(&self) -> Option<(&RunningLoad, Option<Phrase>)> {
        self.chat.as_ref()?;
        let load = self.chat_load.as_ref()?;
        let engine = &self.seat.as_ref()?.engine;
        let said = match &*engine.state().borrow() {
            _ if engine.has_ended() => Some(phrase!("it ended", "sie ist beendet")),
            EngineState::NoModel(WhyNoModel::Broken { reason }) => Some(Phrase::same(reason)),
            EngineState::NoModel(_) => None,
            EngineState::Closed | EngineState::Loading(_) | EngineState::Ready { .. } => {
                return None;
            }
        };
        Some((load, said))
    }

    /// Whether a load that nobody waits for any more still keeps the engine from answering.
    fn is_changing(&self) -> bool {
        let engine = self.seat.as_ref().map(|seat| seat.engine.state());
        self.chat.is_some()
            && engine.is_some_and(|state| matches!(*state.borrow(), EngineState::Loading(_)))
    }

    fn begin_again(&mut self) -> Option<RunningLoad> {
        if self.load.is_some() {
            return None;
        }
        let (load, said) = self.lost()?;
        // As it was: what has been chosen since may not fit.
        let (path, wish) = (load.path.clone(), load.wish);
        self.broken = said;
        // Why another load failed, if one did, is still to be read afterwards.
        Some(self.begin(&path, wish, (Purpose::Again, Recall::Kept)))
    }

    fn failed(&mut self, load: &RunningLoad, failure: &LoadFailure) {
        if load.purpose == Purpose::Again {
            // It is not tried for ever: from here on no model is open.
            self.chat = None;
        }
        let is_quiet = matches!(failure, LoadFailure::Stopped | LoadFailure::Closed);
        if !is_quiet && self.refusal.is_none() {
            self.refusal = Some(Refusal::new(&load.path, failure));
        }
    }

    fn begin(
        &mut self,
        path: &Path,
        wish: Wish,
        (purpose, recall): (Purpose, Recall),
    ) -> RunningLoad {
        self.loads += 1;
        let load = RunningLoad {
            path: path.to_owned(),
            cancel: CancelToken::new(),
            use_reference: CancelToken::new(),
            wish,
            recall,
            purpose,
            number: self.loads,
        };
        self.load = Some(load.clone());
        load
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
    /// The one that was open is to be loaded again.
    Lost,
    /// It was stopped while it waited.
    Stopped,
}

impl Models {
    pub(crate) fn state(&self) -> MutexGuard<'_, ModelState> {
        // Each change is complete when the lock is given back, also by a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a load begins; one before it is stopped.
    pub(crate) fn begin(&self, path: &Path, wish: Wish, recall: Recall) -> RunningLoad {
        let mut state = self.state();
        if let Some(load) = &state.load {
            load.cancel.cancel();
        }
        state.refusal = None;
        state.begin(path, wish, (Purpose::Asked, recall))
    }

    /// Notes that the model that was lost is loaded again, if one was and nothing else is loaded.
    pub(crate) fn begin_again(&self) -> Option<RunningLoad> {
        self.state().begin_again()
    }

    /// Notes how a load ended, unless a later one has begun. The model before, if it gave way to a
    /// load that came to nothing, is to be loaded again: nobody finds that no model is open.
    pub(crate) fn end(
        &self,
        load: &RunningLoad,
        result: Result<ChatModel, LoadFailure>,
    ) -> Option<RunningLoad> {
        let mut state = self.state();
        let is_latest = state
            .load
            .as_ref()
            .is_some_and(|latest| latest.number == load.number);
        let noted = state.chat_load.as_ref().map_or(0, |noted| noted.number);
        match result {
            // An earlier load can be noted later: its model is the engine's no more.
            Ok(chat) if load.number > noted => {
                if let Some(seat) = &mut state.seat {
                    seat.choice = chat.choice.clone();
                }
                (state.chat, state.chat_load) = (Some(Arc::new(chat)), Some(load.clone()));
            }
            Err(failure) if is_latest => state.failed(load, &failure),
            Ok(_) | Err(_) => {}
        }
        if is_latest {
            (state.load, state.broken) = (None, None);
        }
        let again = state.begin_again();
        drop(state);
        self.changed.notify_all();
        again
    }

    /// The model for a reply; waits while one is being loaded.
    pub(crate) fn answerer(&self, cancel: &CancelToken) -> Answerer {
        let mut state = self.state();
        loop {
            if cancel.is_cancelled() {
                return Answerer::Stopped;
            }
            if state.load.is_none() {
                match (state.chat(), &state.seat) {
                    (Some(chat), Some(seat)) => {
                        return Answerer::Model(chat, seat.engine.clone());
                    }
                    _ if state.lost().is_some() => return Answerer::Lost,
                    _ if !state.is_changing() => return Answerer::None,
                    _ => {}
                }
            }
            let waited = self.changed.wait_timeout(state, GLANCE);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Loads a model. Where nobody asked for a context and the usual one does not fit in memory, what
/// fits is used; where more was asked for than the model was trained for, that much.
pub(crate) fn load(to: &Destination, load: &RunningLoad) -> Result<ChatModel, LoadFailure> {
    let wish = load.wish;
    let asked = wish.context.map(|tokens| tokens as usize);
    let trained = asked.and_then(|_| trained_context(&load.path));
    let context = match (asked, trained) {
        (Some(asked), Some(trained)) => Some(asked.min(trained)),
        (asked, _) => asked,
    };
    let limit = asked.filter(|asked| Some(*asked) != context);
    let limit = limit.map(|asked| ContextLimit::Trained { asked });
    match attempt(to, load, (context, wish.kv)) {
        Err(LoadFailure::OutOfMemory {
            needed_bytes,
            available_bytes,
        }) if context.is_none() => {
            let excess = needed_bytes.saturating_sub(available_bytes);
            let Some((fits, wanted)) = context_that_fits(&load.path, wish, excess) else {
                return Err(LoadFailure::OutOfMemory {
                    needed_bytes,
                    available_bytes,
                });
            };
            let limit = Some(ContextLimit::Memory { wanted });
            let loaded = attempt(to, load, (Some(fits), wish.kv))?;
            Ok(ChatModel::new(loaded, limit, to))
        }
        other => other.map(|loaded| ChatModel::new(loaded, limit, to)),
    }
}

/// Tokens that a model was trained for; none if its file cannot be read, which the load will say.
fn trained_context(path: &Path) -> Option<usize> {
    let file = ModelFile::open(path).ok()?;
    let graph = candor_arch::build(file.index()).ok()?;
    Some(graph.hparams.context_length)
}

fn attempt(
    to: &Destination,
    load: &RunningLoad,
    (ctx_len, kv): (Option<usize>, KvType),
) -> Result<Arc<LoadedModel>, LoadFailure> {
    let options = LoadOptions {
        ctx_len,
        slots: 1,
        kept: KEPT_CHATS,
        precision: Precision::Fast,
        kv: Some(kv),
        text: TextSide::Needed,
        // A card is among what can compute, or it is not.
        device: DeviceWish::Auto,
        f2: load.wish.check,
    };
    let spec = LoadSpec {
        options,
        memory: to.memory.clone(),
        cancel: load.cancel.clone(),
        use_reference: load.use_reference.clone(),
        ..LoadSpec::new(load.path.clone())
    };
    let answer = match to.others.clone() {
        Some(backends) => {
            let choice = to.choice.clone();
            to.engine.load_on(spec, Box::new(move || backends(&choice)))
        }
        None => to.engine.load(spec),
    };
    match answer {
        Ok(answer) => answer.wait(),
        Err(_) => Err(LoadFailure::Closed),
    }
}

/// The longest context that needs so many bytes less than the usual one, and the usual one.
fn context_that_fits(path: &Path, wish: Wish, excess_bytes: u64) -> Option<(usize, usize)> {
    let file = ModelFile::open(path).ok()?;
    let graph = candor_arch::build(file.index()).ok()?;
    let wanted = graph.hparams.context_length.min(CONTEXT_TOKENS_DEFAULT);
    let bytes = |tokens: usize| {
        let options = FootprintOptions {
            state: StateSizes::of_one(tokens, wish.kv, wish.threads),
            rows_max: CHUNK_TOKENS,
        };
        footprint(&graph, file.index(), options).total_bytes()
    };
    let all = bytes(wanted);
    let bytes_max = all.checked_sub(excess_bytes)?;
    // Layers that see the last tokens only take as much as before until the context is shorter
    // than that, so what a token takes does not tell what a shorter context saves.
    let pages = CONTEXT_TOKENS_MIN.div_ceil(PAGE_TOKENS)..=wanted / PAGE_TOKENS;
    let mut contexts = pages.rev().map(|pages| pages * PAGE_TOKENS);
    let fits = contexts.find(|tokens| bytes(*tokens) <= bytes_max)?;
    Some((fits, wanted))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use candor_engine::{Engine, EngineConfig};
    use candor_testkit::TinyModel;
    use candor_testkit::scripted::Script;

    use super::*;

    /// Most layers of this one see 16 tokens, which no shorter context takes away.
    #[test]
    fn a_shorter_context_saves_what_it_is_said_to_save() {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/models");
        let path = models.join("s16-gemma3-q4_0.gguf");
        let wish = Wish::of(&Settings::default(), "", 1);
        let fits = |excess| context_that_fits(&path, wish, excess);
        let file = ModelFile::open(&path).unwrap();
        let graph = candor_arch::build(file.index()).unwrap();
        let state_bytes = |tokens| {
            let options = FootprintOptions {
                state: StateSizes::of_one(tokens, KvType::F16, 1),
                rows_max: CHUNK_TOKENS,
            };
            footprint(&graph, file.index(), options).state_bytes
        };
        let (all, wanted) = fits(0).unwrap();
        assert_eq!(all, wanted);
        let most = state_bytes(wanted) - state_bytes(CONTEXT_TOKENS_MIN);
        for excess in [1, most / 2, most] {
            let (context, _) = fits(excess).unwrap();
            assert!(state_bytes(wanted) - state_bytes(context) >= excess);
            let longer = state_bytes(context + PAGE_TOKENS);
            assert!(state_bytes(wanted).saturating_sub(longer) < excess);
        }
        assert_eq!(fits(most + 1), None);
    }

    #[test]
    fn the_model_loaded_last_answers_in_whichever_order_the_loads_are_noted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tiny.gguf");
        TinyModel::llama().write(&path).unwrap();
        let config = EngineConfig {
            clock: Arc::new(Instant::now),
            available_memory: Arc::new(|| None),
            with_sleep: Arc::new(|| None),
            today: Arc::new(|| 0),
        };
        let backend = Script::new(97..123).backend();
        let engine = Engine::spawn(config, vec![Box::new(backend)]).unwrap();
        let models = Models::default();
        let choice = BackendChoice {
            threads: 1,
            precision: Precision::Fast,
            card: None,
        };
        let to = Destination {
            engine: engine.clone(),
            choice: choice.clone(),
            others: None,
            why: None,
            memory: None,
        };
        let loaded = || {
            let running = models.begin(&path, Wish::of(&Settings::default(), "", 1), Recall::Kept);
            let chat = load(&to, &running).unwrap();
            (running, chat)
        };
        let (first, first_chat) = loaded();
        let (second, second_chat) = loaded();
        models.state().seat = Some(Seat {
            engine: engine.clone(),
            choice,
        });
        let last = second_chat.loaded.id;
        for (load, chat) in [(&second, second_chat), (&first, first_chat)] {
            assert!(models.end(load, Ok(chat)).is_none());
        }
        let answers = models.state().chat().map(|chat| chat.loaded.id);
        assert_eq!(answers, Some(last));
        engine.shutdown();
    }
}
