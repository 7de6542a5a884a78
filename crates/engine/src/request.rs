//! What a reply is asked for with. A [`GenerateRequest`] exists only if the model can serve it.

use std::sync::Arc;
use std::time::Instant;

use candor_backend::CancelToken;
use candor_text::{Show, StopError, StopMatcher, Tokenizer};

use crate::constraint::{Constraint, ConstraintError, Follower};
use crate::embedding::{NoEmbedding, Pooling};
use crate::guard::VerdictId;
use crate::load::{LoadedModel, ModelId};
use crate::message::{FinishReason, Stats, TurnCode};
use crate::prefix::Reuse;
use crate::sampler::{BiasError, DRY_BREAKERS, Sampler, Sampling, SamplingError, TOP_LOGPROBS_MAX};
use crate::turn_log::{TurnLog, TurnWriter};

/// Most tokens of one reply. Its log holds them all; a million of them takes some 64 MB.
pub const REPLY_TOKENS_MAX: usize = 1 << 20;

/// What to do with a token by which the model ends its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndTokens {
    /// End the reply, and leave the token out of it.
    Heed,
    /// Write on. For measurements.
    Ignore,
}

/// Who waits for the reply. The first listed comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// A person.
    Interactive,
    /// A program.
    Background,
}

/// What a reply is asked for with, before it is checked.
#[derive(Clone, Debug, PartialEq)]
pub struct GenerateOptions {
    /// The whole context: the conversation as tokens.
    pub prompt: Vec<u32>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Most tokens of the reply.
    pub max_tokens: usize,
    /// Texts that end the reply and are not shown.
    pub stop: Vec<String>,
    /// Whether the model may end its reply.
    pub ends: EndTokens,
    /// Who waits.
    pub priority: Priority,
    /// Added to the logits of these tokens before everything else; −∞ forbids one.
    pub logit_bias: Vec<(u32, f32)>,
    /// Tells how likely each token was, and so many of the likeliest others; none to leave it out.
    pub top_logprobs: Option<usize>,
    /// What the reply has to look like.
    pub constraint: Option<Constraint>,
    /// What may be taken over from what was computed before.
    pub reuse: Reuse,
}

impl GenerateOptions {
    /// A prompt, how its reply is chosen and how long it may be; everything else as is usual for
    /// somebody who waits.
    pub fn new(prompt: Vec<u32>, sampling: Sampling, max_tokens: usize) -> Self {
        Self {
            prompt,
            sampling,
            max_tokens,
            stop: Vec::new(),
            ends: EndTokens::Heed,
            priority: Priority::Interactive,
            logit_bias: Vec::new(),
            top_logprobs: None,
            constraint: None,
            reuse: Reuse::All,
        }
    }
}

