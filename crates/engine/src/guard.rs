//! Who may serve. A token of a reply can only come from a [`Servable`], and one can only be had
//! here.

use candor_backend::{Batch, CancelToken, Outcome, Rows, Session, SessionError, SlotId};

use crate::prefix::SlotTokens;

/// A session that may serve, and what its slots hold. The field that holds the session is private
/// and there is no other constructor than [`reference()`], so an unproven device cannot serve: it
/// does not type-check.
pub struct Servable {
    session: Box<dyn Session>,
    /// Kept beside the session, because they have to agree at every moment.
    slots: Vec<SlotTokens>,
    rows: Rows,
    uses: u64,
}

/// The reference backend's own session serves by definition: it is what others are held against.
pub fn reference(session: Box<dyn Session>) -> Servable {
    let slots = vec![SlotTokens::default(); session.slots()];
    Servable {
        session,
        slots,
        rows: Rows::default(),
        uses: 0,
    }
}

impl Servable {
    /// The session, to be asked.
    pub fn session(&self) -> &dyn Session {
        &*self.session
    }

    pub(crate) fn slots(&self) -> &[SlotTokens] {
        &self.slots
    }

    /// Tokens that the slot holds.
    pub(crate) fn held(&self, slot: SlotId) -> usize {
        self.slots[slot.0].tokens.len()
    }

    /// Cuts a slot back to `want` tokens, or further where the state cannot be cut there, and
    /// says how many are left.
    pub(crate) fn take_slot(&mut self, slot: SlotId, want: usize) -> Result<usize, SessionError> {
        // Where the session stands is not known after an error, so nothing is reused then.
        let mut tokens = std::mem::take(&mut self.slots[slot.0].tokens);
        let reached = self.session.seek(slot, want)?.min(tokens.len());
        tokens.truncate(reached);
        self.uses += 1;
        self.slots[slot.0] = SlotTokens {
            tokens,
            used: self.uses,
        };
        Ok(reached)
    }

    /// Empties a slot and says whether it held anything.
    pub(crate) fn empty_slot(&mut self, slot: SlotId) -> Result<bool, SessionError> {
        let held = self.held(slot) > 0;
        self.slots[slot.0].tokens.clear();
        self.session.reset(slot)?;
        Ok(held)
    }

    /// One forward. Its outputs are in [`Servable::rows`] afterwards.
    pub(crate) fn forward(
        &mut self,
        batch: &Batch,
        cancel: &CancelToken,
    ) -> Result<Outcome, SessionError> {
        let ticket = self.session.submit(batch, cancel)?;
        self.session.collect(ticket, &mut self.rows)
    }

    /// Notes tokens that a forward committed.
    pub(crate) fn committed(&mut self, slot: SlotId, tokens: &[u32]) {
        self.slots[slot.0].tokens.extend_from_slice(tokens);
    }

    /// Marks the slot's position as one to come back to.
    pub(crate) fn checkpoint(&mut self, slot: SlotId) -> Result<(), SessionError> {
        self.session.checkpoint(slot)
    }

    /// The outputs of the last forward.
    pub(crate) fn rows(&mut self) -> &mut Rows {
        &mut self.rows
    }
}
