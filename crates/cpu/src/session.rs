//! A session: validates a batch, walks the plan over it, and moves the slots on.

use std::collections::VecDeque;
use std::sync::Arc;

use candor_arch::Plan;
use candor_backend::{
    Arithmetic, Batch, CancelToken, Feed, KvType, Numerics, Outcome, Rows, Session, SessionError,
    SlotId, TICKETS_MAX, Tap, Ticket, Want, runs, tokens_per_slot,
};

use crate::forward::{Forward, Machine, ROWS_MAX, Stopped, Workspace};
use crate::ops::rope;
use crate::simd::{Kernels, Panel};
use crate::state::State;
use crate::threads::Pool;
use crate::values::Values;
use crate::weights::{PackedWeights, Weights};

/// A session on the CPU. It computes in `submit`.
pub(crate) struct CpuSession {
    pool: Arc<Pool>,
    kernels: &'static Kernels,
    weights: Arc<Weights>,
    packed: Option<Arc<PackedWeights>>,
    plan: Plan,
    work: Workspace,
    state: State,
    next_ticket: u64,
    open: VecDeque<Finished>,
    /// Outputs that were collected, to be filled again.
    spare: Vec<Rows>,
    /// Threads that compute for it at most.
    threads_most: usize,
}

/// A forward that waits to be collected.
struct Finished {
    ticket: u64,
    outcome: Result<Outcome, SessionError>,
    rows: Rows,
}

impl CpuSession {
    pub(crate) fn new(
        pool: Arc<Pool>,
        kernels: &'static Kernels,
        weights: Arc<Weights>,
        packed: Option<Arc<PackedWeights>>,
        plan: Plan,
        state: State,
    ) -> Self {
        let graph = &weights.model.graph;
        let work = Workspace {
            values: Values::new(graph, &plan),
            threads: vec![Vec::new(); pool.threads()],
            panel: Panel::new(0, 0),
            inner: [Vec::new(), Vec::new()],
            angles: rope::angles(graph, &weights, state.paging().ctx_len()),
        };
        Self {
            pool,
            kernels,
            weights,
            packed,
            plan,
            work,
            state,
            next_ticket: 0,
            open: VecDeque::new(),
            spare: Vec::new(),
            threads_most: usize::MAX,
        }
    }

    fn validate(&self, batch: &Batch) -> Result<(), SessionError> {
        if batch.rows.is_empty() {
            return Err(SessionError::EmptyBatch);
        }
        let vocabulary = self.vocabulary();
        for row in &batch.rows {
            self.state.paging().know(row.slot)?;
            let Feed::Token(token) = row.feed;
            if token as usize >= vocabulary {
                return Err(SessionError::UnknownToken { token, vocabulary });
            }
        }
        Ok(())
    }

    /// Computes a batch that was validated, and commits it if it came to its end.
    fn compute(
        &mut self,
        batch: &Batch,
        cancel: &CancelToken,
        tap: Option<&mut dyn Tap>,
        rows: &mut Rows,
    ) -> Result<Outcome, SessionError> {
        rows.outputs.clear();
        let wanted = tokens_per_slot(&batch.rows);
        self.state.paging_mut().reserve(&wanted)?;
        self.pool.limit(self.threads_most);
        match self.walk(batch, cancel, tap, rows) {
            Ok(()) => {
                self.state.paging_mut().commit(&wanted);
                Ok(Outcome::Done)
            }
            Err(stopped) => {
                self.state.paging_mut().roll_back(&wanted);
                rows.outputs.clear();
                match stopped {
                    Stopped::Cancelled => Ok(Outcome::Cancelled),
                    Stopped::Failed(error) => Err(error),
                }
            }
        }
    }

