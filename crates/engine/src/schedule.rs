//! One step over all sequences: drop the cancelled, admit, batch, submit, collect, choose, emit.
//!
//! Pure control flow: no thread, no channel, no clock. Whoever calls [`step`] reads its inbox in
//! between and keeps the times. A step is one forward: every sequence that writes gives one row,
//! and those that still read their prompt share one chunk of at most [`CHUNK_TOKENS`].
//!
//! Stopping: the flag of every sequence in a batch is read before its forward and goes into it.
//! A forward that was cancelled committed nothing, so the sequences that were not meant give the
//! same rows again in the next step, and their replies stay the same.

use candor_backend::{
    Batch, CancelToken, Feed, Outcome, Row, RowOutput, SessionError, SlotId, Want,
};

mod admit;
mod share;

use crate::embedding::Pooling;
use crate::guard::Servable;
use crate::message::{FinishReason, TurnCode};
use crate::prefix::Computed;
use crate::request::Priority;
use crate::sampler::{NoToken, NotFinite};
use crate::sequence::{Chosen, NotChosen, Sequence};

use share::share;

/// Prompt tokens of one forward. Larger ones no longer fill a processor or a card better; Stop
/// does not wait for the end of a chunk, so it need not be smaller.
pub const CHUNK_TOKENS: usize = 512;

/// Tokens between checkpoints of a slot: what a state that cannot be cut anywhere has to compute
/// again at most.
const CHECKPOINT_TOKENS: usize = 1_024;

/// Prompt tokens of one forward of a processor while somebody writes: each token of those waits
/// for so many. A quarter of a whole chunk takes little longer in all.
const CHUNK_TOKENS_BESIDE_WRITERS: usize = 128;

/// What a step came to.
#[derive(Debug, Default)]
pub struct Progress {
    /// Rows that were committed; 0 if there was no forward, or none that counts.
    pub committed_rows: usize,
    /// Sequences that are over, with nothing more to compute. Their logs are still open.
    pub ended: Vec<Sequence>,
    /// What computes is of no further use.
    pub lost: Option<Lost>,
}

/// What a step lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The reference: its replies have failed, for this reason.
    Reference(String),
    /// A device that was held against it: the replies can go on elsewhere, from where they are.
    Device(String),
}

/// The rows of one sequence in a batch.
#[derive(Clone, Copy, Debug)]
struct Span {
    sequence_idx: usize,
    slot: SlotId,
    /// Of the sequence's ids.
    start: usize,
    end: usize,
}

/// Moves all sequences on by at most one forward. Those that end leave `sequences`.
pub fn step(servable: &mut Servable, sequences: &mut Vec<Sequence>) -> Progress {
    step_unless(servable, sequences, &mut || false)
}

/// [`step`] that uses nothing of a forward after which `is_void` says so. What that one computed
/// then stands nowhere, and all slots have to be read again.
pub(crate) fn step_unless(
    servable: &mut Servable,
    sequences: &mut Vec<Sequence>,
    is_void: &mut dyn FnMut() -> bool,
) -> Progress {
    let mut progress = Progress::default();
    stop_cancelled(sequences);
    let done = admit::admit(servable, sequences).and_then(|()| {
        let spans = spans(servable, sequences);
        if spans.is_empty() {
            return Ok(());
        }
        let batch = batch(servable, &spans, sequences);
        let cancel = cancel_token(&spans, sequences);
        match servable.forward(&batch, &cancel) {
            Ok(Outcome::Cancelled) => Ok(()),
            Ok(Outcome::Done) if is_void() => empty_all(servable),
            Ok(Outcome::Done) => {
                progress.committed_rows = batch.rows.len();
                take_outputs(servable, sequences, &spans)
            }
            Err(SessionError::StateFull { .. }) => make_room(servable, sequences, &spans),
            Err(SessionError::ContextFull { slot, .. }) => {
                let full = spans.iter().filter(|span| span.slot == slot);
                full.for_each(|span| {
                    sequences[span.sequence_idx].finish(FinishReason::ContextFull)
                });
                Ok(())
            }
            Err(error) => Err(error),
        }
    });
    if let Err(error) = done {
        progress.lost = match servable.is_reference() {
            true => fail_running(sequences, &error).map(Lost::Reference),
            false => Some(Lost::Device(error.to_string())),
        };
    }
    progress.ended = sequences
        .extract_if(.., |sequence| !sequence.is_live())
        .collect();
    progress
}

