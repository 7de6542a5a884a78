//! What a model file says of itself, and whether it can be used. Loads nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use candor_arch::{ArchError, FootprintOptions, Graph, Problem};
use candor_backend::{KvType, OpenOptions, Precision};
use candor_engine::CONTEXT_TOKENS_DEFAULT;
use candor_engine::schedule::CHUNK_TOKENS;
use candor_modelfile::{Index, ModelFile};
use candor_text::{Builtin, ChatFormat, Fallback, Tokenizer};

use super::failure::Failure;
use super::vocabulary::context_length;
use crate::compose::{self, BackendChoice};
use crate::facts;

/// Bytes of a value in the state of a fast session, which is float16.
const STATE_VALUE_BYTES: usize = 2;

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
    /// Whether the processor can run it.
    pub cpu: bool,
    /// What stands against using it.
    pub problems: Vec<Finding>,
    /// What is doubtful or costly about the file, but does not stand against using it.
    pub notes: Vec<String>,
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
    /// Of keys and values, for each token.
    pub kv_bytes_per_token: u64,
    /// Tokens of the context that is used unless the user asks for another.
    pub context_tokens: u64,
    /// Of keys and values, for that context.
    pub kv_bytes: u64,
    /// Of everything between, about.
    pub scratch_bytes: u64,
    /// All of it.
    pub total_bytes: u64,
}

/// Something that stands against using a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// For scripts.
    pub code: &'static str,
    /// For a person.
    pub message: String,
}

impl Finding {
    fn new(code: &'static str, message: impl fmt::Display) -> Self {
        Self {
            code,
            message: message.to_string(),
        }
    }
}

/// Describes a file.
///
/// # Errors
/// It is not a file that can be read.
pub fn inspect(path: &Path) -> Result<Inspection, Failure> {
    let file = ModelFile::open(path)?;
    let index = file.index();
    let mut problems = Vec::new();
    let chat_template = text_side(index, &mut problems);
    let graph = graph(index, &mut problems);
    let memory = graph.as_ref().map(|graph| memory(graph, index));
    if let Some(graph) = &graph {
        problems.extend(unsupported(graph, index));
    }
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
        cpu: problems.iter().all(|problem| problem.code == TEMPLATE),
        problems,
        notes: index.notes.iter().map(ToString::to_string).collect(),
    })
}

/// The code of a finding that does not stand against loading: another format is used.
const TEMPLATE: &str = "chat_template";

fn text_side(index: &Index, problems: &mut Vec<Finding>) -> TemplateSource {
    let Some(spec) = &index.tokenizer else {
        problems.push(Finding::new("no_tokenizer", "the file has no tokenizer"));
        return TemplateSource::None;
    };
    let tokenizer = match Tokenizer::from_spec(spec) {
        Ok(tokenizer) => tokenizer,
        Err(error) => {
            problems.push(Finding::new("unsupported_tokenizer", error));
            return TemplateSource::None;
        }
    };
    let format = ChatFormat::new(index.chat_template.as_deref(), tokenizer.controls());
    match format.fallback() {
        None => TemplateSource::Model,
        Some(Fallback::NoTemplate { used }) => TemplateSource::BuiltIn(*used),
        Some(fallback) => {
            problems.push(Finding::new(TEMPLATE, fallback));
            match fallback {
                Fallback::InvalidTemplate { used, .. } | Fallback::TemplateFailed { used, .. } => {
                    TemplateSource::BuiltIn(*used)
                }
                _ => TemplateSource::Model,
            }
        }
    }
}

/// The graph, if the file holds what its architecture needs.
fn graph(index: &Index, problems: &mut Vec<Finding>) -> Option<Graph> {
    if index.tensors.is_empty() {
        problems.push(Finding::new(
            "no_weights",
            "the file has a description but no weights",
        ));
        return None;
    }
    let graph = match candor_arch::build(index) {
        Ok(graph) => graph,
        Err(error) => {
            let code = match error {
                ArchError::NotChat { .. } => "not_a_chat_model",
                ArchError::Unknown { .. } | ArchError::Unsupported { .. } => {
                    "unsupported_architecture"
                }
                ArchError::Metadata(_) | ArchError::OutOfBounds { .. } => "metadata",
                ArchError::NoEmbedding => "missing_tensor",
            };
            problems.push(Finding::new(code, error));
            return None;
        }
    };
    let found = candor_arch::check(&graph, index);
    let whole = found.is_empty();
    problems.extend(found.into_iter().map(|problem| {
        let code = match problem {
            Problem::Missing { .. } => "missing_tensor",
            Problem::Shape { .. } => "tensor_shape",
            Problem::Type { .. } => "tensor_type",
        };
        Finding::new(code, problem)
    }));
    whole.then_some(graph)
}

fn memory(graph: &Graph, index: &Index) -> Memory {
    let context = graph.hparams.context_length.min(CONTEXT_TOKENS_DEFAULT);
    let options = FootprintOptions {
        state_tokens: context,
        state_value_bytes: STATE_VALUE_BYTES,
        rows_max: CHUNK_TOKENS,
    };
    let footprint = candor_arch::footprint(graph, index, options);
    Memory {
        weights_bytes: footprint.weights_bytes,
        kv_bytes_per_token: footprint.state_bytes_per_token,
        context_tokens: context as u64,
        kv_bytes: footprint.state_bytes,
        scratch_bytes: footprint.scratch_bytes,
        total_bytes: footprint.total_bytes(),
    }
}

fn unsupported(graph: &Graph, index: &Index) -> Vec<Finding> {
    let choice = BackendChoice {
        threads: 1,
        precision: Precision::Fast,
    };
    let context = graph.hparams.context_length.min(CONTEXT_TOKENS_DEFAULT);
    let options = OpenOptions {
        ctx_len: context,
        slots_max: 1,
        state_tokens: context,
        kv: KvType::F16,
        precision: Precision::Fast,
    };
    let backends = compose::backends()(choice);
    // The last one is the reference, which serves in this version.
    let missing = backends
        .last()
        .map(|backend| backend.supports(graph, index, &options));
    let missing = missing.into_iter().flatten();
    missing
        .map(|what| Finding::new("unsupported", format!("this version cannot run {what}")))
        .collect()
}
