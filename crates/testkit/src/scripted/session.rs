//! Forwards, as scripted.

use std::collections::VecDeque;

use candor_backend::{
    Arithmetic, Batch, CancelToken, Feed, Numerics, OpenOptions, Outcome, RowOutput, Rows, Session,
    SessionError, SlotId, TICKETS_MAX, Tap, Ticket, Want,
};

use super::Script;
use super::plan::Fault;

pub(super) struct ScriptedSession {
    script: Script,
    options: OpenOptions,
    vocabulary: usize,
    slots: Vec<Vec<u32>>,
    open: VecDeque<(u64, Outcome, Vec<RowOutput>)>,
    tickets: u64,
}

impl ScriptedSession {
    pub(super) fn new(script: Script, options: OpenOptions, vocabulary: usize) -> Self {
        {
            let counts = &mut script.lock().counts;
            counts.sessions_alive += 1;
            counts.sessions_opened += 1;
        }
        let slots = vec![Vec::new(); options.slots_max];
        Self {
            script,
            options,
            vocabulary,
            slots,
            open: VecDeque::new(),
            tickets: 0,
        }
    }

    fn slot(&self, slot: SlotId) -> Result<&Vec<u32>, SessionError> {
        let slots = self.slots.len();
        self.slots
            .get(slot.0)
            .ok_or(SessionError::UnknownSlot { slot, slots })
    }

    fn check(&self, batch: &Batch) -> Result<(), SessionError> {
        if batch.rows.is_empty() {
            return Err(SessionError::EmptyBatch);
        }
        if self.open.len() == TICKETS_MAX {
            return Err(SessionError::BadTicket);
        }
        for row in &batch.rows {
            let Feed::Token(token) = row.feed;
            let vocabulary = self.vocabulary;
            if token as usize >= vocabulary {
                return Err(SessionError::UnknownToken { token, vocabulary });
            }
            let position = self.slot(row.slot)?.len();
            let asked = batch
                .rows
                .iter()
                .filter(|other| other.slot == row.slot)
                .count();
            let (slot, ctx_len) = (row.slot, self.options.ctx_len);
            if position + asked > ctx_len {
                return Err(SessionError::ContextFull {
                    slot,
                    position,
                    ctx_len,
                    asked,
                });
            }
        }
        let used: usize = self.slots.iter().map(Vec::len).sum();
        let (asked, free) = (
            batch.rows.len(),
            self.options.state_tokens.saturating_sub(used),
        );
        if asked > free {
            return Err(SessionError::StateFull { asked, free });
        }
        Ok(())
    }

    fn compute(&mut self, batch: &Batch, not_a_number: bool) -> Vec<RowOutput> {
        let mut outputs = Vec::new();
        for row in &batch.rows {
            let Feed::Token(token) = row.feed;
            let context = &mut self.slots[row.slot.0];
            context.push(token);
            if row.want == Want::Nothing {
                continue;
            }
            let mut logits = self.script.lock().plan.logits(context, self.vocabulary);
            if not_a_number {
                logits.fill(f32::NAN);
            }
            outputs.push(match row.want {
                Want::Top { k } => top(&logits, k),
                Want::Hidden => RowOutput::Hidden(logits),
                Want::Nothing | Want::Logits => RowOutput::Logits(logits),
            });
        }
        outputs
    }
}

fn top(logits: &[f32], k: usize) -> RowOutput {
    let mut best: Vec<(u32, f32)> = (0u32..).zip(logits.iter().copied()).collect();
    best.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    best.truncate(k);
    let lse = logits.iter().map(|logit| logit.exp()).sum::<f32>().ln();
    RowOutput::Top { best, lse }
}

