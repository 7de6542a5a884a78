//! A session on the card's own thread: validates a batch, enqueues it, and gives its results once
//! the card has them. The engine holds it from afar (`card/session.rs`).

use std::collections::VecDeque;
use std::rc::Rc;

use candor_backend::paging::{Paging, Store};
use candor_backend::{
    Arithmetic, Batch, CancelToken, Feed, LoadError, Numerics, Outcome, Rows, Session,
    SessionError, SlotId, TICKETS_MAX, Tap, Ticket, Want, tokens_per_slot,
};

use crate::device::Fault;
use crate::enqueue::{Ended, Enqueue, buckets};
use crate::machine::{Base, Blueprint, Machine};
use crate::outputs::{Outputs, TOP_MAX};
use crate::state::DeviceStore;

/// A session on a card.
pub(crate) struct CudaSession {
    // Waits for the card before anything that it may use is given back.
    machine: Machine,
    paging: Paging<DeviceStore>,
    next_ticket: u64,
    open: VecDeque<Open>,
    /// Not in use by a forward.
    spare: Vec<Outputs>,
    /// The least context that a few rows are computed for.
    way: usize,
    base: Rc<Base>,
}

/// What does not change of a session, for whoever holds it from afar.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) ctx_len: usize,
    pub(crate) slots: usize,
    pub(crate) vocabulary: usize,
    pub(crate) ways: Vec<usize>,
    pub(crate) numerics: Numerics,
}

impl About {
    /// What the card answers itself.
    pub(crate) fn offers(&self, want: Want) -> bool {
        match want {
            Want::Nothing | Want::Logits => true,
            Want::Hidden => false,
            Want::Top { k } => k <= self.vocabulary.min(TOP_MAX),
        }
    }
}

/// A forward that was submitted.
struct Open {
    ticket: u64,
    /// For each slot, where it stood before and where it stands after.
    moved: Vec<(SlotId, usize, usize)>,
    /// What was taken from the card already.
    rows: Rows,
    state: Computing,
}

enum Computing {
    /// The card is at it, or will be.
    Under(Outputs),
    /// It has ended.
    Ended(Result<Outcome, SessionError>),
}

impl Open {
    fn touches(&self, slots: impl Fn(SlotId) -> bool) -> bool {
        self.moved.iter().any(|(slot, ..)| slots(*slot))
    }
}

impl CudaSession {
    pub(crate) fn new(
        base: Rc<Base>,
        machine: Machine,
        paging: Paging<DeviceStore>,
    ) -> Result<Self, Fault> {
        let outputs = || Outputs::new(&base.device);
        let spare: Result<Vec<_>, Fault> =
            std::iter::repeat_with(outputs).take(TICKETS_MAX).collect();
        Ok(Self {
            machine,
            paging,
            next_ticket: 0,
            open: VecDeque::new(),
            spare: spare?,
            way: 0,
            base,
        })
    }

    /// Takes the memory for a session and readies it.
    pub(crate) fn open(base: &Rc<Base>, blueprint: Blueprint) -> Result<Self, LoadError> {
        let (machine, paging) = Machine::new(base, blueprint)?;
        Ok(Self::new(Rc::clone(base), machine, paging)?)
    }

    /// What does not change of it.
    pub(crate) fn about(&self) -> About {
        About {
            ctx_len: self.ctx_len(),
            slots: self.slots(),
            vocabulary: self.vocabulary(),
            ways: self.ways(),
            numerics: self.numerics(),
        }
    }

    /// [`Session::collect`], unless the forward is not wanted any more once the card has done it:
    /// then it counts as cancelled.
    pub(crate) fn collect_if(
        &mut self,
        ticket: Ticket,
        rows: &mut Rows,
        wanted: &dyn Fn() -> bool,
    ) -> Result<Outcome, SessionError> {
        let at = self.open.iter().position(|open| open.ticket == ticket.0);
        let open = at.and_then(|at| Some((at, self.open.remove(at)?)));
        let (at, mut open) = open.ok_or(SessionError::BadTicket)?;
        self.conclude(&mut open, at, wanted);
        *rows = open.rows;
        match open.state {
            Computing::Ended(ended) => ended,
            Computing::Under(_) => Err(SessionError::BadTicket),
        }
    }

