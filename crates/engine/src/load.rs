//! From a path to a session that may serve, in two parts: [`prepare`] reads and checks, [`place`]
//! takes the memory. In between, whoever loads decides what has to give way.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use candor_arch::{ArchError, Footprint, FootprintOptions, PAGE_TOKENS, Problem, StateSizes};
use candor_backend::{
    Backend, CancelToken, DeviceInfo, KvType, LoadError, Loaded, Model, Numerics, OpenError,
    OpenOptions, Part, Precision, Progress, Step, Unavailable, Unsupported,
};
use candor_modelfile::{Assumed, Index, LayOutError, ModelFile, OpenError as FileError};
use candor_text::{Tokenizer, TokenizerError};

use crate::guard::{self, Servable};
use crate::message::LoadStage;
use crate::schedule::CHUNK_TOKENS;

/// Tokens of context where nobody asks for another number: as much as a long conversation needs,
/// and little enough for a small machine.
pub const CONTEXT_TOKENS_DEFAULT: usize = 8_192;

/// Which model, and how.
#[derive(Clone, Debug)]
pub struct LoadSpec {
    /// The file.
    pub path: PathBuf,
    /// What a person states about it.
    pub assumed: Assumed,
    /// How.
    pub options: LoadOptions,
    /// Stops the load.
    pub cancel: CancelToken,
}

/// How a model is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// Tokens of context; none for what the model was trained for, at most
    /// [`CONTEXT_TOKENS_DEFAULT`].
    pub ctx_len: Option<usize>,
    /// Sequences at once.
    pub slots: usize,
    /// The arithmetic.
    pub precision: Precision,
    /// How keys and values are kept; none for what belongs to the arithmetic.
    pub kv: Option<KvType>,
    /// Whether text is read and written.
    pub text: TextSide,
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
            precision: Precision::Fast,
            kv: None,
            text: TextSide::Needed,
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
pub struct LoadedModel {
    /// Which load.
    pub id: ModelId,
    /// Where it came from.
    pub path: PathBuf,
    /// The file and its graph.
    pub model: Arc<Model>,
    /// Made of the file's vocabulary.
    pub tokenizer: Arc<Tokenizer>,
    /// Entries of a row of logits.
    pub vocabulary: usize,
    /// Tokens that a conversation may have.
    pub ctx_len: usize,
    /// Sequences at once.
    pub slots: usize,
    /// What computes.
    pub device: DeviceInfo,
    /// Why others do not, in the order in which they were asked.
    pub passed_over: Vec<Unavailable>,
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

impl fmt::Debug for LoadedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedModel")
            .field("id", &self.id)
            .field("path", &self.path)
            .field("ctx_len", &self.ctx_len)
            .field("slots", &self.slots)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

/// What a shell acts on when a load failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadCode {
    /// The file is not one that this version can run; the message says why.
    Refused,
    /// Somebody stopped it.
    Stopped,
    /// The model does not fit.
    OutOfMemory,
    /// An option outside its bounds.
    Option,
    /// A fault of this program.
    Failed,
    /// The engine has ended.
    Closed,
}

/// Why a model was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadFailure {
    /// The file was refused.
    #[error(transparent)]
    File(Box<FileError>),
    /// It has no vocabulary.
    #[error("{}: the file has no tokenizer, so it cannot be chatted with", name(.path))]
    NoTokenizer {
        /// The file.
        path: PathBuf,
    },
    /// Its vocabulary cannot be used.
    #[error("{}: {source}", name(.path))]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// Why.
        source: TokenizerError,
    },
    /// Its architecture cannot be built.
    #[error("{}: {source}", name(.path))]
    Architecture {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ArchError,
    },
    /// It does not hold what its architecture needs.
    #[error("{}: {}", name(.path), first(.problems))]
    Problems {
        /// The file.
        path: PathBuf,
        /// All of them.
        problems: Vec<Problem>,
    },
    /// No backend can run it.
    #[error("{}: this version cannot run {}", name(.path), first(.missing))]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// All of it.
        missing: Vec<Unsupported>,
    },
    /// The backend cannot be used.
    #[error("nothing can compute on this machine: {0:?}")]
    NoDevice(Unavailable),
    /// The engine was set up without a backend.
    #[error("no backend was set up")]
    NoBackend,
    /// The model does not fit.
    #[error("the model needs {needed_bytes} bytes of memory, {available_bytes} are available")]
    OutOfMemory {
        /// What it takes.
        needed_bytes: u64,
        /// What there is.
        available_bytes: u64,
    },
    /// An option outside its bounds.
    #[error(transparent)]
    Option(OpenError),
    /// Somebody stopped it.
    #[error("loading was stopped")]
    Stopped,
    /// The backend broke down.
    #[error("the load broke down: {reason}")]
    Broken {
        /// What it said.
        reason: String,
    },
    /// The engine has ended.
    #[error("the engine has ended")]
    Closed,
}

