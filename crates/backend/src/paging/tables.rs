//! Which pages of a pool hold the tokens of each slot, for the layers that see the same tokens.

use std::ops::Range;

use candor_arch::PAGE_TOKENS;

use super::PageKind;

/// The pages of all slots.
pub(super) struct Tables {
    kind: PageKind,
    /// Pages that were made so far: with those of a long context a state grows only once it is
    /// used.
    made: usize,
    free: Vec<usize>,
    /// For each slot: its page `i` holds the tokens from `i * PAGE_TOKENS`, if they are kept.
    slots: Vec<Vec<Option<usize>>>,
}

impl Tables {
    pub(super) fn new(kind: PageKind, slots: usize) -> Self {
        Self {
            kind,
            made: 0,
            free: Vec::new(),
            slots: vec![Vec::new(); slots],
        }
    }

    pub(super) fn window(&self) -> usize {
        self.kind.window
    }

    #[inline]
    pub(super) fn of(&self, slot: usize) -> &[Option<usize>] {
        &self.slots[slot]
    }

    /// Tokens for which there are pages still.
    pub(super) fn free_tokens(&self) -> usize {
        let held = self.slots.iter().flatten().flatten().count();
        self.kind.pages_max.saturating_sub(held) * PAGE_TOKENS
    }

    /// Makes room for the first `tokens` tokens of a slot. False if the pool has too few pages;
    /// `make` makes the memory of one more.
    pub(super) fn grow(
        &mut self,
        slot: usize,
        tokens: usize,
        mut make: impl FnMut() -> bool,
    ) -> bool {
        while self.slots[slot].len() * PAGE_TOKENS < tokens {
            let page = match self.free.pop() {
                Some(page) => page,
                None if self.made < self.kind.pages_max && make() => {
                    self.made += 1;
                    self.made - 1
                }
                None => return false,
            };
            self.slots[slot].push(Some(page));
        }
        true
    }

    /// The slot's next page is one that it does not hold.
    pub(super) fn leave_out(&mut self, slot: usize) {
        self.slots[slot].push(None);
    }

    /// Gives back the pages past a position.
    pub(super) fn trim(&mut self, slot: usize, position: usize) {
        let table = &mut self.slots[slot];
        let keep = position.div_ceil(PAGE_TOKENS).min(table.len());
        self.free.extend(table.drain(keep..).flatten());
    }

    /// Gives back the pages that none of these positions can see.
    pub(super) fn forget(&mut self, slot: usize, positions: &[usize]) {
        let window = self.kind.window;
        if window == usize::MAX {
            return;
        }
        for (page_idx, page) in self.slots[slot].iter_mut().enumerate() {
            let seen = positions
                .iter()
                .any(|position| pages_seen(window, *position).contains(&page_idx));
            if !seen {
                self.free.extend(page.take());
            }
        }
    }

    /// Whether the slot holds everything that a row at this position sees before itself.
    pub(super) fn can_reach(&self, slot: usize, position: usize) -> bool {
        let table = &self.slots[slot];
        let mut seen = pages_seen(self.kind.window, position);
        seen.all(|page| table.get(page).is_some_and(Option::is_some))
    }

    /// Whether a row at this position sees something of a page.
    pub(super) fn sees(&self, position: usize, page_idx: usize) -> bool {
        pages_seen(self.kind.window, position).contains(&page_idx)
    }
}

/// The pages of the tokens that a row at `position` sees before itself.
fn pages_seen(window: usize, position: usize) -> Range<usize> {
    let first = (position + 1).saturating_sub(window).min(position);
    first / PAGE_TOKENS..position.div_ceil(PAGE_TOKENS)
}
