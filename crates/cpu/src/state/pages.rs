//! Keys and values in pages of [`PAGE_TOKENS`] tokens from one pool.
//!
//! A page holds all layers of one kind. In it, each head of a layer's keys (then of its values) is
//! a block of `PAGE_TOKENS` times `head_dim` values, so that attention reads one head in one run.
//! In float32 a block holds token after token; in float16 and in 8 bits the kernels decide.

use std::ops::Range;

use candor_backend::KvType;

use crate::simd::{CodedHead, KV_PAGE, Kernels, KvHead, append_coded};

/// Tokens of a page. Attention is summed page by page, so this number is part of the arithmetic.
pub(crate) const PAGE_TOKENS: usize = KV_PAGE;

/// The values of a page.
enum Page {
    F32(Vec<f32>),
    F16(Vec<u16>),
    Q8(Vec<u8>),
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
    Q8(Vec<CodedHead<'a>>),
}

/// Where the heads of one layer begin in a page.
#[derive(Clone, Copy)]
pub(super) struct HeadsPlace {
    pub(super) offset: usize,
    pub(super) n_kv_heads: usize,
    pub(super) head_dim: usize,
    /// Of a page, for a key or a value of one head.
    pub(super) units: usize,
}

/// What a page counts in, for a key or a value of one head: values, or bytes.
pub(super) fn units(kv: KvType, head_dim: usize) -> usize {
    match kv {
        KvType::F32 | KvType::F16 => head_dim,
        KvType::Q8_0 => kv.head_bytes(head_dim),
    }
}

impl HeadsPlace {
    /// Where a head's keys and values lie in a page.
    fn blocks(&self, head: usize) -> (Range<usize>, Range<usize>) {
        let size = PAGE_TOKENS * self.units;
        let keys = self.offset + head * size;
        let values = keys + self.n_kv_heads * size;
        (keys..keys + size, values..values + size)
    }
}

/// The pages of all slots, for the layers that see the same tokens.
pub(super) struct Pages {
    kv: KvType,
    /// How many tokens a row of these layers sees.
    pub(super) window: usize,
    /// Units of a page; see [`units`].
    pub(super) page_units: usize,
    pages_max: usize,
    /// Made when first needed, so that a long context costs memory only once it is used.
    pages: Vec<Page>,
    free: Vec<usize>,
    /// For each slot: its page `i` holds the tokens from `i * PAGE_TOKENS`, if they are kept.
    tables: Vec<Vec<Option<usize>>>,
}

impl Pages {
    pub(super) fn new(kv: KvType, window: usize, pages_max: usize, slots: usize) -> Self {
        Self {
            kv,
            window,
            page_units: 0,
            pages_max,
            pages: Vec::new(),
            free: Vec::new(),
            tables: vec![Vec::new(); slots],
        }
    }

    /// Tokens for which there are pages still.
    pub(super) fn free_tokens(&self) -> usize {
        let held = self.tables.iter().flatten().flatten().count();
        self.pages_max.saturating_sub(held) * PAGE_TOKENS
    }

    /// Pages that were made so far.
    #[cfg(test)]
    pub(super) fn made(&self) -> usize {
        self.pages.len()
    }

    /// Makes room for the first `tokens` tokens of a slot. False if the pool has too few pages.
    pub(super) fn grow(&mut self, slot: usize, tokens: usize) -> bool {
        while self.tables[slot].len() * PAGE_TOKENS < tokens {
            let Some(page) = self.free.pop().or_else(|| self.make_page()) else {
                return false;
            };
            self.tables[slot].push(Some(page));
        }
        true
    }

    /// Gives back the pages past a position.
    pub(super) fn trim(&mut self, slot: usize, position: usize) {
        let table = &mut self.tables[slot];
        let keep = position.div_ceil(PAGE_TOKENS).min(table.len());
        self.free.extend(table.drain(keep..).flatten());
    }