impl From<FileError> for LoadFailure {
    /// Boxed, because it is by far the largest: every answer to a load has room for it.
    fn from(error: FileError) -> Self {
        Self::File(Box::new(error))
    }
}

impl LoadFailure {
    /// What a shell acts on.
    pub fn code(&self) -> LoadCode {
        match self {
            Self::File(_)
            | Self::NoTokenizer { .. }
            | Self::Tokenizer { .. }
            | Self::Architecture { .. }
            | Self::Problems { .. }
            | Self::Unsupported { .. } => LoadCode::Refused,
            Self::Stopped => LoadCode::Stopped,
            Self::OutOfMemory { .. } => LoadCode::OutOfMemory,
            Self::Option(_) => LoadCode::Option,
            Self::NoDevice(_) | Self::NoBackend | Self::Broken { .. } => LoadCode::Failed,
            Self::Closed => LoadCode::Closed,
        }
    }
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

fn first<T: fmt::Display>(all: &[T]) -> String {
    match all {
        [] => String::from("something that it does not name"),
        [one] => one.to_string(),
        [one, rest @ ..] => format!("{one} (and {} more)", rest.len()),
    }
}

/// Hears how a load goes on, and may stop it: the stage, then the bytes that are ready and the
/// bytes in all, 0 where nothing can be counted.
pub type Watch<'a> = dyn FnMut(LoadStage, u64, u64) -> Step + 'a;

/// A file that was read and checked. Nothing of the model's size was taken yet.
pub(crate) struct Prepared {
    path: PathBuf,
    model: Arc<Model>,
    tokenizer: Arc<Tokenizer>,
    options: OpenOptions,
}

impl Prepared {
    /// What it takes if these compute.
    pub(crate) fn footprint(&self, backends: &[Box<dyn Backend>]) -> Footprint {
        let device = backends.last().and_then(|reference| reference.probe().ok());
        let state = StateSizes {
            kv: self.options.kv,
            ctx_len: self.options.ctx_len,
            slots: self.options.slots_max,
            tokens: self.options.state_tokens,
            threads: device.map_or(1, |device| device.threads),
        };
        let rows_max = CHUNK_TOKENS;
        let options = FootprintOptions { state, rows_max };
        candor_arch::footprint(&self.model.graph, self.model.file.index(), options)
    }

