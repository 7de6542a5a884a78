//! What recurrent layers keep: for each slot, the last rows of each convolution and a matrix for
//! each head.
//!
//! It is kept twice. A forward reads what was committed where it comes to a layer first, and
//! writes the other copy; a commit exchanges the two, so that a stopped forward leaves no trace.

use std::ops::Range;

use candor_arch::StateLayout;

use super::pages::zeroed;

/// Where one layer's values are.
#[derive(Clone)]
pub(super) struct RecurrentPlace {
    /// Its number among the recurrent layers.
    number: usize,
    conv: Range<usize>,
    heads: Range<usize>,
}

/// One part of a layer's state of a slot.
pub(crate) struct Kept<'a> {
    /// What was committed, where the forward comes here first: `now` is then to be overwritten.
    pub(crate) before: Option<&'a [f32]>,
    /// What the forward writes.
    pub(crate) now: &'a mut [f32],
}

#[derive(Default)]
struct SlotState {
    committed: Vec<f32>,
    next: Vec<f32>,
    /// For each layer, whether its convolution and its heads were written by this forward.
    written: Vec<[bool; 2]>,
}

/// The recurrent state of all slots.
pub(super) struct Recurrent {
    n_layers: usize,
    values: usize,
    slots: Vec<SlotState>,
}

impl Recurrent {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            n_layers: 0,
            values: 0,
            slots: (0..slots).map(|_| SlotState::default()).collect(),
        }
    }

    /// Makes a place for another layer.
    pub(super) fn add_layer(&mut self, layout: &StateLayout, conv_values: usize) -> RecurrentPlace {
        let start = self.values;
        self.values += layout.values_per_slot();
        self.n_layers += 1;
        RecurrentPlace {
            number: self.n_layers - 1,
            conv: start..start + conv_values,
            heads: start + conv_values..self.values,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.n_layers == 0
    }

    /// Makes the memory of a slot at its first use. False if it is not to be had.
    pub(super) fn ready(&mut self, slot: usize) -> bool {
        let (values, n_layers) = (self.values, self.n_layers);
        let slot = &mut self.slots[slot];
        if slot.committed.len() == values {
            return true;
        }
        let (Some(committed), Some(next)) = (zeroed(values, 0.0), zeroed(values, 0.0)) else {
            return false;
        };
        slot.committed = committed;
        slot.next = next;
        slot.written = vec![[false; 2]; n_layers];
        true
    }

    /// The rows that a layer's convolution keeps.
    pub(super) fn conv(&mut self, slot: usize, place: &RecurrentPlace) -> Kept<'_> {
        self.slots[slot].kept(place.number, 0, place.conv.clone())
    }

    /// The matrices of a layer's heads.
    pub(super) fn heads(&mut self, slot: usize, place: &RecurrentPlace) -> Kept<'_> {
        self.slots[slot].kept(place.number, 1, place.heads.clone())
    }

    pub(super) fn commit(&mut self, slot: usize) {
        let slot = &mut self.slots[slot];
        std::mem::swap(&mut slot.committed, &mut slot.next);
        slot.written.fill([false; 2]);
    }

    pub(super) fn roll_back(&mut self, slot: usize) {
        self.slots[slot].written.fill([false; 2]);
    }

    /// A copy of what was committed. None if the memory is not to be had.
    pub(super) fn snapshot(&self, slot: usize) -> Option<Vec<f32>> {
        let committed = &self.slots[slot].committed;
        let mut copy = zeroed(committed.len(), 0.0)?;
        copy.copy_from_slice(committed);
        Some(copy)
    }

    /// Puts a copy back; nothing is the state before the first token.
    pub(super) fn restore(&mut self, slot: usize, snapshot: Option<&[f32]>) {
        let committed = &mut self.slots[slot].committed;
        match snapshot {
            Some(snapshot) => committed.copy_from_slice(snapshot),
            None => committed.fill(0.0),
        }
    }
}

impl SlotState {
    fn kept(&mut self, layer: usize, part: usize, range: Range<usize>) -> Kept<'_> {
        let written = std::mem::replace(&mut self.written[layer][part], true);
        Kept {
            before: (!written).then(|| &self.committed[range.clone()]),
            now: &mut self.next[range],
        }
    }
}
