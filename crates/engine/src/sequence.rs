//! One reply in the making: ids, phase, and the way from a token to text.

use std::sync::Arc;
use std::time::{Duration, Instant};

use candor_backend::{CancelToken, RowOutput, SlotId};
use candor_text::{Channels, Detokenizer, StopMatcher, Tokenizer};

use crate::constraint::{Follower, Stuck};
use crate::embedding::{Gathered, Pooling};
use crate::guard::{Report, Served};
use crate::message::{FinishReason, Stats, TurnCode};
use crate::prefix::Reuse;
use crate::repetition::Repetition;
use crate::request::{EndTokens, GenerateRequest, Priority};
use crate::sampler::{Given, LogprobScratch, Logprobs, NoToken, Sampler};
use crate::turn_log::{TurnState, TurnWriter};

/// One reply in the making. Made of a [`GenerateRequest`], moved on by
/// [`step`](crate::schedule::step).
#[derive(Debug)]
pub struct Sequence {
    /// The prompt, then what was written. The last may not be computed yet.
    pub(crate) ids: Vec<u32>,
    prompt_len: usize,
    max_tokens: usize,
    pub(crate) cancel: CancelToken,
    pub(crate) priority: Priority,
    /// None while it waits for a slot.
    pub(crate) slot: Option<SlotId>,
    /// While it waits: somebody reads its beginning in this slot, so many tokens.
    pub(crate) awaits: Option<(SlotId, usize)>,
    /// What it may take over from what was computed before.
    pub(crate) reuse: Reuse,
    /// Tokens that the slot held already.
    cached: usize,
    /// What computes it, once it has a slot.
    served: Option<Served>,
    /// Whether it waits for what computes to be proven on its prompt.
    pub(crate) awaits_proof: bool,
    /// Whether its context is being read: the prompt, or all of it after a move.
    reading: bool,
    /// Set when it is over; nothing is computed for it then.
    pub(crate) end: Option<End>,
    chooser: Chooser,
    text: Text,
    /// Not looked at here: the schedule knows no clock.
    pub(crate) times: Times,
}

/// How a sequence ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Well, or stopped.
    Finished(FinishReason),
    /// With an error.
    Failed(TurnCode, String),
}

/// Where the next token comes from.
#[derive(Debug)]
enum Chooser {
    Drawn(Box<Drawn>),
    /// Given beforehand: measurements run the shipped loop without choosing.
    Fixed(Vec<u32>),
    /// Nowhere: one vector of what was read is wanted.
    Embedding(Gathered),
}

/// A sampler and what it has to tell.
#[derive(Debug)]
struct Drawn {
    sampler: Sampler,
    /// How many likely tokens are told beside each one.
    top_logprobs: Option<usize>,
    scratch: LogprobScratch,
    /// What the reply has to look like.
    follower: Option<Follower>,
}

/// A token that was chosen.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) token: u32,
    /// How likely it was, if that is to be told.
    pub(crate) logprobs: Option<Box<Logprobs>>,
    /// Whether nothing more may come.
    completes: bool,
}

/// Why no token was chosen.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum NotChosen {
    #[error(transparent)]
    NoToken(#[from] NoToken),
    #[error(transparent)]
    Stuck(#[from] Stuck),
}

impl From<u32> for Chosen {
    fn from(token: u32) -> Self {
        Self {
            token,
            logprobs: None,
            completes: false,
        }
    }
}

/// From tokens to the log.
#[derive(Debug)]
struct Text {
    tokenizer: Arc<Tokenizer>,
    channels: Channels,
    detokenizer: Detokenizer,
    stop: StopMatcher,
    /// Which one was written.
    stopped_by: Option<usize>,
    ends: EndTokens,
    writer: TurnWriter,
    repetition: Repetition,
    /// Whether "waiting" was said.
    said_waiting: bool,
}

/// When things happened; kept by whoever has a clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    pub(crate) asked: Option<Instant>,
    pub(crate) started: Option<Instant>,
    pub(crate) first: Option<Instant>,
}

impl Sequence {
    /// A sequence that waits for a slot.
    pub fn new(request: GenerateRequest, tokenizer: Arc<Tokenizer>) -> Self {
        let drawn = || {
            Box::new(Drawn {
                sampler: request.sampler,
                top_logprobs: request.top_logprobs,
                scratch: LogprobScratch::default(),
                follower: request.follower,
            })
        };
        let chooser = match request.pooling {
            Some(pooling) => Chooser::Embedding(Gathered::new(pooling)),
            None => Chooser::Drawn(drawn()),
        };
        let text = Text {
            tokenizer,
            channels: Channels::new(),
            detokenizer: Detokenizer::new(),
            stop: request.stop,
            stopped_by: None,
            ends: request.ends,
            writer: request.writer,
            repetition: Repetition::new(),
            said_waiting: false,
        };
        Self {
            prompt_len: request.prompt.len(),
            ids: request.prompt,
            max_tokens: request.max_tokens,
            cancel: request.cancel,
            priority: request.priority,
            slot: None,
            awaits: None,
            reuse: request.reuse,
            cached: 0,
            served: None,
            awaits_proof: false,
            reading: true,
            end: None,
            chooser,
            text,
            times: Times::default(),
        }
    }