    /// Refuses what there is no memory for; the exact path reads weights where they are mapped.
    pub(crate) fn refuse_too_large(
        &self,
        backends: &[Box<dyn Backend>],
        available: Option<u64>,
    ) -> Result<(), LoadFailure> {
        let footprint = self.footprint(backends);
        let needed_bytes = match self.options.precision {
            Precision::Exact => footprint.total_bytes() - footprint.weights_bytes,
            Precision::Fast => footprint.total_bytes(),
        };
        match available {
            Some(available_bytes) if needed_bytes > available_bytes => {
                Err(LoadFailure::OutOfMemory {
                    needed_bytes,
                    available_bytes,
                })
            }
            _ => Ok(()),
        }
    }
}

/// A model that can serve. The session is dropped before the weights.
pub(crate) struct Live {
    pub(crate) servable: Servable,
    /// The weights have to outlive the session.
    _weights: Box<dyn Loaded>,
    pub(crate) info: Arc<LoadedModel>,
}

/// Reads the file and checks all that can be known without its weights.
pub(crate) fn prepare(spec: &LoadSpec, watch: &mut Watch<'_>) -> Result<Prepared, LoadFailure> {
    let path = spec.path.clone();
    go(watch(LoadStage::File, 0, 0))?;
    let file = ModelFile::open_as(&path, &spec.assumed)?;
    let index = file.index();
    let refused = |source| LoadFailure::Architecture {
        path: path.clone(),
        source,
    };
    let graph = candor_arch::build(index).map_err(refused)?;
    let problems = candor_arch::check(&graph, index);
    if !problems.is_empty() {
        return Err(LoadFailure::Problems { path, problems });
    }
    let options = open_options(&spec.options, graph.hparams.context_length);
    go(watch(LoadStage::Tokenizer, 0, 0))?;
    let tokenizer = Arc::new(tokenizer(index, spec.options.text, &path)?);
    go(watch(LoadStage::Tokenizer, 0, 0))?;
    let model = Arc::new(Model { file, graph });
    Ok(Prepared {
        path,
        model,
        tokenizer,
        options,
    })
}

fn tokenizer(index: &Index, text: TextSide, path: &Path) -> Result<Tokenizer, LoadFailure> {
    let spec = index.tokenizer.as_ref();
    let found = spec.map_or(Err(TokenizerError::Absent), Tokenizer::from_spec);
    let path = path.to_owned();
    match (found, text) {
        (Ok(tokenizer), _) => Ok(tokenizer),
        (Err(reason), TextSide::IdsOnly) => Ok(Tokenizer::ids_only(spec, reason)),
        (Err(TokenizerError::Absent), TextSide::Needed) => Err(LoadFailure::NoTokenizer { path }),
        (Err(source), TextSide::Needed) => Err(LoadFailure::Tokenizer { path, source }),
    }
}

fn go(step: Step) -> Result<(), LoadFailure> {
    match step {
        Step::Go => Ok(()),
        Step::Stop => Err(LoadFailure::Stopped),
    }
}

fn open_options(options: &LoadOptions, trained: usize) -> OpenOptions {
    let ctx_len = options
        .ctx_len
        .unwrap_or_else(|| trained.min(CONTEXT_TOKENS_DEFAULT));
    let pages = ctx_len.div_ceil(PAGE_TOKENS).saturating_mul(options.slots);
    OpenOptions {
        ctx_len,
        slots_max: options.slots,
        state_tokens: pages.saturating_mul(PAGE_TOKENS),
        kv: options.kv.unwrap_or(match options.precision {
            Precision::Exact => KvType::F32,
            Precision::Fast => KvType::F16,
        }),
        precision: options.precision,
    }
}

/// The backend that serves, what it computes on, and why the others do not.
///
/// The last one is the reference. A device before it would have to be proven against it first,
/// and there is no proof yet: it is named as not used.
fn serving(
    backends: &mut [Box<dyn Backend>],
) -> Result<(&mut dyn Backend, DeviceInfo, Vec<Unavailable>), LoadFailure> {
    let Some((reference, others)) = backends.split_last_mut() else {
        return Err(LoadFailure::NoBackend);
    };
    let passed_over = others.iter().map(|other| match other.probe() {
        Ok(device) => Unavailable::NotUsedYet {
            device: device.name,
        },
        Err(unavailable) => unavailable,
    });
    let passed_over = passed_over.collect();
    let device = reference.probe().map_err(LoadFailure::NoDevice)?;
    Ok((&mut **reference, device, passed_over))
}

/// Takes the memory and opens the session. `elapsed` says how long the load has taken.
pub(crate) fn place(
    prepared: Prepared,
    id: ModelId,
    backends: &mut [Box<dyn Backend>],
    watch: &mut Watch<'_>,
    elapsed: &dyn Fn() -> Duration,
) -> Result<Live, LoadFailure> {
    let footprint = prepared.footprint(backends);
    let Prepared {
        path,
        model,
        tokenizer,
        options,
    } = prepared;
    let (backend, device, passed_over) = serving(backends)?;
    let missing = backend.supports(&model.graph, model.file.index(), &options);
    if !missing.is_empty() {
        return Err(LoadFailure::Unsupported { path, missing });
    }
    go(watch(LoadStage::Weights, 0, 0))?;
    lay_out(&model.file, watch)?;
    let weights = backend
        .load(Arc::clone(&model), Part::All, &mut Forward(watch))
        .map_err(|error| of_backend(error, &path))?;
    go(watch(LoadStage::Session, 0, 0))?;
    let session = weights.open(options).map_err(|error| match error {
        OpenError::OutOfMemory {
            needed_bytes,
            available_bytes,
        } => LoadFailure::OutOfMemory {
            needed_bytes,
            available_bytes,
        },
        OpenError::Option { .. } => LoadFailure::Option(error),
    })?;
    let servable = guard::reference(session);
    let session = servable.session();
    let info = LoadedModel {
        id,
        path,
        tokenizer,
        vocabulary: session.vocabulary(),
        ctx_len: session.ctx_len(),
        slots: session.slots(),
        device,
        passed_over,
        numerics: session.numerics(),
        kv: options.kv,
        footprint,
        weights_bytes: weights.weights_bytes(),
        load_time: elapsed(),
        model,
    };
    Ok(Live {
        servable,
        _weights: weights,
        info: Arc::new(info),
    })
}

/// Lays out what the file has in a form that nothing computes with, so that it can be stopped.
fn lay_out(file: &ModelFile, watch: &mut Watch<'_>) -> Result<(), LoadFailure> {
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
    }
}

/// The watcher as the backend sees it.
struct Forward<'a, 'b>(&'a mut Watch<'b>);

impl Progress for Forward<'_, '_> {
    fn report(&mut self, done_bytes: u64, total_bytes: u64) -> Step {
        (self.0)(LoadStage::Weights, done_bytes, total_bytes)
    }
}