/// What ends a forward early: a person who stops, or everybody. That one of several programs goes
/// away costs the others nothing: one that came and went all the time would else keep them from
/// ever going on.
fn cancel_token(spans: &[Span], sequences: &[Sequence]) -> CancelToken {
    let members = || spans.iter().map(|span| &sequences[span.sequence_idx]);
    let all = CancelToken::all(members().map(|sequence| sequence.cancel.clone()));
    let persons = members().filter(|sequence| sequence.priority == Priority::Interactive);
    CancelToken::any(persons.map(|sequence| sequence.cancel.clone()).chain([all]))
}

fn stop_cancelled(sequences: &mut [Sequence]) {
    for sequence in sequences
        .iter_mut()
        .filter(|sequence| sequence.cancel.is_cancelled())
    {
        sequence.finish(FinishReason::Cancelled);
    }
}

/// Who computes what in this step: a row for each that writes, and a chunk for those that read, of
/// which persons are served first.
fn spans(servable: &Servable, sequences: &[Sequence]) -> Vec<Span> {
    let placed = sequences
        .iter()
        .enumerate()
        .filter(|(_, sequence)| sequence.is_live());
    let open = placed.filter_map(|(sequence_idx, sequence)| {
        let slot = sequence.slot?;
        Some(Span {
            sequence_idx,
            slot,
            start: servable.held(slot),
            end: sequence.ids.len(),
        })
    });
    let (mut spans, mut reading): (Vec<Span>, Vec<Span>) =
        open.partition(|span| !sequences[span.sequence_idx].is_reading());
    reading.sort_by_key(|span| sequences[span.sequence_idx].priority);
    let mut left = match spans.is_empty() {
        false if servable.is_reference() => CHUNK_TOKENS_BESIDE_WRITERS,
        _ => CHUNK_TOKENS,
    };
    let priority = |span: &Span| sequences[span.sequence_idx].priority;
    for readers in reading.chunk_by(|a, b| priority(a) == priority(b)) {
        let wanted: Vec<usize> = readers.iter().map(|span| span.end - span.start).collect();
        for (span, share) in readers.iter().zip(share(&wanted, left)) {
            let end = cut_where_awaited(sequences, *span, span.start + share);
            left -= end - span.start;
            if span.start < end {
                spans.push(Span { end, ..*span });
            }
        }
    }
    spans
}

/// A reader stops where another one will go its own way, so that this can begin there even where
/// a state can be cut at marks only.
fn cut_where_awaited(sequences: &[Sequence], span: Span, end: usize) -> usize {
    let marks = awaited_marks(sequences, span.slot);
    let inside = marks.filter(|mark| span.start < *mark && *mark < end);
    inside.min().unwrap_or(end)
}

/// The positions of a slot at which sequences wait to go on.
fn awaited_marks(sequences: &[Sequence], slot: SlotId) -> impl Iterator<Item = usize> {
    let awaits = move |sequence: &Sequence| match sequence.awaits {
        Some((awaited, tokens)) if awaited == slot && sequence.is_live() => Some(tokens),
        _ => None,
    };
    sequences.iter().filter_map(awaits)
}

fn batch(servable: &Servable, spans: &[Span], sequences: &[Sequence]) -> Batch {
    let best = Want::Top { k: 1 };
    // In the reference's memory nothing has to cross, and a look at all logits costs less there
    // than the sum over them that comes with the best one.
    let offers_best = !servable.is_reference() && servable.session().offers(best);
    let mut rows = Vec::with_capacity(spans.iter().map(|span| span.end - span.start).sum());
    for span in spans {
        let sequence = &sequences[span.sequence_idx];
        let ids = &sequence.ids;
        let last = match offers_best && sequence.wants_best_only() {
            // Nothing of the size of the vocabulary has to leave the device.
            true => best,
            false => Want::Logits,
        };
        let (before, last) = match sequence.pooling() {
            Some(Pooling::Mean) => (Want::Hidden, Want::Hidden),
            Some(Pooling::Last) => (Want::Nothing, Want::Hidden),
            None => (Want::Nothing, last),
        };
        for (i, &token) in (span.start..).zip(&ids[span.start..span.end]) {
            let want = if i + 1 == ids.len() { last } else { before };
            rows.push(Row {
                slot: span.slot,
                feed: Feed::Token(token),
                want,
            });
        }
    }
    Batch { rows }
}

