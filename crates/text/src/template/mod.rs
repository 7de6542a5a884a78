//! Chat templates: from a conversation to a prompt.

mod fallback;
mod json;
mod marks;
mod print;
mod stack;
mod thoughts;
mod time;
mod turns;

use std::fmt;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, Value as TemplateValue};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::controls::ControlSpellings;
use crate::prompt::Prompt;
use crate::tokenizer::Tokenizer;

pub use fallback::{Builtin, ChatFormat, Fallback, Rendered};
pub use time::LocalTime;

use marks::Taken;

/// Longest template in bytes. The longest published ones have about 20,000.
pub const TEMPLATE_BYTES_MAX: usize = 1 << 20;

/// Work that one rendering may do: about one unit for an instruction and for each 64 bytes made.
/// A conversation of a thousand turns takes about a fiftieth of it. Using it up takes well under
/// two seconds, and bounds the texts in memory to 128 MB, twice that while one grows (`print` says
/// where it does not).
pub const RENDER_FUEL: u64 = 2_000_000;

/// Longest rendered text in bytes; more cannot be encoded either.
pub const RENDER_BYTES_MAX: usize = crate::tokenizer::TEXT_BYTES_MAX;

const NAME: &str = "chat_template";

/// Why a template cannot be used, or not for this conversation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// The template is too long.
    #[error("the chat template has {found} bytes; at most {TEMPLATE_BYTES_MAX} are read")]
    TooLong {
        /// Its length in bytes.
        found: usize,
    },
    /// The template is not valid.
    #[error("the chat template is not valid in line {line}: {message}")]
    Syntax {
        /// Line of the template.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// The template itself refuses the conversation.
    #[error("the chat template refuses this conversation: {message}")]
    Refused {
        /// The template's words.
        message: String,
    },
    /// The template fails.
    #[error("the chat template fails in line {line}: {message}")]
    Failed {
        /// Line of the template.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// The template works without end.
    #[error("the chat template does not come to an end")]
    Endless,
    /// The rendered text is too long.
    #[error("the chat template made {found} bytes; at most {RENDER_BYTES_MAX} can be read")]
    RenderedTooLong {
        /// Its length in bytes.
        found: usize,
    },
    /// The conversation contains every character that could tell typed text from markup.
    #[error("the conversation contains every character that is kept for marks")]
    NoFreeMark,
}

/// Whether the prompt ends with the beginning of the model's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// It does: a reply shall follow.
    Prompt,
    /// It does not.
    None,
}

/// A conversation to render.
#[derive(Debug, Clone)]
pub struct RenderRequest<'r> {
    /// The messages, passed through whole: `role`, `content` and any other fields.
    pub messages: &'r [Value],
    /// Tool descriptions; without any, the template sees none defined.
    pub tools: &'r [Value],
    /// More variables for the template, such as `enable_thinking`.
    pub extra: Map<String, Value>,
    /// Whether a reply shall follow.
    pub generation: Generation,
    /// Spelling of the begin-of-sequence token.
    pub bos: String,
    /// Spelling of the end-of-sequence token.
    pub eos: String,
    /// The time now, for templates that write the date.
    pub now: Option<LocalTime>,
    /// What must not be taken for a control token when it stands in a message.
    pub controls: &'r ControlSpellings,
}

impl<'r> RenderRequest<'r> {
    /// A request for a reply to these messages, without tools, variables and time.
    pub fn new(tokenizer: &'r Tokenizer, messages: &'r [Value]) -> Self {
        Self {
            messages,
            tools: &[],
            extra: Map::new(),
            generation: Generation::Prompt,
            bos: tokenizer.spelling(tokenizer.bos()),
            eos: tokenizer.spelling(tokenizer.eos()),
            now: None,
            controls: tokenizer.controls(),
        }
    }
}

/// A compiled chat template.
pub struct ChatTemplate {
    environment: Environment<'static>,
    text: String,
}

impl fmt::Debug for ChatTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatTemplate")
            .field("bytes", &self.text.len())
            .finish_non_exhaustive()
    }
}

