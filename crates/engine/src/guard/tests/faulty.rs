//! A session that is right but for one thing.

use candor_backend::{
    Batch, CancelToken, Numerics, Outcome, RowOutput, Rows, Session, SessionError, SlotId, Tap,
    Ticket, Want,
};

use super::DECODE_ROWS_MAX;

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fault {
    None,
    /// One logit of one position is NaN.
    NotANumber(usize),
    /// Every logit of every position is NaN.
    AllNotANumber,
    /// The rows end after so many logits.
    Short(usize),
    /// From this position on no logits come.
    Missing(usize),
    /// The logits of one position are turned round.
    Position(usize),
    /// Rows of small batches have their best token put down.
    Decode,
    /// Rows of large batches have theirs.
    Prefill,
    /// Only what a captured graph would do is wrong.
    NotWhenTapped,
    /// Once this position was computed, its key and value are another token's.
    StaleRow(usize),
    /// All logits are this many times as large.
    Scaled(f32),
    /// The last part of the vocabulary is wrong.
    LastLogits,
    /// It says so itself where a logit is no number, as cards do.
    Raises,
    /// It names another token than its logits do.
    Best,
    /// Rows are wrong in the way of a context of at least this length, also when they are shown.
    Way(usize),
}

pub(super) struct Faulty {
    inner: Box<dyn Session>,
    fault: Fault,
    /// Positions of the outputs of the open forward, and whether it was a small batch.
    open: Vec<usize>,
    small: bool,
    /// The way of the open forward, and those that there are.
    way: usize,
    ways: Vec<usize>,
    /// Cancelled when nodes are to be shown.
    stop: Option<CancelToken>,
}

impl Faulty {
    pub(super) fn new(inner: Box<dyn Session>, fault: Fault) -> Box<Self> {
        Box::new(Self {
            inner,
            fault,
            open: Vec::new(),
            small: false,
            way: 0,
            ways: Vec::new(),
            stop: None,
        })
    }

    /// Stops the check when nodes are to be shown.
    pub(super) fn stopping(mut self: Box<Self>, cancel: &CancelToken) -> Box<Self> {
        self.stop = Some(cancel.clone());
        self
    }

    /// With these ways of computing a few rows.
    pub(super) fn in_ways(mut self: Box<Self>, ways: &[usize]) -> Box<Self> {
        self.ways = ways.to_vec();
        self
    }

    fn note(&mut self, batch: &Batch) {
        let before = self.inner.position(SlotId(0));
        let wanted = batch
            .rows
            .iter()
            .enumerate()
            .filter(|(_, row)| row.want != Want::Nothing);
        self.open = wanted.map(|(i, _)| before + i).collect();
        self.small = batch.rows.len() <= DECODE_ROWS_MAX;
    }

    fn spoil(&self, rows: &mut Rows) {
        for (position, output) in self.open.iter().zip(&mut rows.outputs) {
            match output {
                RowOutput::Logits(logits) => self.spoil_row(*position, logits),
                RowOutput::Top { best, .. } if self.fault == Fault::Best => best[0].0 ^= 1,
                RowOutput::Top { .. } | RowOutput::Hidden(_) => {}
            }
        }
        if let Fault::Missing(from) = self.fault {
            let kept = self
                .open
                .iter()
                .filter(|position| **position < from)
                .count();
            rows.outputs.truncate(kept);
        }
    }

    fn raise(&self, rows: &Rows) -> Result<(), SessionError> {
        let is_nan = |output: &RowOutput| match output {
            RowOutput::Logits(values) | RowOutput::Hidden(values) => {
                values.iter().any(|value| value.is_nan())
            }
            RowOutput::Top { lse, .. } => lse.is_nan(),
        };
        if self.fault == Fault::Raises && rows.outputs.iter().any(is_nan) {
            let node = String::from("logits");
            return Err(SessionError::NotFinite { node });
        }
        Ok(())
    }

    fn spoil_row(&self, position: usize, logits: &mut Vec<f32>) {
        let best = |logits: &[f32]| {
            let best = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b]));
            best.unwrap()
        };
        match self.fault {
            Fault::NotANumber(at) if at == position => logits[3] = f32::NAN,
            Fault::AllNotANumber => logits.fill(f32::NAN),
            Fault::Short(len) => logits.truncate(len),
            Fault::Position(at) if at == position => logits.reverse(),
            Fault::Decode if self.small => logits.reverse(),
            Fault::Way(from) if self.small && self.way >= from => logits.reverse(),
            Fault::Prefill if !self.small => logits.reverse(),
            Fault::NotWhenTapped => {
                let best = best(logits);
                logits[best] -= 20.0;
            }
            Fault::Scaled(by) => logits.iter_mut().for_each(|logit| *logit *= by),
            Fault::LastLogits => {
                let from = logits.len() - logits.len() / 8;
                logits[from..].reverse();
            }
            _ => {}
        }
    }
}

impl Session for Faulty {
    fn submit(&mut self, batch: &Batch, cancel: &CancelToken) -> Result<Ticket, SessionError> {
        self.note(batch);
        self.inner.submit(batch, cancel)
    }

    fn collect(&mut self, ticket: Ticket, rows: &mut Rows) -> Result<Outcome, SessionError> {
        let outcome = self.inner.collect(ticket, rows)?;
        self.spoil(rows);
        self.raise(rows)?;
        let slot = SlotId(0);
        if let Fault::StaleRow(at) = self.fault
            && self.inner.position(slot) == at + 1
        {
            self.inner.seek(slot, at)?;
            let other = Batch::of_slot(slot, &[7], Want::Nothing);
            let ticket = self.inner.submit(&other, &CancelToken::new())?;
            self.inner.collect(ticket, &mut Rows::default())?;
        }
        Ok(outcome)
    }

    fn tapped(
        &mut self,
        batch: &Batch,
        showing: (&mut dyn Tap, &CancelToken),
        rows: &mut Rows,
    ) -> Result<Outcome, SessionError> {
        self.note(batch);
        if let Some(stop) = &self.stop {
            stop.cancel();
        }
        let outcome = self.inner.tapped(batch, showing, rows)?;
        if self.fault != Fault::NotWhenTapped {
            self.spoil(rows);
        }
        self.raise(rows)?;
        Ok(outcome)
    }

    fn ways(&self) -> Vec<usize> {
        match self.ways.is_empty() {
            true => self.inner.ways(),
            false => self.ways.clone(),
        }
    }

    fn take_way(&mut self, context: usize) {
        self.way = context;
    }

    fn offers(&self, want: Want) -> bool {
        self.inner.offers(want)
    }

    fn position(&self, slot: SlotId) -> usize {
        self.inner.position(slot)
    }

    fn ctx_len(&self) -> usize {
        self.inner.ctx_len()
    }

    fn slots(&self) -> usize {
        self.inner.slots()
    }

    fn vocabulary(&self) -> usize {
        self.inner.vocabulary()
    }

    fn seek(&mut self, slot: SlotId, want: usize) -> Result<usize, SessionError> {
        self.inner.seek(slot, want)
    }

    fn checkpoint(&mut self, slot: SlotId) -> Result<(), SessionError> {
        self.inner.checkpoint(slot)
    }

    fn fork(&mut self, from: SlotId, to: SlotId, len: usize) -> Result<usize, SessionError> {
        self.inner.fork(from, to, len)
    }

    fn reset(&mut self, slot: SlotId) -> Result<(), SessionError> {
        self.inner.reset(slot)
    }

    fn numerics(&self) -> Numerics {
        self.inner.numerics()
    }
}
