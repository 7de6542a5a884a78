//! A session in the calling thread, for measurements and for commands that need raw logits.
//!
//! The calling thread is this session's engine thread: [`Direct`] is not `Send`, so it cannot
//! leave it. Replies for people do not come from here. The measurements run the shipped loop
//! ([`schedule::step`]) with tokens that were chosen beforehand.

use std::sync::Arc;
use std::time::{Duration, Instant};

use candor_backend::{
    Backend, Batch, CancelToken, Feed, Outcome, Row, RowOutput, SessionError, SlotId, Step, Want,
};

use crate::FinishReason;
use crate::config::{Clock, EngineConfig};
use crate::guard::{Mode, Servable, Unproven, VerdictId};
use crate::load::{
    self, At, Host, License, Live, LoadFailure, LoadOptions, LoadSpec, LoadedModel, ModelId,
    TextSide, Watch,
};
use crate::prefix::Computed;
use crate::request::{EndTokens, GenerateOptions, GenerateRequest, RequestError};
use crate::sampler::Sampling;
use crate::schedule::{self, CHUNK_TOKENS, Lost};
use crate::sequence::{End, Sequence};

/// Rows of one forward that give logits: 32 rows of the largest vocabularies take some 20 MB.
const LOGIT_ROWS_MAX: usize = 32;

/// A loaded model with its session.
pub struct Direct {
    live: Live,
    clock: Clock,
}

/// Why a direct computation gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum DirectError {
    /// The tokens cannot be computed by this model.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The session failed.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A measured reply failed.
    #[error("{0}")]
    Failed(String),
    /// Fewer tokens fit than were to be measured.
    #[error("the context is too short for this measurement")]
    ContextFull,
    /// Somebody stopped it.
    #[error("stopped")]
    Stopped,
}

/// What to measure of decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeRun {
    /// Tokens for each sequence.
    pub tokens: usize,
    /// Tokens that each sequence has in its context before.
    pub depth: usize,
    /// Sequences at once; at most the slots.
    pub parallel: usize,
}

impl Direct {
    /// Loads a model and opens a session here. A device serves if the guard accepts it.
    ///
    /// # Errors
    /// [`LoadFailure`].
    pub fn load(
        backends: &mut [Box<dyn Backend>],
        spec: &LoadSpec,
        config: &EngineConfig,
        watch: &mut Watch<'_>,
    ) -> Result<Self, LoadFailure> {
        Self::load_by(License::Guarded, backends, spec, config, watch)
    }

    /// As [`Direct::load`], but a device is measured without being judged, and everything that is
    /// reported of it has to show that: [`LoadedModel::proof`] says why.
    ///
    /// # Errors
    /// [`LoadFailure`].
    pub fn load_unproven(
        backends: &mut [Box<dyn Backend>],
        spec: &LoadSpec,
        config: &EngineConfig,
        why: Unproven,
        watch: &mut Watch<'_>,
    ) -> Result<Self, LoadFailure> {
        Self::load_by(License::Unproven(why), backends, spec, config, watch)
    }

    fn load_by(
        license: License,
        backends: &mut [Box<dyn Backend>],
        spec: &LoadSpec,
        config: &EngineConfig,
        watch: &mut Watch<'_>,
    ) -> Result<Self, LoadFailure> {
        let clock = Arc::clone(&config.clock);
        let started = clock();
        let spec = LoadSpec {
            options: LoadOptions {
                // Nothing here reads or writes text, and there is no prompt to prove anything on.
                text: TextSide::IdsOnly,
                f2: Mode::Probe,
                ..spec.options
            },
            ..spec.clone()
        };
        let mut host = DirectHost {
            spec: &spec,
            config,
            watch,
            verdicts: 0,
        };
        let prepared = load::prepare(&spec, &mut |stage, done, total| {
            host.watch(At {
                stage,
                device: None,
                done,
                total,
            })
        })?;
        let how = (ModelId(0), started);
        let live = load::place(&prepared, how, backends, license, &mut host)?;
        Ok(Self { live, clock })
    }

    #[cfg(test)]
    pub(crate) fn into_live(self) -> Live {
        self.live
    }

    /// What was loaded.
    pub fn model(&self) -> &LoadedModel {
        &self.live.info
    }

    /// Forwards all of `ids` and shows the logits of the positions from `first` on, in order.
    ///
    /// # Errors
    /// [`DirectError`]; [`DirectError::Stopped`] if `cancel` said so.
    pub fn logits(
        &mut self,
        ids: &[u32],
        first: usize,
        cancel: &CancelToken,
        show: &mut dyn FnMut(usize, &[f32]),
    ) -> Result<(), DirectError> {
        self.request(ids.to_vec(), 1)?;
        let slot = SlotId(0);
        self.servable()?.empty_slot(slot)?;
        let mut start = 0;
        while start < ids.len() {
            let most = if start < first {
                CHUNK_TOKENS.min(first - start)
            } else {
                LOGIT_ROWS_MAX
            };
            let end = ids.len().min(start + most);
            let want = if start < first {
                Want::Nothing
            } else {
                Want::Logits
            };
            let row = |&token: &u32| Row {
                slot,
                feed: Feed::Token(token),
                want,
            };
            let batch = Batch {
                rows: ids[start..end].iter().map(row).collect(),
            };
            let servable = self.servable()?;
            if servable.forward(&batch, cancel)? == Outcome::Cancelled {
                return Err(DirectError::Stopped);
            }
            servable.committed(slot, &ids[start..end], Computed::Read);
            for (i, output) in servable.rows().outputs.iter().enumerate() {
                match output {
                    RowOutput::Logits(logits) => show(start + i, logits),
                    RowOutput::Top { .. } | RowOutput::Hidden(_) => {}
                }
            }
            start = end;
        }
        Ok(())
    }