impl ChatTemplate {
    /// Compiles a template the way Hugging Face's transformers set up Jinja.
    ///
    /// # Errors
    /// If the template is too long or not valid.
    pub fn compile(text: &str) -> Result<Self, TemplateError> {
        if text.len() > TEMPLATE_BYTES_MAX {
            return Err(TemplateError::TooLong { found: text.len() });
        }
        let mut environment = Environment::new();
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true);
        environment.set_syntax(syntax.build().map_err(|error| syntax_error(&error))?);
        environment.set_fuel(Some(RENDER_FUEL));
        environment.set_debug(false);
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.set_formatter(print::formatter);
        environment.add_filter("tojson", json::tojson);
        environment.add_function("raise_exception", raise_exception);
        environment
            .add_template_owned(NAME, text.to_owned())
            .map_err(|error| syntax_error(&error))?;
        Ok(Self {
            environment,
            text: text.to_owned(),
        })
    }

    /// The same template, which may do less work.
    fn with_fuel(&self, fuel: u64) -> Self {
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(fuel));
        Self {
            environment,
            text: self.text.clone(),
        }
    }

    /// The template's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Renders a conversation. What stands in its messages stays text: control-token spellings
    /// there become literal ranges of the prompt.
    ///
    /// # Errors
    /// If the template refuses the conversation, fails, or does not come to an end.
    pub fn render(&self, request: &RenderRequest<'_>) -> Result<Prompt, TemplateError> {
        stack::with_room(|| self.render_here(request)).unwrap_or_else(|error| {
            let message = format!("no thread could be had for it: {error}");
            Err(TemplateError::Failed { line: 0, message })
        })
    }

    fn render_here(&self, request: &RenderRequest<'_>) -> Result<Prompt, TemplateError> {
        let mut taken = Taken::default();
        for text in [&self.text, &request.bos, &request.eos] {
            taken.add_text(text);
        }
        request
            .messages
            .iter()
            .chain(request.tools)
            .for_each(|value| taken.add(value));
        taken.add_map(&request.extra);
        let mark = taken.free().ok_or(TemplateError::NoFreeMark)?;

        let marked = |values: &[Value]| -> Value {
            values
                .iter()
                .map(|value| mark.value(value, request.controls))
                .collect()
        };
        let mut variables = mark.map(&request.extra, request.controls);
        variables.insert("messages".into(), marked(request.messages));
        if !request.tools.is_empty() {
            variables.insert("tools".into(), marked(request.tools));
        }
        let generation = request.generation == Generation::Prompt;
        variables.insert("add_generation_prompt".into(), generation.into());
        variables.insert("bos_token".into(), request.bos.clone().into());
        variables.insert("eos_token".into(), request.eos.clone().into());
        let now = request.now;
        let strftime_now = TemplateValue::from_function(move |format: &str| {
            let unknown = || Error::new(ErrorKind::InvalidOperation, "the time is not known");
            now.map(|now| now.format(format)).ok_or_else(unknown)
        });
        let variables = variables
            .iter()
            .map(|(name, value)| (name.clone(), template_value(value)))
            .chain([("strftime_now".to_owned(), strftime_now)]);
        let rendered = self
            .environment
            .get_template(NAME)
            .and_then(|template| template.render(TemplateValue::from_pairs(variables)))
            .map_err(|error| render_error(&error))?;
        if rendered.len() > RENDER_BYTES_MAX {
            return Err(TemplateError::RenderedTooLong {
                found: rendered.len(),
            });
        }
        Ok(mark.remove(&rendered, request.controls))
    }
}

/// A JSON value as templates see it.
fn template_value(value: &Value) -> TemplateValue {
    match value {
        Value::Null => TemplateValue::from(()),
        Value::Bool(truth) => TemplateValue::from(*truth),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => TemplateValue::from(number),
            (None, Some(number)) => TemplateValue::from(number),
            (None, None) => TemplateValue::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => TemplateValue::from(text.as_str()),
        Value::Array(items) => items.iter().map(template_value).collect(),
        Value::Object(map) => {
            TemplateValue::from_pairs(map.iter().map(|(key, value)| (key, template_value(value))))
        }
    }
}

/// What a template raised itself; told from other failures by its type.
#[derive(Debug, Error)]
#[error("{0}")]
struct Raised(String);

/// Characters of what a template or the engine says of a failure: enough for a sentence, and little
/// enough for a line on the screen.
const MESSAGE_CHARS_MAX: usize = 400;

/// A message of bounded length.
fn bounded(mut message: String) -> String {
    if let Some((at, _)) = message.char_indices().nth(MESSAGE_CHARS_MAX) {
        message.truncate(at);
        message.push('…');
    }
    message
}

fn raise_exception(message: &TemplateValue) -> Result<TemplateValue, Error> {
    let message = bounded(print::beginning(
        message,
        MESSAGE_CHARS_MAX * char::MAX.len_utf8(),
    ));
    let error = Error::new(ErrorKind::InvalidOperation, message.clone());
    Err(error.with_source(Raised(message)))
}

fn syntax_error(error: &Error) -> TemplateError {
    TemplateError::Syntax {
        line: error.line().unwrap_or(0),
        message: words(error),
    }
}

fn render_error(error: &Error) -> TemplateError {
    if error.kind() == ErrorKind::OutOfFuel {
        return TemplateError::Endless;
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        if let Some(Raised(message)) = inner.downcast_ref() {
            return TemplateError::Refused {
                message: message.clone(),
            };
        }
        if inner
            .downcast_ref::<Error>()
            .is_some_and(|e| e.kind() == ErrorKind::OutOfFuel)
        {
            return TemplateError::Endless;
        }
        cause = inner.source();
    }
    TemplateError::Failed {
        line: error.line().unwrap_or(0),
        message: words(error),
    }
}

/// The error in words, without the engine's repetition of line and template name.
fn words(error: &Error) -> String {
    match error.detail() {
        Some(detail) => bounded(format!("{}: {detail}", error.kind())),
        None => error.kind().to_string(),
    }
}

#[cfg(test)]
mod tests;
