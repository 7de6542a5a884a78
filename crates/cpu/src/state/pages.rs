//! Keys and values in pages of [`PAGE_TOKENS`] tokens from one pool.
//!
//! A page holds all layers of one kind. In it, each head of a layer's keys (then of its values) is
//! a block of `PAGE_TOKENS` times `head_dim` values, so that attention reads one head in one run.
//! In float32 a block holds token after token; in float16 and in 8 bits the kernels decide.

use std::ops::Range;

use bytemuck::Pod;
use candor_backend::KvType;

use crate::simd::{Arena, CodedHead, KV_PAGE, Kernels, KvHead, Region, append_coded};

/// Tokens of a page. Attention is summed page by page, so this number is part of the arithmetic.
pub(crate) const PAGE_TOKENS: usize = KV_PAGE;

/// The values of a page, of the kind of its state, in large pages of memory: a reply after a long
/// context reads little else.
struct Page(Region);

impl Page {
    /// `None` if the memory is not to be had.
    fn new(bytes: usize) -> Option<Self> {
        Arena::new(bytes)?.take(bytes).map(Self)
    }
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
            let page = &mut self.pages[page].0;
            // All keys of a layer lie before all of its values.
            match self.kv {
                KvType::F32 => {
                    let row = position % PAGE_TOKENS * head_dim;
                    let page = page.as_mut_slice::<f32>();
                    page[keys][row..row + head_dim].copy_from_slice(key);
                    page[values][row..row + head_dim].copy_from_slice(value);
                }
                KvType::F16 => {
                    let (front, back) = page.as_mut_slice().split_at_mut(values.start);
                    let values = &mut back[..keys.len()];
                    kernels.append(position, key, value, &mut front[keys], values);
                }
                KvType::Q8_0 => {
                    let (front, back) = page.as_mut_slice().split_at_mut(values.start);
                    let values = &mut back[..keys.len()];
                    append_coded(position, key, value, (&mut front[keys], values));
                }
            }
        }
    }

    /// A head's keys and values in these pages, all of which are kept.
    pub(super) fn head(&self, place: HeadsPlace, head: usize, pages: &[Option<usize>]) -> Head<'_> {
        let (keys, values) = place.blocks(head);
        let pages = pages.iter().flatten().map(|page| &self.pages[*page].0);
        match self.kv {
            KvType::F32 => Head::F32(blocks(pages, keys, values, |keys, values| FloatHead {
                keys,
                values,
            })),
            KvType::F16 => Head::F16(blocks(pages, keys, values, |keys, values| KvHead {
                keys,
                values,
            })),
            KvType::Q8_0 => Head::Q8(blocks(pages, keys, values, |keys, values| CodedHead {
                keys,
                values,
            })),
        }
    }

    /// Makes one more page. False if the memory is not to be had.
    pub(super) fn make_page(&mut self) -> bool {
        let unit_bytes = match self.kv {
            KvType::F32 => size_of::<f32>(),
            KvType::F16 => size_of::<u16>(),
            KvType::Q8_0 => 1,
        };
        let page = self.page_units.checked_mul(unit_bytes).and_then(Page::new);
        let made = page.is_some();
        self.pages.extend(page);
        made
    }

    pub(super) fn copy_page(&mut self, source: usize, target: usize) {
        if let Ok([source, target]) = self.pages.get_disjoint_mut([source, target]) {
            let source = source.0.as_slice::<u8>();
            target.0.as_mut_slice::<u8>().copy_from_slice(source);
        }
    }
}

/// The keys and values of one head in each of some pages.
fn blocks<'a, T: Pod, H>(
    pages: impl Iterator<Item = &'a Region>,
    keys: Range<usize>,
    values: Range<usize>,
    head: impl Fn(&'a [T], &'a [T]) -> H,
) -> Vec<H> {
    let head = |page: &'a Region| {
        let page = page.as_slice();
        head(&page[keys.clone()], &page[values.clone()])
    };
    pages.map(head).collect()
}

/// `None` if the memory is not to be had.
pub(super) fn zeroed<T: Copy>(len: usize, zero: T) -> Option<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).ok()?;
    values.resize(len, zero);
    Some(values)
}