    /// How long reading a prompt of these tokens takes, from an empty context to the first token.
    ///
    /// # Errors
    /// [`DirectError`].
    pub fn time_prefill(
        &mut self,
        ids: &[u32],
        cancel: &CancelToken,
    ) -> Result<Duration, DirectError> {
        for slot in 0..self.live.info.slots {
            self.servable()?.empty_slot(SlotId(slot))?;
        }
        self.time(
            vec![(ids.to_vec(), vec![ids.first().copied().unwrap_or(0)])],
            cancel,
        )
    }

    /// How long `run.parallel` sequences take to write `run.tokens` tokens each. `token` gives
    /// the token of a sequence at a place; the ones before `run.depth` are read beforehand.
    ///
    /// # Errors
    /// [`DirectError`].
    pub fn time_decode(
        &mut self,
        run: DecodeRun,
        token: &dyn Fn(usize, usize) -> u32,
        cancel: &CancelToken,
    ) -> Result<Duration, DirectError> {
        let DecodeRun {
            tokens,
            depth,
            parallel,
        } = run;
        let ids = |sequence: usize, from: usize, to: usize| {
            (from..to)
                .map(|place| token(sequence, place))
                .collect::<Vec<_>>()
        };
        if depth > 0 {
            let context = (0..parallel).map(|s| (ids(s, 0, depth), ids(s, depth, depth + 1)));
            self.time(context.collect(), cancel)?;
        }
        // The first token goes on from what the slots hold, so every forward has one row each.
        let end = depth + 1 + tokens;
        let replies = (0..parallel).map(|s| (ids(s, 0, depth + 1), ids(s, depth + 1, end)));
        self.time(replies.collect(), cancel)
    }

    /// Runs prompts with fixed replies to their ends.
    fn time(
        &mut self,
        runs: Vec<(Vec<u32>, Vec<u32>)>,
        cancel: &CancelToken,
    ) -> Result<Duration, DirectError> {
        let mut sequences = Vec::with_capacity(runs.len());
        for (prompt, reply) in runs {
            let mut request = self.request(prompt, reply.len())?;
            request.cancel = cancel.clone();
            let tokenizer = self.live.info.tokenizer.clone();
            sequences.push(Sequence::fixed(request, tokenizer, reply));
        }
        let started = (self.clock)();
        let mut ended: Vec<Sequence> = Vec::with_capacity(sequences.len());
        while !sequences.is_empty() {
            let progress = schedule::step(self.servable()?, &mut sequences);
            if let Some(Lost::Device(reason) | Lost::Reference(reason)) = progress.lost {
                return Err(DirectError::Failed(reason));
            }
            ended.extend(progress.ended);
        }
        let now: Instant = (self.clock)();
        for sequence in &ended {
            match &sequence.end {
                Some(End::Finished(FinishReason::Length)) => {}
                Some(End::Finished(FinishReason::Cancelled)) => return Err(DirectError::Stopped),
                Some(End::Failed(_, message)) => return Err(DirectError::Failed(message.clone())),
                Some(End::Finished(_)) | None => return Err(DirectError::ContextFull),
            }
        }
        Ok(now.saturating_duration_since(started))
    }

    fn servable(&mut self) -> Result<&mut Servable, DirectError> {
        let nobody = || DirectError::Failed(String::from("nothing serves"));
        self.live.servable().ok_or_else(nobody)
    }

    fn request(
        &self,
        prompt: Vec<u32>,
        max_tokens: usize,
    ) -> Result<GenerateRequest, RequestError> {
        let options = GenerateOptions {
            ends: EndTokens::Ignore,
            ..GenerateOptions::new(prompt, Sampling::greedy(), max_tokens)
        };
        GenerateRequest::new(&self.live.info, options, CancelToken::new())
    }
}

/// The calling thread while it loads.
struct DirectHost<'a, 'b> {
    spec: &'a LoadSpec,
    config: &'a EngineConfig,
    watch: &'a mut Watch<'b>,
    verdicts: u64,
}

impl Host for DirectHost<'_, '_> {
    fn watch(&mut self, at: At<'_>) -> Step {
        match self.spec.cancel.is_cancelled() {
            true => Step::Stop,
            false => (self.watch)(at.stage, at.done, at.total),
        }
    }

    fn make_room(&mut self, needed_bytes: u64) -> Result<(), LoadFailure> {
        match (self.config.available_memory)() {
            Some(available_bytes) if needed_bytes > available_bytes => {
                Err(LoadFailure::OutOfMemory {
                    needed_bytes,
                    available_bytes,
                })
            }
            _ => Ok(()),
        }
    }

    fn give_way(&mut self) -> bool {
        false
    }

    fn clock(&self) -> Clock {
        Arc::clone(&self.config.clock)
    }

    fn today(&self) -> i64 {
        (self.config.today)()
    }

    fn verdict_id(&mut self) -> VerdictId {
        self.verdicts += 1;
        VerdictId(self.verdicts)
    }
}
