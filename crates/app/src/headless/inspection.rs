//! What a model file says of itself, and whether it can be used. Loads nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use candor_arch::{FootprintOptions, Graph, StateSizes};
use candor_backend::{Backend, KvType, OpenOptions, Precision, Unsupported};
use candor_engine::CONTEXT_TOKENS_DEFAULT;
use candor_engine::schedule::CHUNK_TOKENS;
use candor_modelfile::{Assumed, Index, ModelFile};
use candor_text::Builtin;

use super::failure::Failure;
use super::findings::{self, Finding, Weight};
use super::vocabulary::context_length;
use crate::compose::{self, BackendChoice};
use crate::facts;
use crate::words::{self, Phrase, phrase};

/// How a file is looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InspectOptions {
    /// What a person states about the file.
    pub assumed: Assumed,
    /// Tokens of context that the memory is counted for; none for the default.
    pub context: Option<usize>,
    /// What the default is at most; none for [`CONTEXT_TOKENS_DEFAULT`].
    pub context_default_max: Option<usize>,
    /// How keys and values are kept; none for float16.
    pub kv: Option<KvType>,
    /// Threads that will compute; none for [`compose::default_threads`].
    pub threads: Option<usize>,
    /// Bytes of memory that the machine can still give; none if it does not say.
    pub free_memory: Option<u64>,
}

/// A model file described.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// As it was given.
    pub path: PathBuf,
    /// The format's name.
    pub format: &'static str,
    /// As the file states it.
    pub architecture: String,
    /// As the file states it.
    pub name: Option<String>,
    /// Number of weights.
    pub parameters: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Number of tensors.
    pub tensors: usize,
    /// How many tensors have which storage type.
    pub quantization: BTreeMap<&'static str, usize>,
    /// Tokens that the model was trained for.
    pub context_length: Option<u64>,
    /// Number of tokens.
    pub vocabulary: Option<usize>,
    /// The kind of vocabulary.
    pub tokenizer: Option<String>,
    /// The rule that cuts text into words.
    pub pre_tokenizer: Option<String>,
    /// Where the chat template comes from.
    pub chat_template: TemplateSource,
    /// What it will take; none if its architecture cannot be built.
    pub memory: Option<Memory>,
    /// Whether the processor can run it, if with token ids only.
    pub cpu: bool,
    /// Whether a card can, if there is one that works.
    pub gpu: bool,
    /// What stands against using it, or may not be as expected.
    pub problems: Vec<Finding>,
    /// What is doubtful or costly about the file, but does not stand against using it.
    pub notes: Vec<Phrase>,
}

/// Where a chat template comes from. `Display` is what the JSON says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateSource {
    /// The file has one that is valid.
    Model,
    /// A format of this program.
    BuiltIn(Builtin),
    /// Without a vocabulary there is nothing to chat in.
    None,
}

impl fmt::Display for TemplateSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Model => "model",
            Self::BuiltIn(Builtin::ChatMl) => "built-in:chatml",
            Self::BuiltIn(Builtin::Plain) => "built-in:plain",
            Self::None => "none",
        })
    }
}

/// What a model takes, as arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Of the weights, as stored in the file.
    pub weights_bytes: u64,
    /// Of tensors that are laid out anew before, 0 in nearly all files.
    pub unpacked_bytes: u64,
    /// Of keys and values, for each token.
    pub kv_bytes_per_token: u64,
    /// Tokens of the context: those asked for, else as many as are used where nobody asks.
    pub context_tokens: u64,
    /// How keys and values are kept.
    pub kv: KvType,
    /// Of keys and values, for that context.
    pub kv_bytes: u64,
    /// Of everything between, about.
    pub scratch_bytes: u64,
    /// All of it.
    pub total_bytes: u64,
}

