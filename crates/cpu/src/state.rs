//! What the slots remember: keys and values in pages of [`PAGE_TOKENS`] tokens from one pool.
//!
//! A page holds every layer of its tokens. In it, each head of a layer's keys (then of its values)
//! is a block of `PAGE_TOKENS` times `head_dim` values, so that attention reads one head in one
//! run. In float32 a block holds token after token; in float16 the kernels decide.

use std::ops::Range;

use candor_arch::StateLayout;
use candor_backend::{KvType, SessionError, SlotId};

use crate::simd::{KV_PAGE, Kernels, KvHead};

/// Tokens of a page. Attention is summed page by page, so this number is part of the arithmetic.
pub(crate) const PAGE_TOKENS: usize = KV_PAGE;

/// The values of a page.
enum Page {
    F32(Vec<f32>),
    F16(Vec<u16>),
}

/// One head's keys and values of one page in float32.
#[derive(Clone, Copy)]
pub(crate) struct FloatHead<'a> {
    pub(crate) keys: &'a [f32],
    pub(crate) values: &'a [f32],
}

/// One head's keys and values of a slot, page by page.
pub(crate) enum Head<'a> {
    F32(Vec<FloatHead<'a>>),
    F16(Vec<KvHead<'a>>),
}

/// A token's place in one layer's state.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) layer: usize,
    pub(crate) slot: SlotId,
    pub(crate) position: usize,
}

#[derive(Default)]
struct Slot {
    /// Page `i` holds the tokens from `i * PAGE_TOKENS`.
    pages: Vec<usize>,
    position: usize,
}

/// Where the heads of one layer begin in a page.
struct LayerPlace {
    offset: usize,
    n_kv_heads: usize,
    head_dim: usize,
}

/// The state of all slots.
pub(crate) struct State {
    kv: KvType,
    layers: Vec<LayerPlace>,
    page_values: usize,
    pages_max: usize,
    /// Made when first needed, so that a long context costs memory only once it is used.
    pages: Vec<Page>,
    free: Vec<usize>,
    slots: Vec<Slot>,
    ctx_len: usize,
}

/// How large a state is to be.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) kv: KvType,
    pub(crate) ctx_len: usize,
    pub(crate) slots: usize,
    pub(crate) tokens: usize,
}

