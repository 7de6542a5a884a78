//! A running model.

use crate::batch::{Batch, Rows, SlotId, Want};
use crate::cancel::CancelToken;
use crate::error::SessionError;

/// The arithmetic of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// float32 activations.
    F32,
    /// float16 activations.
    F16,
    /// 8-bit activations with a scale for every 32.
    Q8Block32,
}

/// What a session computes with, stated because it decides how close results may be expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Numerics {
    /// Of quantised weights while a prompt is read.
    pub prefill: Arithmetic,
    /// Of quantised weights while a reply is written.
    pub decode: Arithmetic,
    /// Of keys and values.
    pub kv: Arithmetic,
}

/// A forward that was submitted.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a ticket that is not collected keeps its place open"]
pub struct Ticket(pub u64);

/// How a forward ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The rows are in; the slots have moved on.
    Done,
    /// It was cancelled; the slots are where they were.
    Cancelled,
}

/// Reads what the steps of a forward gave, under the nodes' dotted names.
pub trait Tap {
    /// `values` holds `rows` rows of `width` values. A backend may take a large batch in parts; a
    /// node is then shown once for each part, in the order of the rows.
    fn output(&mut self, node: &str, rows: usize, width: usize, values: &[f32]);
}

/// A running model: weights, state, and the place where both meet. Born, used and dropped on the
/// engine thread; need not be `Send`.
///
/// A forward is submitted and then collected; at most [`TICKETS_MAX`] are open. A
/// cancelled or failed forward leaves every slot at its old position.
pub trait Session {
    /// Starts the forward of `batch`. Polls `cancel` before and inside.
    ///
    /// # Errors
    /// [`SessionError`] if the batch is not to be computed; nothing has changed then.
    fn submit(&mut self, batch: &Batch, cancel: &CancelToken) -> Result<Ticket, SessionError>;

    /// Waits for a forward and takes its outputs into `rows`, replacing what was there.
    ///
    /// # Errors
    /// [`SessionError`] if the computation failed.
    fn collect(&mut self, ticket: Ticket, rows: &mut Rows) -> Result<Outcome, SessionError>;

    /// One forward whose every node is shown. Uses the kernels of [`Session::submit`] and polls the
    /// token as it does.
    ///
    /// # Errors
    /// [`SessionError`] as for submit and collect.
    fn tapped(
        &mut self,
        batch: &Batch,
        showing: (&mut dyn Tap, &CancelToken),
        rows: &mut Rows,
    ) -> Result<Outcome, SessionError>;

    /// Lengths of context, in ascending order, up to each of which a few rows are computed in a way
    /// of its own. One that is as long as the context where length decides nothing. Every session
    /// has to say so itself: a way that is not named is not judged.
    fn ways(&self) -> Vec<usize>;

    /// From now on a few rows are computed in the way of at least this length, whatever their
    /// positions; 0 for the way that fits. So each can be judged at positions whose results are
    /// known.
    fn take_way(&mut self, context: usize);

    /// From now on at most so many threads compute: somebody else is to have the others.
    fn at_ease(&mut self, _threads: usize) {}

    /// Whether it can answer this want itself.
    fn offers(&self, want: Want) -> bool;

    /// Tokens that the slot holds.
    fn position(&self, slot: SlotId) -> usize;

    /// Tokens that one slot may hold.
    fn ctx_len(&self) -> usize;

    /// Number of slots.
    fn slots(&self) -> usize;

    /// Entries of a row of logits.
    fn vocabulary(&self) -> usize;

    /// Forgets what lies past `want` tokens, and says where the slot now stands: at most `want`,
    /// less where the state cannot be cut there (the caller replays from the answer).
    ///
    /// # Errors
    /// [`SessionError::UnknownSlot`].
    fn seek(&mut self, slot: SlotId, want: usize) -> Result<usize, SessionError>;

    /// Marks the present position as one to which [`Session::seek`] can come back. Free where the
    /// state can be cut anywhere.
    ///
    /// # Errors
    /// [`SessionError::UnknownSlot`].
    fn checkpoint(&mut self, slot: SlotId) -> Result<(), SessionError>;

    /// Copies the first `len` tokens of one slot's state to another and says how many were copied.
    ///
    /// # Errors
    /// [`SessionError::UnknownSlot`], or [`SessionError::StateFull`].
    fn fork(&mut self, from: SlotId, to: SlotId, len: usize) -> Result<usize, SessionError>;

    /// Empties a slot.
    ///
    /// # Errors
    /// [`SessionError::UnknownSlot`].
    fn reset(&mut self, slot: SlotId) -> Result<(), SessionError>;

    /// What it computes with.
    fn numerics(&self) -> Numerics;
}

/// Forwards that may be open at once: one computes while the next is prepared.
pub const TICKETS_MAX: usize = 2;
