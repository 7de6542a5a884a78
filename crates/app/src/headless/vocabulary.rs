//! A model file for its text side alone: it may lack weights, and its architecture is not asked.

use std::path::{Path, PathBuf};

use candor_arch::ArchError;
use candor_engine::{LoadFailure, TextSide};
use candor_modelfile::{Assumed, Index, ModelFile, Purpose};
use candor_text::{
    ChatFormat, Ends, Fallback, Generation, LocalTime, Prompt, RenderRequest, Show, Tokenizer,
    TokenizerError,
};
use serde_json::{Map, Value};

use super::failure::Failure;

/// The vocabulary and the chat format of a model file.
pub struct Vocabulary {
    file: ModelFile,
    tokenizer: Tokenizer,
}

/// What to render, beside the messages.
#[derive(Clone, Debug)]
pub struct RenderOptions {
    /// Variables of the template; they override what the model says.
    pub variables: Map<String, Value>,
    /// A template in place of the model's own.
    pub template: Option<String>,
    /// Whether a reply shall follow.
    pub generation: Generation,
    /// The time now, for templates that write the date.
    pub now: Option<LocalTime>,
}

/// A conversation as the model reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// The text.
    pub prompt: String,
    /// Its tokens.
    pub ids: Vec<u32>,
    /// Why the template was not used as it is, if so.
    pub fallback: Option<String>,
    /// Whether a built-in format was used, which writes roles and texts and nothing else.
    pub is_built_in: bool,
    /// Texts that end a reply beside end tokens.
    pub end_strings: Vec<String>,
}

impl Vocabulary {
    /// Reads the vocabulary of a file.
    ///
    /// # Errors
    /// The file is refused, or has no vocabulary that this version can use.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        Self::open_as(path, &Assumed::default(), TextSide::Needed)
    }

    /// Reads the vocabulary of a file of which a person states facts; with token ids alone, what
    /// there is of it.
    ///
    /// # Errors
    /// The file is refused, or has no vocabulary that this version can use and text is needed.
    pub fn open_as(path: &Path, assumed: &Assumed, text: TextSide) -> Result<Self, Failure> {
        let file = ModelFile::open_as(path, assumed)?;
        let path = path.to_owned();
        let tokenizer = match (tokenizer(file.index()), text) {
            (Ok(tokenizer), _) => tokenizer,
            (Err(reason), TextSide::IdsOnly) => {
                Tokenizer::ids_only(file.index().tokenizer.as_ref(), reason)
            }
            (Err(TokenizerError::Absent), _) => return Err(absent(file.index(), path)),
            (Err(source), _) => return Err(Failure::Tokenizer { path, source }),
        };
        Ok(Self { file, tokenizer })
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The tokens of a prompt.
    ///
    /// # Errors
    /// It is too long, or cannot be expressed.
    pub fn encode(&self, prompt: &Prompt, ends: Ends) -> Result<Vec<u32>, Failure> {
        Ok(self.tokenizer.encode(prompt, ends)?)
    }

    /// The bytes of each token, control tokens as they are spelled.
    pub fn pieces(&self, ids: &[u32]) -> Vec<&[u8]> {
        ids.iter()
            .map(|&id| self.tokenizer.piece(id, Show::Control))
            .collect()
    }

    /// Tokens that the model was trained for, if the file says so.
    pub fn context_length(&self) -> Option<usize> {
        let tokens = context_length(self.file.index())?;
        usize::try_from(tokens).ok()
    }

    /// How conversations are written for this model.
    pub fn chat_format(&self) -> ChatFormat {
        let template = self.file.index().chat_template.as_deref();
        ChatFormat::new(template, self.tokenizer.controls())
    }

    /// Renders a conversation and encodes it.
    ///
    /// # Errors
    /// The text is too long, or cannot be expressed.
    pub fn render(&self, messages: &[Value], options: &RenderOptions) -> Result<Rendered, Failure> {
        let format = match &options.template {
            Some(text) => ChatFormat::new(Some(text), self.tokenizer.controls()),
            None => self.chat_format(),
        };
        Ok(render_with(&format, &self.tokenizer, messages, options)?)
    }
}

/// Renders a conversation in this format and encodes it. A template among the options is the
/// caller's to have compiled.
///
/// # Errors
/// The text is too long, or cannot be expressed.
pub(crate) fn render_with(
    format: &ChatFormat,
    tokenizer: &Tokenizer,
    messages: &[Value],
    options: &RenderOptions,
) -> Result<Rendered, TokenizerError> {
    let mut variables = options.variables.clone();
    let messages = match take(&mut variables, "messages", Value::is_array) {
        Some(Value::Array(messages)) => messages,
        _ => messages.to_vec(),
    };
    let tools = match take(&mut variables, "tools", Value::is_array) {
        Some(Value::Array(tools)) => tools,
        _ => Vec::new(),
    };
    let mut request = RenderRequest::new(tokenizer, &messages);
    request.tools = &tools;
    request.generation = options.generation;
    request.now = options.now;
    for (name, spelling) in [
        ("bos_token", &mut request.bos),
        ("eos_token", &mut request.eos),
    ] {
        if let Some(Value::String(text)) = take(&mut variables, name, Value::is_string) {
            *spelling = text;
        }
    }
    match take(&mut variables, "add_generation_prompt", Value::is_boolean) {
        Some(Value::Bool(true)) => request.generation = Generation::Prompt,
        Some(_) => request.generation = Generation::None,
        None => {}
    }
    request.extra = variables;
    let rendered = format.render(&request);
    Ok(Rendered {
        ids: tokenizer.encode(&rendered.prompt, Ends::Chat)?,
        prompt: rendered.prompt.text,
        is_built_in: rendered
            .fallback
            .as_ref()
            .is_some_and(Fallback::is_built_in),
        fallback: rendered.fallback.map(|fallback| fallback.to_string()),
        end_strings: rendered.end_strings,
    })
}

/// A file without a vocabulary may not be meant to have one.
fn absent(index: &Index, path: PathBuf) -> Failure {
    let Some(purpose) = Purpose::of(index) else {
        return Failure::NoTokenizer { path };
    };
    let source = ArchError::NotChat { purpose };
    let of_path = path.clone();
    let source = Box::new(LoadFailure::Architecture {
        path: of_path,
        source,
    });
    Failure::Load { path, source }
}

fn tokenizer(index: &Index) -> Result<Tokenizer, TokenizerError> {
    let spec = index.tokenizer.as_ref();
    spec.map_or(Err(TokenizerError::Absent), Tokenizer::from_spec)
}

/// Takes a variable that has a place of its own in the request, if it is of the right kind.
fn take(variables: &mut Map<String, Value>, name: &str, fits: fn(&Value) -> bool) -> Option<Value> {
    if variables.get(name).is_some_and(fits) {
        variables.shift_remove(name)
    } else {
        None
    }
}

/// Tokens that the model was trained for. What the architecture makes of it is not asked here.
pub(super) fn context_length(index: &Index) -> Option<u64> {
    let key = format!("{}.context_length", index.architecture);
    index.metadata.find_u64(&key).ok().flatten()
}

/// The time in UTC at so many milliseconds after 1970 began, for templates that write the date.
pub fn utc(now_ms: i64) -> LocalTime {
    crate::prompt::utc(now_ms)
}
