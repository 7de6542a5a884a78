//! What to do for a model without a template, or whose template refuses a conversation.

use std::fmt;

use serde_json::{Value, json};

use super::{ChatTemplate, Generation, RenderRequest, TemplateError, thoughts, turns};
use crate::controls::ControlSpellings;
use crate::prompt::Prompt;
use crate::tokenizer::END_OF_TURN;

/// Between two texts that become one turn.
const PARAGRAPH: &str = "\n\n";

/// A format for models whose own template is missing or fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builtin {
    /// `<|im_start|>role` ... `<|im_end|>`, for vocabularies that have these tokens.
    ChatMl,
    /// `User: ...` and `Assistant: ...`, which any model can read.
    Plain,
}

impl fmt::Display for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ChatMl => "the built-in ChatML format",
            Self::Plain => "a plain \"User: / Assistant:\" format",
        })
    }
}

/// What was done instead of rendering the model's own template as it is. `Display` says it in
/// plain words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fallback {
    /// The model has no template.
    NoTemplate {
        /// What is used.
        used: Builtin,
    },
    /// The template is not valid.
    InvalidTemplate {
        /// Why.
        error: TemplateError,
        /// What is used.
        used: Builtin,
    },
    /// The template takes no system turn.
    SystemInUserTurn {
        /// Its refusal.
        error: TemplateError,
    },
    /// The template wants turns to alternate.
    TurnsMerged {
        /// Its refusal.
        error: TemplateError,
    },
    /// Both.
    SystemInUserTurnAndTurnsMerged {
        /// Its refusal.
        error: TemplateError,
    },
    /// The template fails for this conversation whatever is done.
    TemplateFailed {
        /// Its first failure.
        error: TemplateError,
        /// What is used.
        used: Builtin,
    },
}

impl Fallback {
    /// Whether a built-in format is used, which writes roles and texts and nothing else.
    pub fn is_built_in(&self) -> bool {
        matches!(
            self,
            Self::NoTemplate { .. } | Self::InvalidTemplate { .. } | Self::TemplateFailed { .. }
        )
    }
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTemplate { used } => {
                write!(f, "this model brings no chat template, so {used} is used")
            }
            Self::InvalidTemplate { error, used } | Self::TemplateFailed { error, used } => {
                write!(f, "{error}; {used} is used")
            }
            Self::SystemInUserTurn { error } => {
                write!(
                    f,
                    "{error}; the system text was put into the first question"
                )
            }
            Self::TurnsMerged { error } => {
                write!(f, "{error}; neighbouring turns of one side were joined")
            }
            Self::SystemInUserTurnAndTurnsMerged { error } => write!(
                f,
                "{error}; the system text was put into the first question and neighbouring turns \
                 of one side were joined"
            ),
        }
    }
}

/// A rendered conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The prompt.
    pub prompt: Prompt,
    /// What was done instead of rendering the template as it is, if anything.
    pub fallback: Option<Fallback>,
    /// Texts that end a turn in this prompt although the vocabulary has no token for them: stop
    /// strings for the reply.
    pub end_strings: Vec<String>,
}

/// How conversations are written for one model: its template, and what to do where that fails.
#[derive(Debug)]
pub struct ChatFormat {
    /// The template, or why there is none.
    template: Result<ChatTemplate, Fallback>,
    builtin: Builtin,
    end_strings: Vec<String>,
}

impl ChatFormat {
    /// The format of a model with this template and these control tokens.
    pub fn new(template: Option<&str>, controls: &ControlSpellings) -> Self {
        let has_chat_ml = ["<|im_start|>", "<|im_end|>"]
            .iter()
            .all(|name| controls.contains(name));
        let builtin = if has_chat_ml {
            Builtin::ChatMl
        } else {
            Builtin::Plain
        };
        let template = match template {
            None => Err(Fallback::NoTemplate { used: builtin }),
            Some(text) => ChatTemplate::compile(text).map_err(|error| Fallback::InvalidTemplate {
                error,
                used: builtin,
            }),
        };
        let text = template.as_ref().map_or("", ChatTemplate::text);
        let mut end_strings: Vec<String> = END_OF_TURN
            .iter()
            .filter(|marker| text.contains(**marker) && !controls.contains(marker))
            .map(|marker| (*marker).to_owned())
            .collect();
        match &template {
            Ok(template) => end_strings.extend(turns::users_opening(template, controls)),
            Err(_) => end_strings = builtin.end_strings(),
        }
        Self {
            template,
            builtin,
            end_strings,
        }
    }

    /// Why the model's own template is not used at all, if so.
    pub fn fallback(&self) -> Option<&Fallback> {
        self.template.as_ref().err()
    }

    /// Texts that end a turn in this format although the vocabulary has no token for them. What
    /// counts for one reply stands in [`Rendered::end_strings`].
    pub fn end_strings(&self) -> &[String] {
        &self.end_strings
    }