    fn walk(
        &mut self,
        batch: &Batch,
        cancel: &CancelToken,
        mut tap: Option<&mut dyn Tap>,
        rows: &mut Rows,
    ) -> Result<(), Stopped> {
        let mut positions: Vec<usize> = (0..self.state.paging().slots())
            .map(|slot| self.state.paging().position(SlotId(slot)))
            .collect();
        for part in batch.rows.chunks(ROWS_MAX) {
            let runs = runs(part, &mut positions);
            let mut forward = Forward {
                machine: Machine {
                    pool: &self.pool,
                    kernels: self.kernels,
                    weights: &self.weights,
                    packed: self.packed.as_deref(),
                    plan: &self.plan,
                },
                cancel,
                work: &mut self.work,
                state: &mut self.state,
                rows: part,
                runs: &runs,
            };
            match &mut tap {
                Some(tap) => forward.run(&mut rows.outputs, Some(&mut **tap))?,
                None => forward.run(&mut rows.outputs, None)?,
            }
        }
        Ok(())
    }
}

impl Session for CpuSession {
    fn submit(&mut self, batch: &Batch, cancel: &CancelToken) -> Result<Ticket, SessionError> {
        if self.open.len() >= TICKETS_MAX {
            return Err(SessionError::BadTicket);
        }
        self.validate(batch)?;
        // Fails here where the batch does not fit; what it made room for is kept for `compute`.
        let wanted = tokens_per_slot(&batch.rows);
        self.state.paging_mut().reserve(&wanted)?;
        let mut rows = self.spare.pop().unwrap_or_default();
        let outcome = self.compute(batch, cancel, None, &mut rows);
        self.next_ticket += 1;
        self.open.push_back(Finished {
            ticket: self.next_ticket,
            outcome,
            rows,
        });
        Ok(Ticket(self.next_ticket))
    }

    fn collect(&mut self, ticket: Ticket, rows: &mut Rows) -> Result<Outcome, SessionError> {
        let at = self
            .open
            .iter()
            .position(|finished| finished.ticket == ticket.0);
        let finished = at
            .and_then(|at| self.open.remove(at))
            .ok_or(SessionError::BadTicket)?;
        self.spare.push(std::mem::replace(rows, finished.rows));
        self.spare.truncate(TICKETS_MAX);
        finished.outcome
    }

    fn tapped(
        &mut self,
        batch: &Batch,
        (tap, cancel): (&mut dyn Tap, &CancelToken),
        rows: &mut Rows,
    ) -> Result<Outcome, SessionError> {
        self.validate(batch)?;
        self.compute(batch, cancel, Some(tap), rows)
    }

    fn ways(&self) -> Vec<usize> {
        vec![self.ctx_len()]
    }

    /// There is one way.
    fn take_way(&mut self, _context: usize) {}

    fn at_ease(&mut self, threads: usize) {
        self.threads_most = threads;
    }

    fn offers(&self, want: Want) -> bool {
        match want {
            Want::Nothing | Want::Logits | Want::Hidden => true,
            Want::Top { k } => k <= self.vocabulary(),
        }
    }

    fn position(&self, slot: SlotId) -> usize {
        self.state.paging().position(slot)
    }

    fn ctx_len(&self) -> usize {
        self.state.paging().ctx_len()
    }

    fn slots(&self) -> usize {
        self.state.paging().slots()
    }

    fn vocabulary(&self) -> usize {
        self.weights.model.graph.hparams.vocabulary
    }

    fn seek(&mut self, slot: SlotId, want: usize) -> Result<usize, SessionError> {
        self.state.paging_mut().seek(slot, want)
    }

    fn checkpoint(&mut self, slot: SlotId) -> Result<(), SessionError> {
        self.state.paging_mut().checkpoint(slot)
    }

    fn fork(&mut self, from: SlotId, to: SlotId, len: usize) -> Result<usize, SessionError> {
        self.state.paging_mut().fork(from, to, len)
    }

    fn reset(&mut self, slot: SlotId) -> Result<(), SessionError> {
        self.state.paging_mut().seek(slot, 0).map(|_| ())
    }

    fn numerics(&self) -> Numerics {
        let linear = match self.packed {
            Some(_) => Arithmetic::Q8Block32,
            None => Arithmetic::F32,
        };
        let kv = match self.state.kv() {
            KvType::F32 => Arithmetic::F32,
            KvType::F16 => Arithmetic::F16,
            KvType::Q8_0 => Arithmetic::Q8Block32,
        };
        Numerics {
            prefill: linear,
            decode: linear,
            kv,
        }
    }
}
