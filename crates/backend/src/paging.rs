//! The bookkeeping of a state, the same for every backend: which page holds which tokens of a slot,
//! and to which positions a slot can come back. Where the values are is the business of a
//! [`Store`].
//!
//! Full attention can be cut anywhere. A window has let go of what lies before it, and a recurrent
//! state is one sum: there a slot comes back to its checkpoints only, or to its beginning.

mod tables;

use candor_arch::{CHECKPOINTS_MAX, PAGE_TOKENS};

use crate::batch::SlotId;
use crate::error::SessionError;

use self::tables::Tables;

/// Where the values of a state are.
pub trait Store {
    /// A copy of a slot's recurrent state.
    type Snapshot;

    /// Whether there are recurrent layers.
    fn has_sums(&self) -> bool;

    /// Makes the memory of one more page of a kind, the first of which is 0. False if it is not to
    /// be had.
    fn make_page(&mut self, kind: usize) -> bool;

    /// Copies a page of a kind over another one.
    fn copy_page(&mut self, kind: usize, from: usize, to: usize);

    /// Makes the memory of a slot's recurrent state at its first use. False if it is not to be had.
    fn ready(&mut self, slot: usize) -> bool;

    /// What the forward wrote is the slot's recurrent state from here on.
    fn commit(&mut self, slot: usize);

    /// What the forward wrote is of no use.
    fn roll_back(&mut self, slot: usize);

    /// A copy of what was committed. None if the memory is not to be had.
    fn snapshot(&mut self, slot: usize) -> Option<Self::Snapshot>;

    /// Puts a copy back; nothing is the state before the first token.
    fn restore(&mut self, slot: usize, snapshot: Option<&Self::Snapshot>);
}

/// The layers that see the same tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageKind {
    /// How many tokens a row sees, itself among them; `usize::MAX` for all.
    pub window: usize,
    /// Pages that all slots together may have.
    pub pages_max: usize,
}

/// A position to come back to.
struct Checkpoint<P> {
    position: usize,
    /// Of the recurrent layers, if there are some.
    sums: Option<P>,
}

struct Slot<P> {
    position: usize,
    /// By position.
    checkpoints: Vec<Checkpoint<P>>,
}

/// The state of all slots.
pub struct Paging<S: Store> {
    store: S,
    kinds: Vec<Tables>,
    slots: Vec<Slot<S::Snapshot>>,
    ctx_len: usize,
}

impl<S: Store> Paging<S> {
    /// Empty slots. The first kind has to see everything: it counts the tokens even where no layer
    /// does.
    pub fn new(store: S, kinds: &[PageKind], slots: usize, ctx_len: usize) -> Self {
        let slot = || Slot {
            position: 0,
            checkpoints: Vec::new(),
        };
        Self {
            store,
            kinds: kinds.iter().map(|kind| Tables::new(*kind, slots)).collect(),
            slots: std::iter::repeat_with(slot).take(slots).collect(),
            ctx_len,
        }
    }

    /// Where the values are.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Where the values are.
    pub fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Tokens that one slot may hold.
    pub fn ctx_len(&self) -> usize {
        self.ctx_len
    }

    /// How many tokens a row of a kind sees.
    pub fn window(&self, kind: usize) -> usize {
        self.kinds[kind].window()
    }

    /// The pages of a slot: entry `i` holds the tokens from `i * PAGE_TOKENS`, if they are kept.
    #[inline]
    pub fn pages(&self, kind: usize, slot: SlotId) -> &[Option<usize>] {
        self.kinds[kind].of(slot.0)
    }

    /// Tokens of a slot; 0 for one that does not exist.
    pub fn position(&self, slot: SlotId) -> usize {
        self.slots.get(slot.0).map_or(0, |s| s.position)
    }

    /// Whether there is such a slot.
    ///
    /// # Errors
    /// [`SessionError::UnknownSlot`].
    pub fn know(&self, slot: SlotId) -> Result<(), SessionError> {
        if slot.0 < self.slots.len() {
            return Ok(());
        }
        Err(SessionError::UnknownSlot {
            slot,
            slots: self.slots.len(),
        })
    }