    /// Gives back the pages that none of these positions can see.
    pub(super) fn forget(&mut self, slot: usize, positions: &[usize]) {
        if self.window == usize::MAX {
            return;
        }
        let window = self.window;
        let table = &mut self.tables[slot];
        for (page_idx, page) in table.iter_mut().enumerate() {
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
        let table = &self.tables[slot];
        pages_seen(self.window, position).all(|page| table.get(page).is_some_and(Option::is_some))
    }

    /// Copies what a row at position `len` sees from one slot to another, which is empty. False
    /// if the pool has too few pages.
    pub(super) fn copy(&mut self, from: usize, to: usize, len: usize) -> bool {
        for page_idx in 0..len.div_ceil(PAGE_TOKENS) {
            if !pages_seen(self.window, len).contains(&page_idx) {
                self.tables[to].push(None);
                continue;
            }
            if !self.grow(to, (page_idx + 1) * PAGE_TOKENS) {
                return false;
            }
            let pair = (self.tables[from][page_idx], self.tables[to][page_idx]);
            if let (Some(source), Some(target)) = pair {
                self.copy_page(source, target);
            }
        }
        true
    }

    /// Writes a token's key and value of one layer. The position has to have a page.
    pub(super) fn append(
        &mut self,
        kernels: &Kernels,
        place: HeadsPlace,
        (slot, position): (usize, usize),
        key: &[f32],
        value: &[f32],
    ) {
        let head_dim = place.head_dim;
        let page = self.tables[slot][position / PAGE_TOKENS].expect("the position was reserved");
        let heads = key.chunks_exact(head_dim).zip(value.chunks_exact(head_dim));
        for (head, (key, value)) in heads.enumerate() {
            let (keys, values) = place.blocks(head);
            match &mut self.pages[page] {
                Page::F32(page) => {
                    let row = position % PAGE_TOKENS * head_dim;
                    page[keys][row..row + head_dim].copy_from_slice(key);
                    page[values][row..row + head_dim].copy_from_slice(value);
                }
                Page::F16(page) => {
                    // All keys of a layer lie before all of its values.
                    let (front, back) = page.split_at_mut(values.start);
                    let values = &mut back[..keys.len()];
                    kernels.append(position, key, value, &mut front[keys], values);
                }
                Page::Q8(page) => {
                    let (front, back) = page.split_at_mut(values.start);
                    let values = &mut back[..keys.len()];
                    append_coded(position, key, value, (&mut front[keys], values));
                }
            }
        }
    }

    /// A head's keys and values in some pages of a slot, all of which are kept.
    pub(super) fn head(
        &self,
        place: HeadsPlace,
        head: usize,
        slot: usize,
        pages: Range<usize>,
    ) -> Head<'_> {
        let (keys, values) = place.blocks(head);
        // All pages of a state are of its one type.
        let mut head = match self.kv {
            KvType::F32 => Head::F32(Vec::with_capacity(pages.len())),
            KvType::F16 => Head::F16(Vec::with_capacity(pages.len())),
            KvType::Q8_0 => Head::Q8(Vec::with_capacity(pages.len())),
        };
        for page in self.tables[slot][pages].iter().flatten() {
            let (keys, values) = (keys.clone(), values.clone());
            match (&mut head, &self.pages[*page]) {
                (Head::F32(pages), Page::F32(page)) => pages.push(FloatHead {
                    keys: &page[keys],
                    values: &page[values],
                }),
                (Head::F16(pages), Page::F16(page)) => pages.push(KvHead {
                    keys: &page[keys],
                    values: &page[values],
                }),
                (Head::Q8(pages), Page::Q8(page)) => pages.push(CodedHead {
                    keys: &page[keys],
                    values: &page[values],
                }),
                _ => {}
            }
        }
        head
    }

    fn make_page(&mut self) -> Option<usize> {
        if self.pages.len() >= self.pages_max {
            return None;
        }
        let page = match self.kv {
            KvType::F32 => Page::F32(zeroed(self.page_units, 0.0)?),
            KvType::F16 => Page::F16(zeroed(self.page_units, 0)?),
            KvType::Q8_0 => Page::Q8(zeroed(self.page_units, 0)?),
        };
        self.pages.push(page);
        Some(self.pages.len() - 1)
    }

    fn copy_page(&mut self, source: usize, target: usize) {
        let Ok([source, target]) = self.pages.get_disjoint_mut([source, target]) else {
            return;
        };
        match (source, target) {
            (Page::F32(source), Page::F32(target)) => target.copy_from_slice(source),
            (Page::F16(source), Page::F16(target)) => target.copy_from_slice(source),
            (Page::Q8(source), Page::Q8(target)) => target.copy_from_slice(source),
            _ => {}
        }
    }
}

/// The pages of the tokens that a row at `position` sees before itself.
fn pages_seen(window: usize, position: usize) -> Range<usize> {
    let first = (position + 1).saturating_sub(window).min(position);
    first / PAGE_TOKENS..position.div_ceil(PAGE_TOKENS)
}

/// `None` if the memory is not to be had.
pub(super) fn zeroed<T: Copy>(len: usize, zero: T) -> Option<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).ok()?;
    values.resize(len, zero);
    Some(values)
}
