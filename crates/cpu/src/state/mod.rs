//! What the slots remember: keys and values in pages, and the state of recurrent layers.
//!
//! Full attention can be cut anywhere. A window has let go of what lies before it, and a recurrent
//! state is one sum: there a slot comes back to its checkpoints only, or to its beginning.

mod pages;
mod recurrent;
#[cfg(test)]
mod tests;

use candor_arch::{CHECKPOINTS_MAX, StateLayout, StateSizes};
use candor_backend::{KvType, SessionError, SlotId};

use self::pages::{HeadsPlace, Pages, units};
use self::recurrent::{Recurrent, RecurrentPlace};
use crate::simd::Kernels;

pub(crate) use self::pages::{FloatHead, Head, PAGE_TOKENS};
pub(crate) use self::recurrent::Kept;

/// A token's place in one layer's state.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) layer: usize,
    pub(crate) slot: SlotId,
    pub(crate) position: usize,
}

/// A position to come back to.
struct Checkpoint {
    position: usize,
    /// Of the recurrent layers, if there are some.
    recurrent: Option<Vec<f32>>,
}

#[derive(Default)]
struct Slot {
    position: usize,
    /// By position.
    checkpoints: Vec<Checkpoint>,
}

/// Where a layer's state is.
enum LayerPlace {
    /// In pages of one kind.
    Heads(usize, HeadsPlace),
    Recurrent(RecurrentPlace),
}

/// The state of all slots.
pub(crate) struct State {
    kv: KvType,
    layers: Vec<LayerPlace>,
    /// The first kind sees everything, and counts the tokens even where no layer does.
    kinds: Vec<Pages>,
    recurrent: Recurrent,
    slots: Vec<Slot>,
    ctx_len: usize,
}

/// What a full state takes. Its pages are made when they are first used; what could not fit even
/// then is to be refused before the first token.
pub(crate) fn bytes_needed(layouts: &[StateLayout], sizes: StateSizes) -> u64 {
    sizes
        .pool_bytes(layouts)
        .saturating_add(sizes.unfolded_bytes(layouts))
}

