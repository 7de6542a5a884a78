//! From logits to a token. Pure: no clock, no generator state, no thread.
//!
//! The stages run in the order of [`STAGES`]: what a grammar allows, biases, penalties, DRY, top-k,
//! top-p, min-p, XTC, temperature. It is the order of llama.cpp's default chain
//! (`common_params_sampling::samplers` in its `common/common.h`, behind the biases, which
//! `common_sampler_init` puts first), which users of other programs expect. Temperature is last, so
//! that the filters judge the model's own probabilities. What is left is walked in the order of
//! token ids with one number between 0 and 1, which depends on the seed and on how many tokens
//! were drawn before, and on nothing else.

mod bias;
mod choose;
mod filters;
mod logprobs;
mod penalties;
mod sampling;

use crate::draw::uniform;

pub use bias::{BIAS_MAX, BIASES_MAX, BiasError};
pub(crate) use choose::refuse_not_finite;
pub(crate) use logprobs::LogprobScratch;
pub use logprobs::{Logprobs, TOP_LOGPROBS_MAX};
pub use sampling::{
    DRY_BASE_MAX, DRY_BASE_MIN, DRY_MULTIPLIER_MAX, PENALTY_MAX, REPEAT_PENALTY_MAX,
    REPEAT_PENALTY_MIN, Sampling, SamplingError, TEMPERATURE_MAX,
};

use choose::{first_with, largest, walk};
use penalties::DryScratch;

/// Tokens that the penalties look back over. 64 is the window that users of other programs know;
/// a longer one begins to punish the words that every sentence needs.
pub const REPEAT_WINDOW: usize = 64;
/// Longer than any repetition that is allowed on purpose.
pub const DRY_LENGTH_MAX: usize = 1_024;
/// As long as the longest context.
pub const DRY_WINDOW_MAX: usize = 1 << 24;
/// Texts whose tokens end a repetition: the ends of lines and of names, quotes and emphasis, as
/// other programs have them.
pub(crate) const DRY_BREAKERS: [u8; 4] = [b'\n', b':', b'"', b'*'];

/// The logits hold something that is no number, or nothing that can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the logit of token {token} is not a number that can be chosen from")]
pub struct NotFinite {
    /// The first such token.
    pub token: usize,
}

/// Why there is no next token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoToken {
    /// What computes gave no numbers.
    #[error(transparent)]
    NotFinite(#[from] NotFinite),
    /// Grammar and biases together forbid every token.
    #[error("what was asked for forbids every token")]
    NothingAllowed,
}

/// Chooses tokens for one reply. Keeps its scratch memory between tokens.
#[derive(Clone, Debug)]
pub struct Sampler {
    sampling: Sampling,
    /// Added to the logits of these tokens.
    bias: Vec<(u32, f32)>,
    /// Tokens that end a repetition, sorted.
    breakers: Vec<u32>,
    kept: Vec<Candidate>,
    dry: DryScratch,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Candidate {
    id: u32,
    logit: f32,
}

/// What a token is chosen by, beside the logits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given<'a> {
    /// Tokens already in the context, oldest first.
    pub history: &'a [u32],
    /// How many tokens this reply has so far.
    pub draw: u64,
    /// One bit for each token that a grammar allows, the lowest first; none if it allows all.
    pub allowed: Option<&'a [u32]>,
}

/// What a stage works on.
struct Pool<'a> {
    /// Logits of the whole vocabulary; what counts until `kept` does.
    logits: &'a mut [f32],
    /// What is left, once a filter has run. Empty before.
    kept: &'a mut Vec<Candidate>,
    given: Given<'a>,
    bias: &'a [(u32, f32)],
    breakers: &'a [u32],
    dry: &'a mut DryScratch,
}

/// One step on the way from logits to a token.
struct Stage {
    name: &'static str,
    kind: Kind,
    apply: fn(&Sampling, &mut Pool<'_>),
}

/// What a stage does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Changes logits; also where the best token is taken.
    Logits,
    /// Leaves candidates out, or changes how far they are apart; of no use for the best token.
    Candidates,
}