    /// Renders a conversation, without the thoughts of earlier answers if they were written in a
    /// channel. Where the template refuses it, the system text is put into the
    /// first question, then neighbouring turns of one side are joined, and at last a built-in
    /// format is used; the result says which.
    pub fn render(&self, request: &RenderRequest<'_>) -> Rendered {
        let template = match &self.template {
            Ok(template) => template,
            Err(reason) => return self.built_in(request, reason.clone()),
        };
        let messages = thoughts::left_out(template.text(), request.messages);
        let request = &RenderRequest {
            messages: messages.as_deref().unwrap_or(request.messages),
            ..request.clone()
        };
        let error = match template.render(request) {
            Ok(prompt) => return self.by_template(prompt, None),
            Err(error) => error,
        };
        let failed = Fallback::TemplateFailed {
            error: error.clone(),
            used: self.builtin,
        };
        if !matches!(
            error,
            TemplateError::Refused { .. } | TemplateError::Failed { .. }
        ) {
            return self.built_in(request, failed);
        }
        let folded = with_system_in_user_turn(request.messages);
        let merged = with_turns_merged(request.messages);
        let both = with_turns_merged(&folded);
        let attempts = [
            (
                folded,
                Fallback::SystemInUserTurn {
                    error: error.clone(),
                },
            ),
            (
                merged,
                Fallback::TurnsMerged {
                    error: error.clone(),
                },
            ),
            (both, Fallback::SystemInUserTurnAndTurnsMerged { error }),
        ];
        for (messages, fallback) in attempts {
            if messages == request.messages {
                continue;
            }
            let request = RenderRequest {
                messages: &messages,
                ..request.clone()
            };
            if let Ok(prompt) = template.render(&request) {
                return self.by_template(prompt, Some(fallback));
            }
        }
        self.built_in(request, failed)
    }

    fn by_template(&self, prompt: Prompt, fallback: Option<Fallback>) -> Rendered {
        Rendered {
            prompt,
            fallback,
            end_strings: self.end_strings.clone(),
        }
    }

    fn built_in(&self, request: &RenderRequest<'_>, reason: Fallback) -> Rendered {
        Rendered {
            prompt: self.builtin.render(request),
            fallback: Some(reason),
            end_strings: self.builtin.end_strings(),
        }
    }
}

impl Builtin {
    /// What ends a turn in it beside tokens.
    fn end_strings(self) -> Vec<String> {
        match self {
            Self::ChatMl => Vec::new(),
            Self::Plain => vec!["\nUser:".to_owned()],
        }
    }

    /// Renders a conversation; all contents are literal.
    fn render(self, request: &RenderRequest<'_>) -> Prompt {
        let mut prompt = Prompt::default();
        for message in request.messages {
            let role = role(message);
            match self {
                Self::ChatMl => {
                    prompt.push_markup("<|im_start|>");
                    prompt.push_typed(role);
                    prompt.push_markup("\n");
                    prompt.push_typed(&text(message));
                    prompt.push_markup("<|im_end|>\n");
                }
                Self::Plain => {
                    match role {
                        "user" => prompt.push_markup("User: "),
                        "assistant" => prompt.push_markup("Assistant: "),
                        _ => {}
                    }
                    prompt.push_typed(&text(message));
                    prompt.push_markup(PARAGRAPH);
                }
            }
        }
        if request.generation == Generation::Prompt {
            prompt.push_markup(match self {
                Self::ChatMl => "<|im_start|>assistant\n",
                Self::Plain => "Assistant:",
            });
        }
        prompt
    }
}

fn role(message: &Value) -> &str {
    message
        .get("role")
        .and_then(Value::as_str)
        .unwrap_or("user")
}

/// The content of a message as text; of a list of parts, the text parts.
fn text(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts
                .iter()
                .filter_map(|part| part.get("text").and_then(Value::as_str));
            texts.collect::<Vec<_>>().join(PARAGRAPH)
        }
        _ => String::new(),
    }
}

fn is_system(message: &Value) -> bool {
    matches!(role(message), "system" | "developer")
}

/// The messages without system turns; their text begins the first user turn.
fn with_system_in_user_turn(messages: &[Value]) -> Vec<Value> {
    let system: Vec<String> = messages
        .iter()
        .filter(|message| is_system(message))
        .map(text)
        .filter(|text| !text.is_empty())
        .collect();
    let mut rest: Vec<Value> = messages
        .iter()
        .filter(|message| !is_system(message))
        .cloned()
        .collect();
    if system.is_empty() {
        return rest;
    }
    let system = system.join(PARAGRAPH);
    match rest
        .iter_mut()
        .find(|message| role(message) == "user")
        .map(|user| &mut user["content"])
    {
        Some(Value::String(content)) => content.insert_str(0, &(system + PARAGRAPH)),
        Some(Value::Array(parts)) => parts.insert(0, json!({ "type": "text", "text": system })),
        _ => rest.insert(0, json!({ "role": "user", "content": system })),
    }
    rest
}

/// The messages with empty answers left out and neighbouring turns of one side joined. Turns
/// with anything but a role and a text, such as tool calls, stay as they are.
fn with_turns_merged(messages: &[Value]) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::with_capacity(messages.len());
    for message in messages {
        let plain = plain_text(message);
        if plain == Some("") && role(message) == "assistant" {
            continue;
        }
        match (merged.last_mut(), plain) {
            (Some(last), Some(text))
                if plain_text(last).is_some() && role(last) == role(message) =>
            {
                let joined = [plain_text(last).unwrap_or_default(), text].join(PARAGRAPH);
                last["content"] = joined.into();
            }
            _ => merged.push(message.clone()),
        }
    }
    merged
}

/// The text of a message that has nothing but a role and a text.
fn plain_text(message: &Value) -> Option<&str> {
    let fields = message.as_object()?;
    let only_text = fields
        .keys()
        .all(|key| matches!(key.as_str(), "role" | "content"));
    fields
        .get("content")
        .and_then(Value::as_str)
        .filter(|_| only_text)
}