    /// A sequence that writes these tokens whatever the model says.
    pub(crate) fn fixed(
        request: GenerateRequest,
        tokenizer: Arc<Tokenizer>,
        reply: Vec<u32>,
    ) -> Self {
        let mut sequence = Self::new(request, tokenizer);
        sequence.max_tokens = reply.len();
        sequence.chooser = Chooser::Fixed(reply);
        sequence
    }

    /// Tokens written so far.
    pub fn generated(&self) -> usize {
        self.ids.len() - self.prompt_len
    }

    /// Also stops when `cancel` does.
    pub(crate) fn also_stopped_by(&mut self, cancel: &CancelToken) {
        self.cancel = CancelToken::any([self.cancel.clone(), cancel.clone()]);
    }

    pub(crate) fn is_live(&self) -> bool {
        self.end.is_none()
    }

    pub(crate) fn finish(&mut self, reason: FinishReason) {
        self.end.get_or_insert(End::Finished(reason));
    }

    pub(crate) fn fail(&mut self, code: TurnCode, message: String) {
        self.end.get_or_insert(End::Failed(code, message));
    }

    pub(crate) fn place(&mut self, slot: SlotId, cached: usize, served: Served) {
        self.slot = Some(slot);
        self.reading = true;
        if let Chooser::Embedding(gathered) = &mut self.chooser {
            gathered.clear();
        }
        if let Some(before) = self.served {
            // Moved: what was computed elsewhere before is not in this context.
            self.served = Some(Served {
                moved_at: before.moved_at,
                ..served
            });
        } else {
            self.cached = cached;
            self.served = Some(served);
            self.text.writer.state(TurnState::Served(served));
        }
        self.say_prefill(cached);
    }

    /// Gives its slot up because what computed does so no more. Says so, if anything of it was
    /// computed there.
    pub(crate) fn move_to(&mut self, served: Served, reason: &str) {
        self.slot = None;
        self.awaits_proof = false;
        if self.served.is_some() {
            let moved_at = Some(self.generated());
            let served = Served { moved_at, ..served };
            self.served = Some(served);
            self.text.writer.moved(reason.to_owned(), served);
        }
    }

    /// Says how far the proof on its prompt is.
    pub(crate) fn say_proving(&mut self, done: usize, total: usize) {
        self.text.writer.state(TurnState::Proving { done, total });
    }

    /// Says that what computes was proven on its prompt.
    pub(crate) fn say_proven(&mut self, report: Arc<Report>) {
        self.awaits_proof = false;
        self.text.writer.proven(report);
    }

    pub(crate) fn prompt(&self) -> &[u32] {
        &self.ids[..self.prompt_len]
    }

    /// Whether its context is being read.
    pub(crate) fn is_reading(&self) -> bool {
        self.reading
    }

    pub(crate) fn say_waiting(&mut self) {
        if !std::mem::replace(&mut self.text.said_waiting, true) {
            self.text.writer.state(TurnState::Waiting);
        }
    }

    pub(crate) fn say_prefill(&mut self, done: usize) {
        let state = TurnState::Prefill {
            done,
            total: self.ids.len(),
        };
        self.text.writer.state(state);
    }

    /// Chooses the token after the present last one.
    pub(crate) fn choose(&mut self, logits: &mut [f32]) -> Result<Chosen, NotChosen> {
        let draw = self.generated();
        match &mut self.chooser {
            Chooser::Drawn(drawn) => drawn.choose(logits, &self.ids, draw as u64),
            Chooser::Fixed(reply) => Ok(reply[draw].into()),
            Chooser::Embedding(_) => Err(NoToken::NothingAllowed.into()),
        }
    }

    /// Whether the best token is all that it has to know of a row.
    pub(crate) fn wants_best_only(&self) -> bool {
        match &self.chooser {
            Chooser::Drawn(drawn) => {
                let is_free = drawn.top_logprobs.is_none() && drawn.follower.is_none();
                is_free && drawn.sampler.takes_best()
            }
            Chooser::Fixed(_) | Chooser::Embedding(_) => false,
        }
    }

