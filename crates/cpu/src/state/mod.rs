//! What the slots remember: keys and values in pages, and the state of recurrent layers. Which page
//! holds what, and where a slot can be cut, is the bookkeeping that all backends share.

mod pages;
mod recurrent;
#[cfg(test)]
mod tests;

use candor_arch::{StateLayout, StateSizes};
use candor_backend::paging::{PageKind, Paging, Store};
use candor_backend::{KvType, SlotId};

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

/// Where a layer's state is.
enum LayerPlace {
    /// In pages of one kind.
    Heads(usize, HeadsPlace),
    Recurrent(RecurrentPlace),
}

/// Where the values are.
struct Values {
    /// By kind.
    kinds: Vec<Pages>,
    recurrent: Recurrent,
}

impl Store for Values {
    type Snapshot = Vec<f32>;

    fn has_sums(&self) -> bool {
        !self.recurrent.is_empty()
    }

    fn make_page(&mut self, kind: usize) -> bool {
        self.kinds[kind].make_page()
    }

    fn copy_page(&mut self, kind: usize, from: usize, to: usize) {
        self.kinds[kind].copy_page(from, to);
    }

    fn ready(&mut self, slot: usize) -> bool {
        self.recurrent.ready(slot)
    }

    fn commit(&mut self, slot: usize) {
        self.recurrent.commit(slot);
    }

    fn roll_back(&mut self, slot: usize) {
        self.recurrent.roll_back(slot);
    }

    fn snapshot(&mut self, slot: usize) -> Option<Vec<f32>> {
        self.recurrent.snapshot(slot)
    }

    fn restore(&mut self, slot: usize, snapshot: Option<&Vec<f32>>) {
        self.recurrent.restore(slot, snapshot.map(Vec::as_slice));
    }
}

/// The state of all slots.
pub(crate) struct State {
    kv: KvType,
    layers: Vec<LayerPlace>,
    paging: Paging<Values>,
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
        let kind = |window| PageKind {
            window,
            pages_max: sizes.tokens.div_ceil(PAGE_TOKENS),
        };
        let mut kinds = vec![kind(usize::MAX)];
        let mut pages = vec![Pages::new(sizes.kv)];
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
            let at = kinds.iter().position(|kind| kind.window == window);
            let at = at.unwrap_or_else(|| {
                kinds.push(kind(window));
                pages.push(Pages::new(sizes.kv));
                kinds.len() - 1
            });
            let place = HeadsPlace {
                offset: pages[at].page_units,
                n_kv_heads,
                head_dim,
                units: units(sizes.kv, head_dim),
            };
            pages[at].page_units += 2 * n_kv_heads * place.units * PAGE_TOKENS;
            layers.push(LayerPlace::Heads(at, place));
        }
        let values = Values {
            kinds: pages,
            recurrent,
        };
        Self {
            kv: sizes.kv,
            layers,
            paging: Paging::new(values, &kinds, sizes.slots, sizes.ctx_len),
        }
    }

    pub(crate) fn kv(&self) -> KvType {
        self.kv
    }

    /// Which tokens the slots hold.
    pub(crate) fn paging(&self) -> &Paging<impl Store + use<>> {
        &self.paging
    }

    /// The same, to be changed.
    pub(crate) fn paging_mut(&mut self) -> &mut Paging<impl Store + use<>> {
        &mut self.paging
    }

    /// Writes a token's key and value of one layer. The position has to be reserved.
    pub(crate) fn append(&mut self, kernels: &Kernels, at: Place, key: &[f32], value: &[f32]) {
        let LayerPlace::Heads(kind, place) = &self.layers[at.layer] else {
            unreachable!("attention is no recurrent layer");
        };
        let page = self.paging.pages(*kind, at.slot)[at.position / PAGE_TOKENS];
        let token = (page.expect("the position was reserved"), at.position);
        let kind = &mut self.paging.store_mut().kinds[*kind];
        kind.append(kernels, *place, token, key, value);
    }

    /// How many tokens a row of an attention layer sees.
    pub(crate) fn window(&self, layer: usize) -> usize {
        match &self.layers[layer] {
            LayerPlace::Heads(kind, _) => self.paging.window(*kind),
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
        let pages = &self.paging.pages(*kind, slot)[pages];
        self.paging.store().kinds[*kind].head(*place, head, pages)
    }

    /// The rows that the convolution of a recurrent layer keeps.
    pub(crate) fn conv(&mut self, layer: usize, slot: SlotId) -> Kept<'_> {
        let LayerPlace::Recurrent(place) = &self.layers[layer] else {
            unreachable!("a convolution belongs to a recurrent layer");
        };
        self.paging.store_mut().recurrent.conv(slot.0, place)
    }

    /// The matrices of the heads of a recurrent layer.
    pub(crate) fn matrices(&mut self, layer: usize, slot: SlotId) -> Kept<'_> {
        let LayerPlace::Recurrent(place) = &self.layers[layer] else {
            unreachable!("a delta net belongs to a recurrent layer");
        };
        self.paging.store_mut().recurrent.heads(slot.0, place)
    }
}