/// Why a request is none.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RequestError {
    /// There is nothing to go on from.
    #[error("the prompt has no tokens")]
    EmptyPrompt,
    /// A token that the model does not have.
    #[error(
        "token {token} at place {index} of the prompt is outside the vocabulary of {vocabulary}"
    )]
    UnknownToken {
        /// Its place in the prompt.
        index: usize,
        /// As given.
        token: u32,
        /// Size of the vocabulary.
        vocabulary: usize,
    },
    /// The prompt does not fit.
    #[error("the prompt has {tokens} tokens; the context holds {ctx_len}")]
    PromptTooLong {
        /// Tokens of the prompt.
        tokens: usize,
        /// Tokens of the context.
        ctx_len: usize,
    },
    /// A limit outside its bounds.
    #[error("the limit of the reply is {found} tokens; it has to be between 1 and {max}")]
    MaxTokens {
        /// As given.
        found: usize,
        /// [`REPLY_TOKENS_MAX`].
        max: usize,
    },
    /// A number of the sampling is outside its bounds.
    #[error(transparent)]
    Sampling(#[from] SamplingError),
    /// The biases are out of bounds.
    #[error(transparent)]
    Bias(#[from] BiasError),
    /// More likely tokens are asked for than are told.
    #[error("{found} likely tokens are asked for; at most {max} are told")]
    TopLogprobs {
        /// As given.
        found: usize,
        /// [`TOP_LOGPROBS_MAX`].
        max: usize,
    },
    /// What the reply has to look like cannot be followed.
    #[error(transparent)]
    Constraint(#[from] ConstraintError),
    /// The model gives no embeddings.
    #[error(transparent)]
    NoEmbedding(#[from] NoEmbedding),
    /// The stop strings cannot be looked for.
    #[error(transparent)]
    Stop(#[from] StopError),
}

/// A request that was checked against the model that it is for, with the log that it will be
/// answered in and the flag that stops it.
#[derive(Debug)]
pub struct GenerateRequest {
    pub(crate) model: ModelId,
    /// The proof that whoever asks knows of.
    pub(crate) verdict: Option<VerdictId>,
    pub(crate) prompt: Vec<u32>,
    pub(crate) sampler: Sampler,
    pub(crate) top_logprobs: Option<usize>,
    pub(crate) follower: Option<Follower>,
    pub(crate) reuse: Reuse,
    /// Not a reply, but one vector is wanted.
    pub(crate) pooling: Option<Pooling>,
    pub(crate) max_tokens: usize,
    pub(crate) stop: StopMatcher,
    pub(crate) ends: EndTokens,
    pub(crate) priority: Priority,
    pub(crate) cancel: CancelToken,
    pub(crate) writer: TurnWriter,
    /// When the engine was given it.
    pub(crate) asked: Option<Instant>,
}

impl GenerateRequest {
    /// Checks everything that can be known before the engine has it.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn new(
        model: &LoadedModel,
        options: GenerateOptions,
        cancel: CancelToken,
    ) -> Result<Self, RequestError> {
        check_tokens(&options.prompt, model)?;
        let max_tokens = options.max_tokens;
        if !(1..=REPLY_TOKENS_MAX).contains(&max_tokens) {
            return Err(RequestError::MaxTokens {
                found: max_tokens,
                max: REPLY_TOKENS_MAX,
            });
        }
        if let Some(found) = options.top_logprobs.filter(|n| *n > TOP_LOGPROBS_MAX) {
            let max = TOP_LOGPROBS_MAX;
            return Err(RequestError::TopLogprobs { found, max });
        }
        let mut sampler =
            Sampler::new(options.sampling)?.with_bias(options.logit_bias, model.vocabulary)?;
        if options.sampling.is_dry() {
            sampler = sampler.with_breakers(breakers(&model.tokenizer));
        }
        let stop = StopMatcher::new(options.stop)?;
        let compile = |constraint: &Constraint| {
            let (grammars, vocabulary) = (&model.grammars, model.vocabulary);
            grammars.compile(constraint, &model.tokenizer, vocabulary)
        };
        let follower = options.constraint.as_ref().map(compile).transpose()?;
        let (_, writer) = TurnLog::new();
        Ok(Self {
            model: model.id,
            verdict: model.verdict(),
            prompt: options.prompt,
            sampler,
            top_logprobs: options.top_logprobs,
            follower,
            reuse: options.reuse,
            pooling: None,
            max_tokens,
            stop,
            ends: options.ends,
            priority: options.priority,
            cancel,
            writer,
            asked: None,
        })
    }

    /// Where the answer will stand.
    pub fn log(&self) -> Arc<TurnLog> {
        Arc::clone(self.writer.log())
    }

    /// The flag that stops it.
    pub fn cancel_token(&self) -> &CancelToken {
        &self.cancel
    }

    /// Ends a request that was never started.
    pub(crate) fn fail(self, code: TurnCode) {
        self.writer.fail(code, code.to_string());
    }

    /// Ends a request that was stopped before it was started.
    pub(crate) fn stopped(self) {
        let stats = Stats {
            prompt_tokens: self.prompt.len(),
            ..Stats::default()
        };
        self.writer.finish(FinishReason::Cancelled, stats);
    }
}

/// Whether a model can read these tokens.
fn check_tokens(tokens: &[u32], model: &LoadedModel) -> Result<(), RequestError> {
    if tokens.is_empty() {
        return Err(RequestError::EmptyPrompt);
    }
    let vocabulary = model.vocabulary;
    if let Some(index) = tokens
        .iter()
        .position(|&token| token as usize >= vocabulary)
    {
        let token = tokens[index];
        return Err(RequestError::UnknownToken {
            index,
            token,
            vocabulary,
        });
    }
    if tokens.len() > model.ctx_len {
        let (tokens, ctx_len) = (tokens.len(), model.ctx_len);
        return Err(RequestError::PromptTooLong { tokens, ctx_len });
    }
    Ok(())
}

/// The tokens that end what DRY takes for a repetition.
pub(crate) fn breakers(tokenizer: &Tokenizer) -> Vec<u32> {
    let breaks = |id: &u32| {
        let piece = tokenizer.piece(*id, Show::Control);
        piece.iter().any(|byte| DRY_BREAKERS.contains(byte))
    };
    (0..tokenizer.vocab_len() as u32).filter(breaks).collect()
}