    /// Takes back a forward that was submitted.
    pub(crate) fn take_back(&mut self, ticket: Ticket) {
        // How it ended is of no interest any more, and a lost device is seen at the next forward.
        let _ = self.collect_if(ticket, &mut Rows::default(), &|| false);
    }

    /// [`Session::tapped`] likewise.
    pub(crate) fn tapped_if(
        &mut self,
        batch: &Batch,
        (tap, cancel): (&mut dyn Tap, &CancelToken),
        rows: &mut Rows,
        wanted: &dyn Fn() -> bool,
    ) -> Result<Outcome, SessionError> {
        self.validate(batch)?;
        let open = self.start(batch, cancel, Some(tap))?;
        let ticket = Ticket(open.ticket);
        self.open.push_back(open);
        self.collect_if(ticket, rows, wanted)
    }

    fn validate(&self, batch: &Batch) -> Result<(), SessionError> {
        if batch.rows.is_empty() {
            return Err(SessionError::EmptyBatch);
        }
        let vocabulary = self.vocabulary();
        for row in &batch.rows {
            self.paging.know(row.slot)?;
            let Feed::Token(token) = row.feed;
            if token as usize >= vocabulary {
                return Err(SessionError::UnknownToken { token, vocabulary });
            }
        }
        Ok(())
    }

    /// Enqueues a batch that was validated; the slots move on.
    fn start(
        &mut self,
        batch: &Batch,
        cancel: &CancelToken,
        tap: Option<&mut dyn Tap>,
    ) -> Result<Open, SessionError> {
        self.base.device.bind()?;
        let wanted = tokens_per_slot(&batch.rows);
        self.paging.reserve(&wanted)?;
        self.check_copies()?;
        self.finish_before(&wanted);
        let before = |slot: SlotId| self.paging.position(slot);
        let moved = wanted
            .iter()
            .map(|(slot, n)| (*slot, before(*slot), before(*slot) + n));
        let moved = moved.collect();
        let mut rows = Rows::default();
        let mut outputs = match self.spare.pop() {
            Some(outputs) => outputs,
            None => Outputs::new(&self.base.device)?,
        };
        let mut enqueue = Enqueue {
            device: &self.base.device,
            graph: &self.base.model.graph,
            replies: self.base.replies,
            machine: &mut self.machine,
            paging: &self.paging,
            outputs: &mut outputs,
            rows: &mut rows,
            way: self.way,
            cancel,
        };
        let state = match enqueue.batch(batch, tap) {
            Ok(()) => {
                self.paging.advance(&wanted);
                Computing::Under(outputs)
            }
            Err(ended) => {
                self.paging.roll_back(&wanted);
                outputs.forget();
                self.spare.push(outputs);
                rows.outputs.clear();
                Computing::Ended(match ended {
                    Ended::Cancelled => Ok(Outcome::Cancelled),
                    Ended::Failed(error) => Err(error),
                })
            }
        };
        self.next_ticket += 1;
        Ok(Open {
            ticket: self.next_ticket,
            moved,
            rows,
            state,
        })
    }

    /// A forward of recurrent layers overwrites the sums that the one before began with. That one
    /// has to be known to have succeeded, or could not be taken back.
    fn finish_before(&mut self, wanted: &[(SlotId, usize)]) {
        if !self.paging.store().has_sums() {
            return;
        }
        for at in 0..self.open.len() {
            if self.open[at].touches(|slot| wanted.iter().any(|(wanted, _)| *wanted == slot)) {
                self.finish(at);
            }
        }
    }

    /// Waits for a forward, and settles its slots or takes them back.
    fn finish(&mut self, at: usize) {
        let Some(mut open) = self.open.remove(at) else {
            return;
        };
        self.conclude(&mut open, at, &|| true);
        self.open.insert(at, open);
    }

    /// The same for one that was taken out of the queue, where those that came later now begin at
    /// `later`.
    fn conclude(&mut self, open: &mut Open, later: usize, wanted: &dyn Fn() -> bool) {
        let Computing::Under(outputs) = &mut open.state else {
            return;
        };
        let (source, name) = (&self.machine.source, &self.machine.logits_name);
        let ended = outputs.take(source, name, &mut open.rows.outputs);
        let ended = match ended {
            Ok(()) if wanted() => {
                for (slot, _, after) in &open.moved {
                    self.paging.settle(*slot, *after);
                }
                Ok(Outcome::Done)
            }
            ended => {
                open.rows.outputs.clear();
                self.fail_from(later, open);
                self.retreat(open);
                ended.map(|()| Outcome::Cancelled)
            }
        };
        self.end(open, ended);
    }