/// Notes what was committed, then lets every sequence whose end was reached choose a token.
fn take_outputs(
    servable: &mut Servable,
    sequences: &mut [Sequence],
    spans: &[Span],
) -> Result<(), SessionError> {
    let ctx_len = servable.session().ctx_len();
    let mut outputs = 0;
    let marks: Vec<_> = sequences
        .iter()
        .filter_map(|sequence| sequence.awaits)
        .collect();
    for span in spans {
        let sequence = &mut sequences[span.sequence_idx];
        let was_prompt = sequence.is_reading();
        let ids = &sequence.ids[span.start..span.end];
        let how = match was_prompt {
            true => Computed::Read,
            false => Computed::Written,
        };
        servable.committed(span.slot, ids, how);
        let complete = span.end == sequence.ids.len();
        if was_prompt {
            sequence.say_prefill(span.end);
        }
        let crossed = span.start / CHECKPOINT_TOKENS != span.end / CHECKPOINT_TOKENS;
        let awaited = marks.contains(&(span.slot, span.end));
        if crossed || awaited || (was_prompt && complete) {
            servable.checkpoint(span.slot)?;
        }
        if let Some(pooling) = sequence.pooling() {
            let rows = match pooling {
                Pooling::Mean => span.end - span.start,
                Pooling::Last => usize::from(complete),
            };
            let given = servable.rows().outputs.get(outputs..outputs + rows);
            sequence.gather(given.unwrap_or_default(), complete);
            outputs += rows;
            continue;
        }
        if !complete {
            continue;
        }
        let token = match servable.rows().outputs.get_mut(outputs) {
            Some(RowOutput::Logits(logits)) => sequence.choose(logits),
            Some(RowOutput::Top { best, lse }) => best_of(best, *lse),
            Some(RowOutput::Hidden(_)) | None => {
                let message = String::from("the session left out logits that were asked for");
                sequence.fail(TurnCode::Internal, message);
                outputs += 1;
                continue;
            }
        };
        match token {
            Ok(chosen) => sequence.accept(chosen, ctx_len),
            Err(NotChosen::NoToken(NoToken::NotFinite(_))) if !servable.is_reference() => {
                // The reference may know better.
                let node = String::from("logits");
                return Err(SessionError::NotFinite { node });
            }
            Err(error @ NotChosen::Stuck(_)) => {
                sequence.fail(TurnCode::Stuck, error.to_string());
            }
            Err(error @ NotChosen::NoToken(NoToken::NothingAllowed)) => {
                sequence.fail(TurnCode::NothingAllowed, error.to_string());
            }
            Err(error @ NotChosen::NoToken(NoToken::NotFinite(_))) => {
                sequence.fail(TurnCode::NotFinite, error.to_string());
                // The next turn must not go on from a state that led here.
                servable.empty_slot(span.slot)?;
            }
        }
        outputs += 1;
    }
    Ok(())
}

/// The best token as the device says it, by the sampler's rules: no token where a logit is no
/// number, which shows in the sum, or where none can be chosen.
fn best_of(best: &[(u32, f32)], lse: f32) -> Result<Chosen, NotChosen> {
    match best.first() {
        Some((token, logit)) if lse.is_finite() && logit.is_finite() => Ok((*token).into()),
        other => Err(NotChosen::NoToken(NoToken::NotFinite(NotFinite {
            token: other.map_or(0, |(token, _)| *token as usize),
        }))),
    }
}

/// The pool that all slots share is used up: of what nobody writes in, the slot unused for longest
/// is emptied, and if there is nothing of the kind, the sequence that came last ends.
fn make_room(
    servable: &mut Servable,
    sequences: &mut [Sequence],
    spans: &[Span],
) -> Result<(), SessionError> {
    let is_idle = |slot: &SlotId| {
        let writes = |s: &Sequence| s.is_live() && s.slot == Some(*slot);
        !sequences.iter().any(writes)
    };
    let idle = (0..servable.slots().len()).map(SlotId).filter(is_idle);
    let holds = idle.filter(|slot| servable.held(*slot) > 0);
    if let Some(oldest) = holds.min_by_key(|slot| servable.slots()[slot.0].used) {
        servable.empty_slot(oldest)?;
    } else if let Some(last) = spans.iter().map(|span| span.sequence_idx).max() {
        sequences[last].finish(FinishReason::ContextFull);
    }
    Ok(())
}

/// What a forward left there is not to be gone on from.
fn empty_all(servable: &mut Servable) -> Result<(), SessionError> {
    for slot in (0..servable.slots().len()).map(SlotId) {
        servable.empty_slot(slot)?;
    }
    Ok(())
}

/// A forward that failed may be the fault of any of its rows, so all that hold a slot fail. Says
/// why if the session is of no further use.
fn fail_running(sequences: &mut [Sequence], error: &SessionError) -> Option<String> {
    let code = match error {
        SessionError::NotFinite { .. } => TurnCode::NotFinite,
        SessionError::DeviceLost { .. } => TurnCode::DeviceLost,
        _ => TurnCode::Internal,
    };
    for sequence in sequences
        .iter_mut()
        .filter(|sequence| sequence.slot.is_some())
    {
        sequence.fail(code, error.to_string());
    }
    match error {
        SessionError::DeviceLost { reason } => Some(reason.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