/// Describes a file.
///
/// # Errors
/// It is not a file that can be read.
pub fn inspect(path: &Path, options: &InspectOptions) -> Result<Inspection, Failure> {
    let file = ModelFile::open_as(path, &options.assumed)?;
    let index = file.index();
    let mut problems = Vec::new();
    let graph = findings::of_weights(index, &mut problems);
    let mut gpu = false;
    let memory = graph.as_ref().map(|graph| {
        let trained = graph.hparams.context_length;
        let default_max = options.context_default_max;
        let default = trained.min(default_max.unwrap_or(CONTEXT_TOKENS_DEFAULT));
        let context = options.context.unwrap_or(default);
        let kv = options.kv.unwrap_or(KvType::F16);
        let lacks = Lacks::of(graph, index, (context, kv));
        gpu = lacks.card.is_empty();
        problems.extend(lacks.findings());
        let threads = options.threads.unwrap_or_else(compose::default_threads);
        let memory = memory(graph, index, StateSizes::of_one(context, kv, threads));
        findings::of_memory(&memory, options.free_memory, &mut problems);
        findings::of_context(options.context, trained, &mut problems);
        memory
    });
    let chat_template = findings::of_text(index, &mut problems);
    let (notes, problems): (Vec<_>, Vec<_>) = problems
        .into_iter()
        .partition(|finding| finding.weight == Weight::Note);
    let notes = notes.into_iter().map(|finding| finding.message);
    let cpu = problems
        .iter()
        .all(|problem| problem.weight != Weight::Against);
    let spec = index.tokenizer.as_ref();
    let vocabulary = spec.map(|spec| spec.tokens.len());
    Ok(Inspection {
        path: path.to_owned(),
        format: index.format.name(),
        architecture: index.architecture.clone(),
        name: index
            .metadata
            .find_str("general.name")
            .ok()
            .flatten()
            .map(String::from),
        parameters: facts::parameters(index),
        file_bytes: index.file_bytes,
        tensors: index.tensors.len(),
        quantization: facts::types(index),
        context_length: context_length(index),
        vocabulary: vocabulary.or_else(|| graph.as_ref().map(|graph| graph.hparams.vocabulary)),
        tokenizer: spec.map(|spec| spec.model.clone()),
        pre_tokenizer: spec.and_then(|spec| spec.pre.clone()),
        chat_template,
        memory,
        cpu,
        gpu: cpu && gpu,
        problems,
        notes: index.notes.iter().map(words::note).chain(notes).collect(),
    })
}

fn memory(graph: &Graph, index: &Index, state: StateSizes) -> Memory {
    let options = FootprintOptions {
        state,
        rows_max: CHUNK_TOKENS,
    };
    let footprint = candor_arch::footprint(graph, index, options);
    Memory {
        weights_bytes: footprint.weights_bytes,
        unpacked_bytes: footprint.unpacked_bytes,
        kv_bytes_per_token: footprint.state_bytes_per_token,
        context_tokens: state.ctx_len as u64,
        kv: state.kv,
        kv_bytes: footprint.state_bytes,
        scratch_bytes: footprint.scratch_bytes,
        total_bytes: footprint.total_bytes(),
    }
}

/// What cannot be run of a model.
struct Lacks {
    cpu: Vec<Unsupported>,
    card: Vec<Unsupported>,
}

impl Lacks {
    fn of(graph: &Graph, index: &Index, (context, kv): (usize, KvType)) -> Self {
        let choice = BackendChoice {
            threads: 1,
            precision: Precision::Fast,
            card: Some(compose::any_card()),
        };
        let options = OpenOptions {
            ctx_len: context,
            slots_max: 1,
            state_tokens: context,
            kv,
            precision: Precision::Fast,
        };
        let backends = compose::backends()(&choice);
        let lacks = |backend: Option<&Box<dyn Backend>>| match backend {
            Some(backend) => backend.supports(graph, index, &options),
            None => Vec::new(),
        };
        // The last one is the reference.
        Self {
            cpu: lacks(backends.last()),
            card: lacks(backends.first()),
        }
    }

    fn findings(self) -> impl Iterator<Item = Finding> {
        self.cpu.into_iter().map(|what| {
            let message = phrase!(
                "this version cannot run {what}",
                "das kann diese Version nicht: {what}",
                what = Phrase::of(&what),
            );
            Finding::new(Weight::Against, "unsupported", message)
        })
    }
}