    fn end(&mut self, open: &mut Open, ended: Result<Outcome, SessionError>) {
        let state = std::mem::replace(&mut open.state, Computing::Ended(ended));
        if let Computing::Under(mut outputs) = state {
            outputs.forget();
            self.spare.push(outputs);
        }
    }

    /// Later forwards of the slots of one that failed have built on nothing.
    fn fail_from(&mut self, later: usize, failed: &Open) {
        for at in (later..self.open.len()).rev() {
            let shares = self.open[at].touches(|slot| failed.touches(|failed| failed == slot));
            let is_under_way = matches!(self.open[at].state, Computing::Under(_));
            if !(shares && is_under_way) {
                continue;
            }
            if let Some(mut open) = self.open.remove(at) {
                self.retreat(&open);
                let reason = String::from("the forward before this one did not end");
                self.end(&mut open, Err(SessionError::DeviceLost { reason }));
                self.open.insert(at, open);
            }
        }
    }

    /// The slots of a forward stand where they stood before it.
    fn retreat(&mut self, open: &Open) {
        for (slot, before, _) in &open.moved {
            if self.paging.store().has_sums() {
                self.paging.store_mut().undo_commit(slot.0);
            }
            self.paging.retreat(*slot, *before);
        }
    }

    /// Copies of state that failed since the last question.
    fn check_copies(&mut self) -> Result<(), SessionError> {
        match self.paging.store_mut().take_fault() {
            Some(fault) => Err(fault.into()),
            None => Ok(()),
        }
    }
}

impl Session for CudaSession {
    fn submit(&mut self, batch: &Batch, cancel: &CancelToken) -> Result<Ticket, SessionError> {
        if self.open.len() >= TICKETS_MAX {
            return Err(SessionError::BadTicket);
        }
        self.validate(batch)?;
        let open = self.start(batch, cancel, None)?;
        let ticket = Ticket(open.ticket);
        self.open.push_back(open);
        Ok(ticket)
    }

    fn collect(&mut self, ticket: Ticket, rows: &mut Rows) -> Result<Outcome, SessionError> {
        self.collect_if(ticket, rows, &|| true)
    }

    fn tapped(
        &mut self,
        batch: &Batch,
        showing: (&mut dyn Tap, &CancelToken),
        rows: &mut Rows,
    ) -> Result<Outcome, SessionError> {
        self.tapped_if(batch, showing, rows, &|| true)
    }

    fn ways(&self) -> Vec<usize> {
        buckets(self.paging.ctx_len())
    }

    fn take_way(&mut self, context: usize) {
        self.way = context;
    }

    fn offers(&self, want: Want) -> bool {
        self.about().offers(want)
    }

    fn position(&self, slot: SlotId) -> usize {
        self.paging.position(slot)
    }

    fn ctx_len(&self) -> usize {
        self.paging.ctx_len()
    }

    fn slots(&self) -> usize {
        self.paging.slots()
    }

    fn vocabulary(&self) -> usize {
        self.base.model.graph.hparams.vocabulary
    }

    fn seek(&mut self, slot: SlotId, want: usize) -> Result<usize, SessionError> {
        self.base.device.bind()?;
        self.paging.seek(slot, want)
    }

    fn checkpoint(&mut self, slot: SlotId) -> Result<(), SessionError> {
        self.base.device.bind()?;
        self.paging.checkpoint(slot)
    }

    fn fork(&mut self, from: SlotId, to: SlotId, len: usize) -> Result<usize, SessionError> {
        self.base.device.bind()?;
        let copied = self.paging.fork(from, to, len)?;
        self.check_copies()?;
        Ok(copied)
    }

    fn reset(&mut self, slot: SlotId) -> Result<(), SessionError> {
        self.seek(slot, 0).map(|_| ())
    }

    fn numerics(&self) -> Numerics {
        Numerics {
            prefill: Arithmetic::F16,
            decode: Arithmetic::Q8Block32,
            kv: Arithmetic::F16,
        }
    }
}

impl Drop for CudaSession {
    fn drop(&mut self) {
        // What is under way reads and writes memory that is given back next. A lost device has
        // nothing under way.
        let _ = self.base.device.bind();
        let _ = self.base.device.synchronize();
    }
}
