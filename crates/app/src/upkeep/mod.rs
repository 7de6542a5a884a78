//! What is done for a card that serves while nobody waits for it: after the machine has slept it is
//! proven again before it writes, and while nobody is there it is held against the processor on what
//! was written last.

mod kept;
mod watch;

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use candor_backend::CancelToken;
use candor_engine::ModelId;
use candor_engine::guard::{Conditions, HOUR, NoAudit, Power};

pub(crate) use kept::Audits;
pub(crate) use watch::begin;

/// What was seen, and what was done.
#[derive(Default)]
pub(crate) struct Upkeep {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When somebody last did something.
    stirred: Option<Instant>,
    /// Tokens of the conversation that was written last; 0 once it was audited.
    written: usize,
    /// When audits ended, and how long they took: those of an hour.
    spent: VecDeque<(Instant, Duration)>,
    /// The audit that runs.
    running: Option<CancelToken>,
    /// What audits have shown of the card that serves this model.
    audits: Option<(ModelId, Audits)>,
}

impl Upkeep {
    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment, so a panic leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody is there. An audit that runs ends.
    pub(crate) fn stir(&self, now: Instant) {
        let mut state = self.state();
        state.stirred = Some(now);
        if let Some(running) = state.running.take() {
            running.cancel();
        }
    }

    /// A reply has ended, in a conversation of so many tokens.
    pub(crate) fn written(&self, tokens: usize, now: Instant) {
        let mut state = self.state();
        (state.stirred, state.written) = (Some(now), tokens);
    }

    /// What audits have shown of the card that serves a model.
    pub(crate) fn audits(&self, model: ModelId) -> Option<Audits> {
        let audits = self.state().audits;
        audits
            .filter(|(of, _)| *of == model)
            .map(|(_, audits)| audits)
    }

    /// Takes up an audit that `cancel` ends, if there may be one now, and says how long it may take.
    fn take_up(
        &self,
        cancel: &CancelToken,
        now: Instant,
        power: Power,
    ) -> Result<Duration, NoAudit> {
        let mut state = self.state();
        if state.running.is_some() {
            return Err(NoAudit::InUse);
        }
        let is_old = |ended: Instant| now.saturating_duration_since(ended) >= HOUR;
        state.spent.retain(|(ended, _)| !is_old(*ended));
        let spent = state.spent.iter().map(|(_, took)| *took).sum();
        // Nobody has done anything since the start.
        let stirred = *state.stirred.get_or_insert(now);
        let conditions = Conditions {
            idle: now.saturating_duration_since(stirred),
            power,
            tokens: state.written,
            spent,
            expected: state.spent.back().map_or(Duration::ZERO, |(_, took)| *took),
        };
        conditions.allow()?;
        state.running = Some(cancel.clone());
        Ok(Conditions::budget().saturating_sub(spent))
    }
}

#[cfg(test)]
mod tests;