impl State {
    pub(crate) fn new(layouts: &[StateLayout], sizes: Sizes) -> Self {
        let mut offset = 0;
        let mut layers = Vec::with_capacity(layouts.len());
        for layout in layouts {
            let StateLayout::Full {
                n_kv_heads,
                head_dim,
            } = *layout;
            layers.push(LayerPlace {
                offset,
                n_kv_heads,
                head_dim,
            });
            offset += layout.values_per_token() * PAGE_TOKENS;
        }
        Self {
            kv: sizes.kv,
            layers,
            page_values: offset,
            pages_max: sizes.tokens.div_ceil(PAGE_TOKENS),
            pages: Vec::new(),
            free: Vec::new(),
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
                let full = self.full(wanted);
                self.roll_back(wanted);
                return Err(full);
            }
        }
        Ok(())
    }

    /// The tokens were computed: the slots move on.
    pub(crate) fn commit(&mut self, wanted: &[(SlotId, usize)]) {
        for &(slot, more) in wanted {
            self.slots[slot.0].position += more;
        }
    }

    /// They were not: the room goes back.
    pub(crate) fn roll_back(&mut self, wanted: &[(SlotId, usize)]) {
        for &(slot, _) in wanted {
            self.trim(slot);
        }
    }

    /// Forgets what lies past `want`.
    pub(crate) fn seek(&mut self, slot: SlotId, want: usize) -> Result<usize, SessionError> {
        self.know(slot)?;
        let reached = want.min(self.slots[slot.0].position);
        self.slots[slot.0].position = reached;
        self.trim(slot);
        Ok(reached)
    }

    /// Copies the first tokens of one slot over another.
    pub(crate) fn fork(
        &mut self,
        from: SlotId,
        to: SlotId,
        len: usize,
    ) -> Result<usize, SessionError> {
        self.know(from)?;
        self.know(to)?;
        let len = len.min(self.position(from));
        if from == to {
            return self.seek(to, len);
        }
        self.seek(to, 0)?;
        if !self.grow(to, len) {
            let full = self.full(&[(to, len)]);
            self.trim(to);
            return Err(full);
        }
        for i in 0..len.div_ceil(PAGE_TOKENS) {
            let (source, target) = (self.slots[from.0].pages[i], self.slots[to.0].pages[i]);
            self.copy_page(source, target);
        }
        self.slots[to.0].position = len;
        Ok(len)
    }

    /// Writes a token's key and value of one layer. The position has to be reserved.
    pub(crate) fn append(&mut self, kernels: &Kernels, at: Place, key: &[f32], value: &[f32]) {
        let head_dim = self.layers[at.layer].head_dim;
        let page = self.slots[at.slot.0].pages[at.position / PAGE_TOKENS];
        let heads = key.chunks_exact(head_dim).zip(value.chunks_exact(head_dim));
        for (head, (key, value)) in heads.enumerate() {
            let (keys, values) = self.blocks(at.layer, head);
            match &mut self.pages[page] {
                Page::F32(page) => {
                    let row = at.position % PAGE_TOKENS * head_dim;
                    page[keys][row..row + head_dim].copy_from_slice(key);
                    page[values][row..row + head_dim].copy_from_slice(value);
                }
                Page::F16(page) => {
                    // All keys of a layer lie before all of its values.
                    let (front, back) = page.split_at_mut(values.start);
                    let values = &mut back[..keys.len()];
                    kernels.append(at.position, key, value, &mut front[keys], values);
                }
            }
        }
    }

    /// What a layer's head holds of the first `tokens` tokens of a slot.
    pub(crate) fn head(&self, layer: usize, head: usize, slot: SlotId, tokens: usize) -> Head<'_> {
        let (keys, values) = self.blocks(layer, head);
        let pages = &self.slots[slot.0].pages[..tokens.div_ceil(PAGE_TOKENS)];
        match self.kv {
            KvType::F32 => Head::F32(
                pages
                    .iter()
                    .filter_map(|page| match &self.pages[*page] {
                        Page::F32(page) => Some(FloatHead {
                            keys: &page[keys.clone()],
                            values: &page[values.clone()],
                        }),
                        Page::F16(_) => None,
                    })
                    .collect(),
            ),
            KvType::F16 => Head::F16(
                pages
                    .iter()
                    .filter_map(|page| match &self.pages[*page] {
                        Page::F16(page) => Some(KvHead {
                            keys: &page[keys.clone()],
                            values: &page[values.clone()],
                        }),
                        Page::F32(_) => None,
                    })
                    .collect(),
            ),
        }
    }

    /// Where a head's keys and values lie in a page.
    fn blocks(&self, layer: usize, head: usize) -> (Range<usize>, Range<usize>) {
        let place = &self.layers[layer];
        let size = PAGE_TOKENS * place.head_dim;
        let keys = place.offset + head * size;
        let values = keys + place.n_kv_heads * size;
        (keys..keys + size, values..values + size)
    }

    /// False if the pool has too few pages.
    fn grow(&mut self, slot: SlotId, tokens: usize) -> bool {
        while self.slots[slot.0].pages.len() * PAGE_TOKENS < tokens {
            let Some(page) = self.free.pop().or_else(|| self.make_page()) else {
                return false;
            };
            self.slots[slot.0].pages.push(page);
        }
        true
    }

    fn make_page(&mut self) -> Option<usize> {
        if self.pages.len() >= self.pages_max {
            return None;
        }
        let page = match self.kv {
            KvType::F32 => Page::F32(zeroed(self.page_values, 0.0)?),
            KvType::F16 => Page::F16(zeroed(self.page_values, 0)?),
        };
        self.pages.push(page);
        Some(self.pages.len() - 1)
    }

    /// Gives back the pages past the position.
    fn trim(&mut self, slot: SlotId) {
        let slot = &mut self.slots[slot.0];
        let keep = slot.position.div_ceil(PAGE_TOKENS);
        let spare = slot.pages.split_off(keep.min(slot.pages.len()));
        self.free.extend(spare);
    }

    fn full(&self, wanted: &[(SlotId, usize)]) -> SessionError {
        let used: usize = self
            .slots
            .iter()
            .map(|s| s.position.div_ceil(PAGE_TOKENS))
            .sum();
        let room_in_pages: usize = wanted
            .iter()
            .map(|(slot, _)| {
                self.position(*slot).next_multiple_of(PAGE_TOKENS) - self.position(*slot)
            })
            .sum();
        SessionError::StateFull {
            asked: wanted.iter().map(|(_, more)| more).sum(),
            free: self.pages_max.saturating_sub(used) * PAGE_TOKENS + room_in_pages,
        }
    }

    fn copy_page(&mut self, source: usize, target: usize) {
        let Ok([source, target]) = self.pages.get_disjoint_mut([source, target]) else {
            return;
        };
        match (source, target) {
            (Page::F32(source), Page::F32(target)) => target.copy_from_slice(source),
            (Page::F16(source), Page::F16(target)) => target.copy_from_slice(source),
            // All pages of a state are of its one type.
            _ => {}
        }
    }
}

/// `None` if the memory is not to be had.
fn zeroed<T: Copy>(len: usize, zero: T) -> Option<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).ok()?;
    values.resize(len, zero);
    Some(values)
}