    /// How what is read becomes a vector, if one is wanted.
    pub(crate) fn pooling(&self) -> Option<Pooling> {
        match &self.chooser {
            Chooser::Embedding(gathered) => Some(gathered.pooling()),
            Chooser::Drawn(_) | Chooser::Fixed(_) => None,
        }
    }

    /// Takes what rows gave for its vector, and ends with it at the last one.
    pub(crate) fn gather(&mut self, rows: &[RowOutput], is_complete: bool) {
        if let Chooser::Embedding(gathered) = &mut self.chooser {
            gathered.take(rows);
            if is_complete {
                self.text.writer.embedding(gathered.finish());
                self.finish(FinishReason::Stop);
            }
        }
    }

    /// Takes a chosen token into the reply, and notes the end if this is it.
    pub(crate) fn accept(&mut self, chosen: Chosen, ctx_len: usize) {
        let token = chosen.token;
        if self.text.ends == EndTokens::Heed && self.text.tokenizer.is_end(token) {
            return self.finish(FinishReason::Stop);
        }
        if std::mem::take(&mut self.reading) {
            self.text.writer.state(TurnState::Decode);
        }
        self.ids.push(token);
        let completes = chosen.completes;
        if self.text.write(chosen) {
            self.finish(FinishReason::StopString);
        } else if completes {
            self.finish(FinishReason::Stop);
        } else if self.generated() >= self.max_tokens {
            self.finish(FinishReason::Length);
        } else if self.ids.len() > ctx_len {
            self.finish(FinishReason::ContextFull);
        }
    }

    /// Notes the times that a step took from `before` to `after`.
    pub(crate) fn observe(&mut self, before: Instant, after: Instant) {
        if self.slot.is_some() {
            self.times.started.get_or_insert(before);
        }
        if self.generated() > 0 {
            self.times.first.get_or_insert(after);
        }
    }

    /// Writes the terminal event. A sequence that was not at its end failed, as `otherwise` says.
    pub(crate) fn close(mut self, now: Instant, otherwise: impl FnOnce() -> (TurnCode, String)) {
        let stats = self.stats(now);
        self.text.flush();
        let failed = || {
            let (code, message) = otherwise();
            End::Failed(code, message)
        };
        match self.end.take().unwrap_or_else(failed) {
            End::Finished(reason) => self.text.writer.finish(reason, stats),
            End::Failed(code, message) => self.text.writer.fail(code, message),
        }
    }

    fn stats(&self, now: Instant) -> Stats {
        let Times {
            asked,
            started,
            first,
        } = self.times;
        let ms = |from: Option<Instant>, to: Option<Instant>| match (from, to) {
            (Some(from), Some(to)) => to.saturating_duration_since(from),
            _ => Duration::ZERO,
        };
        let in_ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        Stats {
            prompt_tokens: self.prompt_len,
            cached_tokens: self.cached,
            prefill_ms: in_ms(ms(started, first.or(Some(now)))),
            generated_tokens: self.generated(),
            decode_ms: in_ms(ms(first, Some(now))),
            time_to_first_token_ms: in_ms(ms(asked, first)),
            served: self.served.unwrap_or_default(),
            stopped_by: self.text.stopped_by,
        }
    }
}

impl Drawn {
    fn choose(
        &mut self,
        logits: &mut [f32],
        history: &[u32],
        draw: u64,
    ) -> Result<Chosen, NotChosen> {
        if self.top_logprobs.is_some() {
            self.scratch.keep(logits);
        }
        let allowed = match &mut self.follower {
            Some(follower) => Some(follower.allowed()?),
            None => None,
        };
        let given = Given {
            history,
            draw,
            allowed,
        };
        let token = self.sampler.next(logits, given)?;
        let completes = match &mut self.follower {
            Some(follower) => follower.push(token)?,
            None => false,
        };
        let told = |top| Box::new(self.scratch.of(token, top));
        Ok(Chosen {
            token,
            logprobs: self.top_logprobs.map(told),
            completes,
        })
    }
}

impl Text {
    /// Writes a token and says whether it completed a stop string.
    fn write(&mut self, chosen: Chosen) -> bool {
        let Chosen {
            token, logprobs, ..
        } = chosen;
        let piece = self.channels.show(&self.tokenizer, token);
        let step = self.stop.push(self.detokenizer.push(&piece));
        self.writer.token(token, step.text, logprobs);
        if let Some(repeated) = self.repetition.push(token) {
            self.writer.repeats(repeated);
        }
        self.stopped_by = step.matched;
        step.matched.is_some()
    }

    /// Writes what was held back: half a character becomes one replacement sign.
    fn flush(&mut self) {
        let step = self.stop.push(self.detokenizer.finish());
        let mut text = step.text;
        text.push_str(&self.stop.finish());
        self.writer.tail(text);
    }
}