    /// Makes room for more tokens in each of these slots, or in none.
    ///
    /// # Errors
    /// [`SessionError`] that says what does not fit.
    pub fn reserve(&mut self, wanted: &[(SlotId, usize)]) -> Result<(), SessionError> {
        for &(slot, more) in wanted {
            self.know(slot)?;
            let position = self.position(slot);
            if more > self.ctx_len - position {
                return Err(SessionError::ContextFull {
                    slot,
                    position,
                    ctx_len: self.ctx_len,
                    asked: more,
                });
            }
        }
        for &(slot, more) in wanted {
            if !self.grow(slot, self.position(slot) + more) {
                self.roll_back(wanted);
                return Err(self.full(wanted));
            }
        }
        Ok(())
    }

    /// The tokens were computed: the slots move on, and let go of what nothing sees any more.
    pub fn commit(&mut self, wanted: &[(SlotId, usize)]) {
        self.advance(wanted);
        for &(slot, _) in wanted {
            self.settle(slot, self.position(slot));
        }
    }

    /// The tokens are being computed: the slots move on, and let go of nothing yet.
    pub fn advance(&mut self, wanted: &[(SlotId, usize)]) {
        for &(slot, more) in wanted {
            self.slots[slot.0].position += more;
            if self.store.has_sums() {
                self.store.commit(slot.0);
            }
        }
    }

    /// The tokens up to a position were computed: lets go of what neither it nor the slot's present
    /// position nor a checkpoint sees.
    pub fn settle(&mut self, slot: SlotId, computed: usize) {
        if self.kinds.len() == 1 {
            return;
        }
        let it = &self.slots[slot.0];
        let marks = it.checkpoints.iter().map(|c| c.position);
        let positions: Vec<usize> = marks.chain([it.position, computed]).collect();
        for kind in &mut self.kinds {
            kind.forget(slot.0, &positions);
        }
    }

    /// The tokens past a position were not computed after all: the slot stands there again. It has
    /// to have stood there since it last let go of something; the store sees to its sums itself.
    pub fn retreat(&mut self, slot: SlotId, position: usize) {
        let it = &mut self.slots[slot.0];
        it.position = it.position.min(position);
        it.checkpoints.retain(|c| c.position <= position);
        self.trim(slot);
    }

    /// Reserved tokens were not computed: the room goes back.
    pub fn roll_back(&mut self, wanted: &[(SlotId, usize)]) {
        for &(slot, _) in wanted {
            self.store.roll_back(slot.0);
            self.trim(slot);
        }
    }

    /// Forgets what lies past `want`, or past the last position before it that can be reached, and
    /// gives that position.
    ///
    /// # Errors
    /// [`SessionError::UnknownSlot`].
    pub fn seek(&mut self, slot: SlotId, want: usize) -> Result<usize, SessionError> {
        self.know(slot)?;
        let reached = self.reachable(slot, want);
        let it = &mut self.slots[slot.0];
        if reached != it.position && self.store.has_sums() && self.store.ready(slot.0) {
            let checkpoint = it.checkpoints.iter().find(|c| c.position == reached);
            let sums = checkpoint.and_then(|c| c.sums.as_ref());
            self.store.restore(slot.0, sums);
        }
        it.position = reached;
        it.checkpoints.retain(|c| c.position <= reached);
        self.trim(slot);
        self.settle(slot, reached);
        Ok(reached)
    }

    /// Marks the present position as one to come back to. Where the memory for that is not to be
    /// had, it is left out: a seek then reaches less.
    ///
    /// # Errors
    /// [`SessionError::UnknownSlot`].
    pub fn checkpoint(&mut self, slot: SlotId) -> Result<(), SessionError> {
        self.know(slot)?;
        let position = self.position(slot);
        let held = &mut self.slots[slot.0].checkpoints;
        let cuts_anywhere = self.kinds.len() == 1 && !self.store.has_sums();
        if cuts_anywhere || position == 0 || held.iter().any(|c| c.position == position) {
            return Ok(());
        }
        if held.len() == CHECKPOINTS_MAX {
            // The oldest gives way first, so that a store with room for so many has it.
            held.remove(0);
        }
        let sums = match self.store.has_sums() {
            false => None,
            true => match self.store.snapshot(slot.0) {
                None => return Ok(()),
                some => some,
            },
        };
        let checkpoint = Checkpoint { position, sums };
        self.slots[slot.0].checkpoints.push(checkpoint);
        Ok(())
    }