/// Every stage, in order. A new one is a function and a row here.
static STAGES: &[Stage] = &[
    stage("grammar", Kind::Logits, bias::grammar),
    stage("logit_bias", Kind::Logits, bias::logit_bias),
    stage("penalties", Kind::Logits, penalties::penalties),
    stage("dry", Kind::Logits, penalties::dry),
    stage("top_k", Kind::Candidates, filters::top_k),
    stage("top_p", Kind::Candidates, filters::top_p),
    stage("min_p", Kind::Candidates, filters::min_p),
    stage("xtc", Kind::Candidates, filters::xtc),
    stage("temperature", Kind::Candidates, choose::temperature),
];

const fn stage(name: &'static str, kind: Kind, apply: fn(&Sampling, &mut Pool<'_>)) -> Stage {
    Stage { name, kind, apply }
}

/// Names of the stages in the order in which they run.
pub fn stage_names() -> impl Iterator<Item = &'static str> {
    STAGES.iter().map(|stage| stage.name)
}

impl Sampler {
    /// # Errors
    /// [`SamplingError`] for the first number outside its bounds (a NaN is outside of all).
    pub fn new(sampling: Sampling) -> Result<Self, SamplingError> {
        sampling.check()?;
        Ok(Self {
            sampling,
            bias: Vec::new(),
            breakers: Vec::new(),
            kept: Vec::new(),
            dry: DryScratch::default(),
        })
    }

    /// Adds to the logits of some tokens before everything else; −∞ forbids one.
    ///
    /// # Errors
    /// [`BiasError`].
    pub fn with_bias(
        mut self,
        bias: Vec<(u32, f32)>,
        vocabulary: usize,
    ) -> Result<Self, BiasError> {
        bias::check(&bias, vocabulary)?;
        self.bias = bias;
        Ok(self)
    }

    /// Tokens that end what counts as a repetition.
    pub fn with_breakers(mut self, mut breakers: Vec<u32>) -> Self {
        breakers.sort_unstable();
        self.breakers = breakers;
        self
    }

    /// What it was made of.
    pub fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// Whether it takes the best of the logits as they are, so that nothing but that token need
    /// be known.
    pub fn takes_best(&self) -> bool {
        let changes = self.sampling.penalises() || self.sampling.is_dry() || !self.bias.is_empty();
        self.sampling.temperature == 0.0 && !changes
    }

    /// The next token. `logits` is used up.
    ///
    /// # Errors
    /// [`NoToken::NotFinite`] if a logit is NaN or +∞, or if every one is −∞;
    /// [`NoToken::NothingAllowed`] if that comes of what was asked for.
    pub fn next(&mut self, logits: &mut [f32], given: Given<'_>) -> Result<u32, NoToken> {
        refuse_not_finite(logits)?;
        self.kept.clear();
        let mut pool = Pool {
            logits,
            kept: &mut self.kept,
            given,
            bias: &self.bias,
            breakers: &self.breakers,
            dry: &mut self.dry,
        };
        let takes_best = self.sampling.temperature == 0.0;
        for stage in STAGES.iter().filter(|stage| stage.kind == Kind::Logits) {
            (stage.apply)(&self.sampling, &mut pool);
        }
        let largest = pool.largest();
        if largest == f32::NEG_INFINITY {
            return Err(NoToken::NothingAllowed);
        }
        if takes_best {
            return Ok(first_with(largest, pool.logits));
        }
        for stage in STAGES.iter().filter(|stage| stage.kind == Kind::Candidates) {
            (stage.apply)(&self.sampling, &mut pool);
        }
        pool.keep_all_if_unfiltered();
        Ok(walk(pool.kept, uniform(self.sampling.seed, given.draw)))
    }
}

impl Pool<'_> {
    fn keep_all_if_unfiltered(&mut self) {
        if self.kept.is_empty() {
            let all = (0u32..).zip(self.logits.iter());
            self.kept
                .extend(all.map(|(id, &logit)| Candidate { id, logit }));
        }
    }

    fn largest(&self) -> f32 {
        if self.kept.is_empty() {
            return largest(self.logits).unwrap_or(f32::NEG_INFINITY);
        }
        self.kept
            .iter()
            .map(|candidate| candidate.logit)
            .fold(f32::NEG_INFINITY, f32::max)
    }
}

#[cfg(test)]
mod tests;
