//! A model that answers programs.

use std::sync::Arc;

use candor_backend::CancelToken;
use candor_engine::{
    EmbedRequest, EngineHandle, GenerateOptions, GenerateRequest, LoadedModel, PassedOver,
    Priority, TurnLog,
};
use candor_text::reply::{ReplyFormat, ReplyParser, Tools};
use candor_text::{ChatFormat, Ends, Prompt, Tokenizer, TokenizerError};
use serde_json::Value;

use super::computed::Computed;
use super::{NotAsked, model_id};
use crate::headless::{RenderOptions, Rendered, render_with};

/// A model that answers programs, on the engine that has it.
pub struct Opened {
    /// Its name in every protocol.
    pub id: String,
    engine: EngineHandle,
    loaded: Arc<LoadedModel>,
    format: Arc<ChatFormat>,
    /// Why no card computes it, as far as that is not the engine's to say.
    why: Option<PassedOver>,
}

/// What a program asks, ready for the engine.
#[derive(Debug)]
pub struct Question {
    /// The tokens and everything else; who waits is a program.
    pub options: GenerateOptions,
    /// Stops it. Whoever waits for the answer holds the other end.
    pub cancel: CancelToken,
}

impl Opened {
    pub(crate) fn new(
        engine: EngineHandle,
        loaded: Arc<LoadedModel>,
        format: Option<Arc<ChatFormat>>,
        why: Option<PassedOver>,
    ) -> Self {
        let compiled = || {
            let template = loaded.model.file.index().chat_template.as_deref();
            Arc::new(ChatFormat::new(template, loaded.tokenizer.controls()))
        };
        Self {
            id: model_id(&loaded.path),
            format: format.unwrap_or_else(compiled),
            engine,
            loaded,
            why,
        }
    }

    /// The model as it was loaded.
    pub fn loaded(&self) -> &LoadedModel {
        &self.loaded
    }

    /// How conversations are written for it.
    pub fn format(&self) -> &ChatFormat {
        &self.format
    }

    /// Its chat template as the file has it.
    pub fn template(&self) -> Option<&str> {
        self.loaded.model.file.index().chat_template.as_deref()
    }

    /// Its tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.loaded.tokenizer
    }

    /// Whether the engine still has it, and nothing else is about to take its place.
    pub fn is_there(&self) -> bool {
        let state = self.engine.state();
        let model = state.borrow().model().map(|model| model.id);
        model == Some(self.loaded.id) && !self.engine.has_ended()
    }

    /// What computes it now: a card may have been given up since the load.
    pub fn computed(&self) -> Computed {
        let state = self.engine.state();
        let now = state.borrow().model().cloned();
        let now = now.filter(|now| now.id == self.loaded.id);
        let model = now.as_ref().unwrap_or(&self.loaded);
        Computed::of(model, model.passed_over.last().or(self.why.as_ref()))
    }

    /// A conversation as the model reads it.
    ///
    /// # Errors
    /// The text is too long, or cannot be expressed.
    pub fn render(
        &self,
        messages: &[Value],
        options: &RenderOptions,
    ) -> Result<Rendered, TokenizerError> {
        render_with(&self.format, self.tokenizer(), messages, options)
    }

    /// Splits a reply of this model while it comes.
    pub fn parser(&self, tools: Tools) -> ReplyParser {
        ReplyParser::new(&ReplyFormat::of_template(self.template()), tools)
    }

    /// The beginning of the reply that a rendered conversation has written already.
    pub fn begun_by(prompt: &str) -> &str {
        ReplyFormat::opened_by(prompt)
    }

    /// The tokens of plain text. With `Ends::None` nothing is added before and after it.
    ///
    /// # Errors
    /// The text is too long, or cannot be expressed.
    pub fn encode(&self, text: &str, ends: Ends) -> Result<Vec<u32>, TokenizerError> {
        self.tokenizer().encode(&Prompt::typed(text), ends)
    }

    /// Has a reply written. Its log is read by whoever likes; it ends whatever happens.
    ///
    /// # Errors
    /// [`NotAsked`].
    pub fn ask(&self, question: Question) -> Result<Arc<TurnLog>, NotAsked> {
        let request = GenerateRequest::new(&self.loaded, question.options, question.cancel)?;
        Ok(self.engine.generate(request)?)
    }

    /// Has a text made into one vector, which its log has before the end.
    ///
    /// # Errors
    /// [`NotAsked`]; also where the model's file asks for a way that is not supported.
    pub fn embed(&self, tokens: Vec<u32>, cancel: CancelToken) -> Result<Arc<TurnLog>, NotAsked> {
        let request = EmbedRequest::new(&self.loaded, tokens, Priority::Background, cancel)?;
        Ok(self.engine.embed(request)?)
    }
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