    /// Copies the first tokens of one slot over another, or fewer where they cannot be cut there,
    /// and says how many.
    ///
    /// # Errors
    /// [`SessionError`] if a slot does not exist or the pool is full.
    pub fn fork(&mut self, from: SlotId, to: SlotId, len: usize) -> Result<usize, SessionError> {
        self.know(from)?;
        self.know(to)?;
        let len = self.reachable(from, len);
        if from == to {
            return self.seek(to, len);
        }
        self.seek(to, 0)?;
        let copied = (0..self.kinds.len()).all(|kind| self.copy_pages(kind, (from, to), len));
        if !copied || (len > 0 && self.store.has_sums() && !self.store.ready(to.0)) {
            self.trim(to);
            return Err(self.full(&[(to, len)]));
        }
        if len > 0 && self.store.has_sums() {
            let source = &self.slots[from.0];
            let checkpoint = source.checkpoints.iter().find(|c| c.position == len);
            match checkpoint.and_then(|c| c.sums.as_ref()) {
                Some(sums) => self.store.restore(to.0, Some(sums)),
                None => {
                    let Some(sums) = self.store.snapshot(from.0) else {
                        self.trim(to);
                        return Err(self.full(&[(to, len)]));
                    };
                    self.store.restore(to.0, Some(&sums));
                }
            }
        }
        self.slots[to.0].position = len;
        Ok(len)
    }

    /// The last position up to `want` at which the slot can go on.
    fn reachable(&self, slot: SlotId, want: usize) -> usize {
        let it = &self.slots[slot.0];
        let want = want.min(it.position);
        let holds = |position: usize| {
            let kept = |kind: &Tables| kind.can_reach(slot.0, position);
            let checkpoint = it.checkpoints.iter().any(|c| c.position == position);
            let summed = !self.store.has_sums() || checkpoint || position == it.position;
            position == 0 || (summed && self.kinds.iter().all(kept))
        };
        let marks = it.checkpoints.iter().rev().map(|c| c.position);
        let mut candidates = std::iter::once(want).chain(marks.filter(|mark| *mark < want));
        candidates.find(|position| holds(*position)).unwrap_or(0)
    }

    /// False if there is too little memory or too few pages.
    fn grow(&mut self, slot: SlotId, tokens: usize) -> bool {
        let ready = !self.store.has_sums() || self.store.ready(slot.0);
        let store = &mut self.store;
        let mut kinds = self.kinds.iter_mut().enumerate();
        ready && kinds.all(|(kind, tables)| tables.grow(slot.0, tokens, || store.make_page(kind)))
    }

    fn copy_pages(&mut self, kind: usize, (from, to): (SlotId, SlotId), len: usize) -> bool {
        let store = &mut self.store;
        let tables = &mut self.kinds[kind];
        for page_idx in 0..len.div_ceil(PAGE_TOKENS) {
            if !tables.sees(len, page_idx) {
                tables.leave_out(to.0);
                continue;
            }
            let tokens = (page_idx + 1) * PAGE_TOKENS;
            if !tables.grow(to.0, tokens, || store.make_page(kind)) {
                return false;
            }
            let pair = (tables.of(from.0)[page_idx], tables.of(to.0)[page_idx]);
            if let (Some(source), Some(target)) = pair {
                store.copy_page(kind, source, target);
            }
        }
        true
    }

    /// Gives back the pages past the position.
    fn trim(&mut self, slot: SlotId) {
        let position = self.position(slot);
        for kind in &mut self.kinds {
            kind.trim(slot.0, position);
        }
    }

    fn full(&self, wanted: &[(SlotId, usize)]) -> SessionError {
        let free = self.kinds.iter().map(Tables::free_tokens).min();
        let room_in_pages: usize = wanted
            .iter()
            .map(|(slot, _)| {
                self.position(*slot).next_multiple_of(PAGE_TOKENS) - self.position(*slot)
            })
            .sum();
        SessionError::StateFull {
            asked: wanted.iter().map(|(_, more)| more).sum(),
            free: free.unwrap_or(0) + room_in_pages,
        }
    }
}