impl Session for ScriptedSession {
    fn submit(&mut self, batch: &Batch, cancel: &CancelToken) -> Result<Ticket, SessionError> {
        let fault = {
            let mut state = self.script.lock();
            let forward = state.counts.submitted;
            state.counts.submitted += 1;
            state.batches.push(batch.clone());
            state.plan.take_fault(forward)
        };
        self.check(batch)?;
        let (mut after, mut not_a_number): (Option<Box<dyn FnOnce() + Send>>, _) = (None, false);
        match fault {
            Some(Fault::Error(error)) => return Err(error),
            Some(Fault::Panic) => panic!("a planned panic in a forward"),
            Some(Fault::NotANumber) => not_a_number = true,
            Some(Fault::Stall) => self.script.stall(|| cancel.is_cancelled()),
            Some(Fault::Before(call)) => call(),
            Some(Fault::After(call)) => after = Some(call),
            None => {}
        }
        self.tickets += 1;
        let (outcome, outputs) = if cancel.is_cancelled() {
            (Outcome::Cancelled, Vec::new())
        } else {
            let outputs = self.compute(batch, not_a_number);
            let counts = &mut self.script.lock().counts;
            counts.committed += 1;
            counts.rows.push(batch.rows.len());
            (Outcome::Done, outputs)
        };
        if let Some(call) = after {
            call();
        }
        self.open.push_back((self.tickets, outcome, outputs));
        Ok(Ticket(self.tickets))
    }

    fn collect(&mut self, ticket: Ticket, rows: &mut Rows) -> Result<Outcome, SessionError> {
        match self.open.pop_front() {
            Some((id, outcome, outputs)) if id == ticket.0 => {
                rows.outputs = outputs;
                Ok(outcome)
            }
            _ => Err(SessionError::BadTicket),
        }
    }

    fn tapped(
        &mut self,
        batch: &Batch,
        (_tap, cancel): (&mut dyn Tap, &CancelToken),
        rows: &mut Rows,
    ) -> Result<Outcome, SessionError> {
        let ticket = self.submit(batch, cancel)?;
        self.collect(ticket, rows)
    }

    fn ways(&self) -> Vec<usize> {
        let ways = self.script.lock().plan.ways.clone();
        match ways.is_empty() {
            true => vec![self.options.ctx_len],
            false => ways,
        }
    }

    /// All ways give what the script says.
    fn take_way(&mut self, _context: usize) {}

    fn offers(&self, want: Want) -> bool {
        want != Want::Hidden || self.script.lock().plan.offers_rows
    }

    fn position(&self, slot: SlotId) -> usize {
        self.slots[slot.0].len()
    }

    fn ctx_len(&self) -> usize {
        self.options.ctx_len
    }

    fn slots(&self) -> usize {
        self.slots.len()
    }

    fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    fn seek(&mut self, slot: SlotId, want: usize) -> Result<usize, SessionError> {
        let held = self.slot(slot)?.len();
        let cut = self.script.lock().plan.cut_tokens;
        // Staying where it is is no cut.
        let reached = if want >= held {
            held
        } else {
            want - want % cut
        };
        self.slots[slot.0].truncate(reached);
        Ok(reached)
    }

    fn checkpoint(&mut self, slot: SlotId) -> Result<(), SessionError> {
        self.slot(slot).map(|_| ())
    }

    fn fork(&mut self, from: SlotId, to: SlotId, len: usize) -> Result<usize, SessionError> {
        self.slot(to)?;
        let source = self.slot(from)?;
        let copy = source[..len.min(source.len())].to_vec();
        let copied = copy.len();
        self.slots[to.0].clear();
        let used: usize = self.slots.iter().map(Vec::len).sum();
        let free = self.options.state_tokens.saturating_sub(used);
        if copied > free {
            let asked = copied;
            return Err(SessionError::StateFull { asked, free });
        }
        self.slots[to.0] = copy;
        Ok(copied)
    }

    fn reset(&mut self, slot: SlotId) -> Result<(), SessionError> {
        self.slot(slot)?;
        self.slots[slot.0].clear();
        Ok(())
    }

    fn numerics(&self) -> Numerics {
        Numerics {
            prefill: Arithmetic::F32,
            decode: self.script.lock().plan.decode,
            kv: Arithmetic::F32,
        }
    }
}

impl Drop for ScriptedSession {
    fn drop(&mut self) {
        self.script.lock().counts.sessions_alive -= 1;
    }
}