impl State {
    pub(crate) fn new(layouts: &[StateLayout], sizes: StateSizes) -> Self {
        let pages_max = sizes.tokens.div_ceil(PAGE_TOKENS);
        let pages = |window| Pages::new(sizes.kv, window, pages_max, sizes.slots);
        let mut kinds = vec![pages(usize::MAX)];
        let mut recurrent = Recurrent::new(sizes.slots);
        let mut layers = Vec::with_capacity(layouts.len());
        for layout in layouts {
            let (window, n_kv_heads, head_dim) = match *layout {
                StateLayout::Full {
                    n_kv_heads,
                    head_dim,
                } => (usize::MAX, n_kv_heads, head_dim),
                StateLayout::Window {
                    tokens,
                    n_kv_heads,
                    head_dim,
                } => (tokens, n_kv_heads, head_dim),
                StateLayout::Recurrent { channels, taps, .. } => {
                    let place = recurrent.add_layer(layout, channels * (taps - 1));
                    layers.push(LayerPlace::Recurrent(place));
                    continue;
                }
            };
            let kind = kinds.iter().position(|kind| kind.window == window);
            let kind = kind.unwrap_or_else(|| {
                kinds.push(pages(window));
                kinds.len() - 1
            });
            let place = HeadsPlace {
                offset: kinds[kind].page_units,
                n_kv_heads,
                head_dim,
                units: units(sizes.kv, head_dim),
            };
            kinds[kind].page_units += 2 * n_kv_heads * place.units * PAGE_TOKENS;
            layers.push(LayerPlace::Heads(kind, place));
        }
        Self {
            kv: sizes.kv,
            layers,
            kinds,
            recurrent,
            slots: (0..sizes.slots).map(|_| Slot::default()).collect(),
            ctx_len: sizes.ctx_len,
        }
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn ctx_len(&self) -> usize {
        self.ctx_len
    }

    pub(crate) fn kv(&self) -> KvType {
        self.kv
    }

    /// Committed tokens of a slot; 0 for one that does not exist.
    pub(crate) fn position(&self, slot: SlotId) -> usize {
        self.slots.get(slot.0).map_or(0, |s| s.position)
    }

    pub(crate) fn know(&self, slot: SlotId) -> Result<(), SessionError> {
        if slot.0 < self.slots.len() {
            return Ok(());
        }
        Err(SessionError::UnknownSlot {
            slot,
            slots: self.slots.len(),
        })
    }

    /// Makes room for `more` tokens in each of these slots, or in none.
    pub(crate) fn reserve(&mut self, wanted: &[(SlotId, usize)]) -> Result<(), SessionError> {
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

    /// The tokens were computed: the slots move on.
    pub(crate) fn commit(&mut self, wanted: &[(SlotId, usize)]) {
        for &(slot, more) in wanted {
            self.slots[slot.0].position += more;
            if !self.recurrent.is_empty() {
                self.recurrent.commit(slot.0);
            }
            self.forget(slot);
        }
    }

    /// They were not: the room goes back.
    pub(crate) fn roll_back(&mut self, wanted: &[(SlotId, usize)]) {
        for &(slot, _) in wanted {
            self.recurrent.roll_back(slot.0);
            self.trim(slot);
        }
    }

    /// Forgets what lies past `want`, or past the last position before it that can be reached.
    pub(crate) fn seek(&mut self, slot: SlotId, want: usize) -> Result<usize, SessionError> {
        self.know(slot)?;
        let reached = self.reachable(slot, want);
        let it = &mut self.slots[slot.0];
        if reached != it.position && !self.recurrent.is_empty() && self.recurrent.ready(slot.0) {
            let checkpoint = it.checkpoints.iter().find(|c| c.position == reached);
            let snapshot = checkpoint.and_then(|c| c.recurrent.as_deref());
            self.recurrent.restore(slot.0, snapshot);
        }
        it.position = reached;
        it.checkpoints.retain(|c| c.position <= reached);
        self.trim(slot);
        self.forget(slot);
        Ok(reached)
    }

    /// Marks the present position as one to come back to. Where the memory for that is not to be
    /// had, it is left out: a seek then reaches less.
    pub(crate) fn checkpoint(&mut self, slot: SlotId) -> Result<(), SessionError> {
        self.know(slot)?;
        let position = self.position(slot);
        let held = &self.slots[slot.0].checkpoints;
        let cuts_anywhere = self.kinds.len() == 1 && self.recurrent.is_empty();
        if cuts_anywhere || position == 0 || held.iter().any(|c| c.position == position) {
            return Ok(());
        }
        let recurrent = match self.recurrent.is_empty() {
            true => None,
            false => match self.recurrent.snapshot(slot.0) {
                None => return Ok(()),
                some => some,
            },
        };
        let checkpoints = &mut self.slots[slot.0].checkpoints;
        if checkpoints.len() == CHECKPOINTS_MAX {
            checkpoints.remove(0);
        }
        checkpoints.push(Checkpoint {
            position,
            recurrent,
        });
        Ok(())
    }

    /// Copies the first tokens of one slot over another, or fewer where they cannot be cut there.
    pub(crate) fn fork(
        &mut self,
        from: SlotId,
        to: SlotId,
        len: usize,
    ) -> Result<usize, SessionError> {
        self.know(from)?;
        self.know(to)?;
        let len = self.reachable(from, len);
        if from == to {
            return self.seek(to, len);
        }
        self.seek(to, 0)?;
        let copied = self
            .kinds
            .iter_mut()
            .all(|kind| kind.copy(from.0, to.0, len));
        if !copied || (len > 0 && !self.recurrent.is_empty() && !self.recurrent.ready(to.0)) {
            self.trim(to);
            return Err(self.full(&[(to, len)]));
        }
        if len > 0 && !self.recurrent.is_empty() {
            let source = &self.slots[from.0];
            let checkpoint = source.checkpoints.iter().find(|c| c.position == len);
            let snapshot = match checkpoint.and_then(|c| c.recurrent.clone()) {
                Some(snapshot) => Some(snapshot),
                None => self.recurrent.snapshot(from.0),
            };
            self.recurrent.restore(to.0, snapshot.as_deref());
        }
        self.slots[to.0].position = len;
        Ok(len)
    }

    /// Writes a token's key and value of one layer. The position has to be reserved.
    pub(crate) fn append(&mut self, kernels: &Kernels, at: Place, key: &[f32], value: &[f32]) {
        let LayerPlace::Heads(kind, place) = &self.layers[at.layer] else {
            unreachable!("attention is no recurrent layer");
        };
        let token = (at.slot.0, at.position);
        self.kinds[*kind].append(kernels, *place, token, key, value);
    }

    /// How many tokens a row of an attention layer sees.
    pub(crate) fn window(&self, layer: usize) -> usize {
        match &self.layers[layer] {
            LayerPlace::Heads(kind, _) => self.kinds[*kind].window,
            LayerPlace::Recurrent(_) => 0,
        }
    }

    /// What a layer's head holds of a slot in these pages.
    pub(crate) fn head(
        &self,
        layer: usize,
        head: usize,
        slot: SlotId,
        pages: std::ops::Range<usize>,
    ) -> Head<'_> {
        let LayerPlace::Heads(kind, place) = &self.layers[layer] else {
            unreachable!("attention is no recurrent layer");
        };
        self.kinds[*kind].head(*place, head, slot.0, pages)
    }

    /// The rows that the convolution of a recurrent layer keeps.
    pub(crate) fn conv(&mut self, layer: usize, slot: SlotId) -> Kept<'_> {
        let LayerPlace::Recurrent(place) = &self.layers[layer] else {
            unreachable!("a convolution belongs to a recurrent layer");
        };
        self.recurrent.conv(slot.0, place)
    }

