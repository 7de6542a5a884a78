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

/// The pages of one kind of layers, made when first needed.
pub(super) struct Pages {
    kv: KvType,
    /// Units of a page; see [`units`].
    pub(super) page_units: usize,
    pages: Vec<Page>,
}

impl Pages {
    pub(super) fn new(kv: KvType) -> Self {
        Self {
            kv,
            page_units: 0,
            pages: Vec::new(),
        }
    }

    /// Pages that were made so far.
    #[cfg(test)]
    pub(super) fn made(&self) -> usize {
        self.pages.len()
    }

    /// Writes a token's key and value of one layer into a page.
    pub(super) fn append(
        &mut self,
        kernels: &Kernels,
        place: HeadsPlace,
        (page, position): (usize, usize),
        key: &[f32],
        value: &[f32],
    ) {
        let head_dim = place.head_dim;
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

    /// A head's keys and values in these pages, all of which are kept.
    pub(super) fn head(&self, place: HeadsPlace, head: usize, pages: &[Option<usize>]) -> Head<'_> {
        let (keys, values) = place.blocks(head);
        // All pages of a state are of its one type.
        let mut head = match self.kv {
            KvType::F32 => Head::F32(Vec::with_capacity(pages.len())),
            KvType::F16 => Head::F16(Vec::with_capacity(pages.len())),
            KvType::Q8_0 => Head::Q8(Vec::with_capacity(pages.len())),
        };
        for page in pages.iter().flatten() {
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

    /// Makes one more page. False if the memory is not to be had.
    pub(super) fn make_page(&mut self) -> bool {
        let units = self.page_units;
        let page = match self.kv {
            KvType::F32 => zeroed(units, 0.0).map(Page::F32),
            KvType::F16 => zeroed(units, 0).map(Page::F16),
            KvType::Q8_0 => zeroed(units, 0).map(Page::Q8),
        };
        let made = page.is_some();
        self.pages.extend(page);
        made
    }

    pub(super) fn copy_page(&mut self, source: usize, target: usize) {
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

/// `None` if the memory is not to be had.
pub(super) fn zeroed<T: Copy>(len: usize, zero: T) -> Option<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).ok()?;
    values.resize(len, zero);
    Some(values)
}
