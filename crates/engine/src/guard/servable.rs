//! Sessions by what they may do: [`Servable`] serves, [`Candidate`] waits to be judged.

use candor_backend::{
    Batch, CancelToken, DeviceInfo, DeviceKind, Outcome, Rows, Session, SessionError, SlotId,
};

use super::verdict::{Served, VerdictId};
use crate::prefix::{Computed, Reuse, SlotTokens};

/// A session that may serve, and what its slots hold. The field that holds the session is private,
/// and there are no other ways to one than [`reference()`] and an accepted verdict (and, for
/// measurements only, a reason to do without), so an unproven device cannot serve: it does not
/// type-check.
pub struct Servable {
    session: Box<dyn Session>,
    /// Kept beside the session, because they have to agree at every moment.
    slots: Vec<SlotTokens>,
    rows: Rows,
    uses: u64,
    /// Slots in which something is written at once; what others hold is kept for prompts to come.
    active_max: usize,
    right: Right,
    device: DeviceKind,
}

/// By what right a session serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    Reference,
    Proven(VerdictId),
    Skipped,
}

/// A session of a device that was not judged yet. It computes for the guard and for nobody else.
pub struct Candidate {
    pub(super) session: Box<dyn Session>,
    pub(super) device: DeviceInfo,
}

/// Why a device is measured without being judged. Only measurements in the caller's own thread
/// take one, and everything that they report shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unproven {
    /// In words.
    pub reason: &'static str,
}

/// The reference backend's own session serves by definition: it is what others are held against.
pub fn reference(session: Box<dyn Session>, device: DeviceKind) -> Servable {
    Servable::new(session, Right::Reference, device)
}

/// A session that was never judged, for a measurement.
pub(crate) fn unproven(candidate: Candidate, _why: Unproven) -> Servable {
    let device = candidate.device.kind;
    Servable::new(candidate.session, Right::Skipped, device)
}

impl Candidate {
    /// A session that was just opened on this device.
    pub fn new(session: Box<dyn Session>, device: DeviceInfo) -> Self {
        Self { session, device }
    }

    /// Only the guard has a number to give for it.
    pub(super) fn proven(self, verdict: VerdictId) -> Servable {
        let device = self.device.kind;
        Servable::new(self.session, Right::Proven(verdict), device)
    }

    /// Forgets what the check left in the slots.
    pub(super) fn empty(&mut self) {
        for slot in 0..self.session.slots() {
            // A session that cannot even do that fails at its first forward.
            self.session.reset(SlotId(slot)).ok();
        }
    }

    /// The context up to which it computes in the way of the shortest ones.
    pub(crate) fn shortest_way(&self) -> usize {
        let ways = self.session.ways();
        ways.first().copied().unwrap_or(usize::MAX)
    }

    /// What it would compute on.
    pub fn device(&self) -> &DeviceInfo {
        &self.device
    }
}

impl Servable {
    fn new(session: Box<dyn Session>, right: Right, device: DeviceKind) -> Self {
        let slots = vec![SlotTokens::default(); session.slots()];
        Self {
            active_max: slots.len(),
            session,
            slots,
            rows: Rows::default(),
            uses: 0,
            right,
            device,
        }
    }

    /// Takes the right to serve away, to be judged anew.
    pub(crate) fn into_candidate(self, device: DeviceInfo) -> Candidate {
        Candidate::new(self.session, device)
    }

    /// Whether it is what others are held against.
    pub(crate) fn is_reference(&self) -> bool {
        self.right == Right::Reference
    }

    /// What replies say of who computed them.
    pub(crate) fn served(&self) -> Served {
        let verdict = match self.right {
            Right::Proven(verdict) => Some(verdict),
            Right::Reference | Right::Skipped => None,
        };
        Served {
            device: self.device,
            verdict,
            moved_at: None,
        }
    }

    /// The session, to be asked.
    pub fn session(&self) -> &dyn Session {
        &*self.session
    }

    pub(crate) fn slots(&self) -> &[SlotTokens] {
        &self.slots
    }

    /// Slots in which something is written at once.
    pub(crate) fn active_max(&self) -> usize {
        self.active_max
    }

    /// Writes in so many slots at once, however many there are.
    pub(crate) fn limit_active(&mut self, active_max: usize) {
        self.active_max = active_max.clamp(1, self.slots.len().max(1));
    }

    /// What may be taken over where somebody wants the reply of a first run: only where reading
    /// and writing compute with the same numbers, all of it.
    pub(crate) fn takes_over(&self, reuse: Reuse) -> Reuse {
        let numerics = self.session.numerics();
        match reuse {
            Reuse::OnlyRead if numerics.prefill == numerics.decode => Reuse::All,
            other => other,
        }
    }

    /// Tokens that the slot holds.
    pub(crate) fn held(&self, slot: SlotId) -> usize {
        self.slots[slot.0].tokens.len()
    }

    /// Cuts a slot back to `want` tokens, or further where the state cannot be cut there, and
    /// says how many are left.
    pub(crate) fn take_slot(&mut self, slot: SlotId, want: usize) -> Result<usize, SessionError> {
        // Where the session stands is not known after an error, so nothing is reused then.
        let mut held = std::mem::take(&mut self.slots[slot.0]);
        let reached = self.session.seek(slot, want)?.min(held.tokens.len());
        held.cut(reached);
        self.uses += 1;
        held.used = self.uses;
        self.slots[slot.0] = held;
        Ok(reached)
    }

    /// Puts the first `want` tokens of one slot into another in place of what that holds, or fewer
    /// where the state cannot be cut there, and says how many. None where there is no room: what
    /// is not copied is computed.
    pub(crate) fn copy_slot(
        &mut self,
        from: SlotId,
        to: SlotId,
        want: usize,
    ) -> Result<usize, SessionError> {
        self.take_slot(to, 0)?;
        let copied = match self.session.fork(from, to, want) {
            Err(SessionError::StateFull { .. }) => {
                self.session.reset(to)?;
                0
            }
            other => other?,
        };
        let mut held = self.slots[from.0].clone();
        held.cut(copied);
        held.used = self.uses;
        self.slots[to.0] = held;
        Ok(copied)
    }

    /// Empties a slot and says whether it held anything.
    pub(crate) fn empty_slot(&mut self, slot: SlotId) -> Result<bool, SessionError> {
        let held = self.held(slot) > 0;
        self.slots[slot.0].cut(0);
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

    /// Notes tokens that a forward committed, and how it computed them.
    pub(crate) fn committed(&mut self, slot: SlotId, tokens: &[u32], how: Computed) {
        let held = &mut self.slots[slot.0];
        if how == Computed::Read && held.read == held.tokens.len() {
            held.read += tokens.len();
        }
        held.tokens.extend_from_slice(tokens);
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