    /// The matrices of the heads of a recurrent layer.
    pub(crate) fn matrices(&mut self, layer: usize, slot: SlotId) -> Kept<'_> {
        let LayerPlace::Recurrent(place) = &self.layers[layer] else {
            unreachable!("a delta net belongs to a recurrent layer");
        };
        self.recurrent.heads(slot.0, place)
    }

    /// The last position up to `want` at which the slot can go on.
    fn reachable(&self, slot: SlotId, want: usize) -> usize {
        let it = &self.slots[slot.0];
        let want = want.min(it.position);
        let holds = |position: usize| {
            let kept = |kind: &Pages| kind.can_reach(slot.0, position);
            let checkpoint = it.checkpoints.iter().any(|c| c.position == position);
            let summed = self.recurrent.is_empty() || checkpoint || position == it.position;
            position == 0 || (summed && self.kinds.iter().all(kept))
        };
        let marks = it.checkpoints.iter().rev().map(|c| c.position);
        let mut candidates = std::iter::once(want).chain(marks.filter(|mark| *mark < want));
        candidates.find(|position| holds(*position)).unwrap_or(0)
    }

    /// False if there is too little memory or too few pages.
    fn grow(&mut self, slot: SlotId, tokens: usize) -> bool {
        let ready = self.recurrent.is_empty() || self.recurrent.ready(slot.0);
        ready && self.kinds.iter_mut().all(|kind| kind.grow(slot.0, tokens))
    }

    /// Gives back the pages past the position.
    fn trim(&mut self, slot: SlotId) {
        let position = self.position(slot);
        for kind in &mut self.kinds {
            kind.trim(slot.0, position);
        }
    }

    /// Gives back the pages that neither the position nor a checkpoint sees.
    fn forget(&mut self, slot: SlotId) {
        if self.kinds.len() == 1 {
            return;
        }
        let it = &self.slots[slot.0];
        let marks = it.checkpoints.iter().map(|c| c.position);
        let positions: Vec<usize> = marks.chain([it.position]).collect();
        for kind in &mut self.kinds {
            kind.forget(slot.0, &positions);
        }
    }

    fn full(&self, wanted: &[(SlotId, usize)]) -> SessionError {
        let free = self.kinds.iter().map(Pages::free_tokens).min();
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
