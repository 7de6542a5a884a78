//! The slots' state on the device: where it lies, and how it is copied. Which page holds what is
//! the bookkeeping that all backends share.

use std::cell::RefCell;
use std::rc::Rc;

use candor_arch::{CHECKPOINTS_MAX, KvType, PAGE_TOKENS, StateLayout, StateSizes};
use candor_backend::paging::{PageKind, Store};

use crate::buffer::{DevicePtr, Layout};
use crate::device::{Device, Fault};

/// One attention layer's keys and values, float16, in pages of 256 tokens:
/// `[page][kv_head][256][head_dim]` in each pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KvPlace {
    pub(crate) keys: DevicePtr,
    pub(crate) values: DevicePtr,
    /// `int [slots][pages_max]`: which page of the pool holds a slot's tokens from 256 i; -1 for
    /// none.
    pub(crate) pages: DevicePtr,
    pub(crate) pages_max: usize,
    pub(crate) n_kv_heads: usize,
    pub(crate) head_dim: usize,
    /// How many tokens a row sees, itself among them; 0 for all.
    pub(crate) window: usize,
}

impl KvPlace {
    /// Of one page, in either pool.
    fn page_bytes(&self) -> usize {
        KvType::F16.head_bytes(self.head_dim) * self.n_kv_heads * PAGE_TOKENS
    }
}

/// One recurrent layer's sums, float32. The address of a slot's values in a copy (0 or 1, see
/// `StepPtrs::source`) is the base plus `copy * copy_values + slot * slot_values` floats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecurrentPlace {
    /// Of copy 0 of slot 0: `[taps - 1][channels]`, the newest row last.
    pub(crate) conv: DevicePtr,
    /// Likewise: `[n_heads][state_size][state_size]`, values by keys.
    pub(crate) heads: DevicePtr,
    pub(crate) slot_values: usize,
    pub(crate) copy_values: usize,
}

/// The sums of all slots and layers.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Of all layers of a slot.
    values: usize,
    slots: usize,
    /// Both copies, then the snapshots.
    at: usize,
}

impl Sums {
    fn slot_bytes(&self) -> usize {
        self.values * 4
    }

    /// Snapshots that there is room for.
    fn snapshots(&self) -> usize {
        self.slots * CHECKPOINTS_MAX
    }

    fn bytes(&self) -> usize {
        (2 * self.slots + self.snapshots()) * self.slot_bytes()
    }

    fn copy(&self, copy: usize, slot: usize) -> usize {
        self.at + (copy * self.slots + slot) * self.slot_bytes()
    }

    fn snapshot(&self, number: usize) -> usize {
        self.at + (2 * self.slots + number) * self.slot_bytes()
    }
}

/// Where all layers' state lies, or would.
#[derive(Clone, Debug)]
pub(crate) struct StatePlan {
    layers: Vec<LayerPlace>,
    /// The first sees everything.
    kinds: Vec<PageKind>,
    /// Of each layer, in the order of `layers`; nothing for a recurrent one.
    kind_of: Vec<Option<usize>>,
    sums: Sums,
    bytes: usize,
    /// Pages of a slot: the row of a table.
    pages_max: usize,
}

#[derive(Clone, Copy, Debug)]
enum LayerPlace {
    Kv(KvPlace),
    Recurrent(RecurrentPlace),
}

impl StatePlan {
    /// Decides where everything is to lie; the addresses are offsets until [`StatePlan::at`].
    pub(crate) fn new(layouts: &[StateLayout], sizes: StateSizes) -> Self {
        let mut layout = Layout::default();
        let mut plan = Self {
            layers: Vec::with_capacity(layouts.len()),
            kinds: vec![PageKind {
                window: usize::MAX,
                pages_max: sizes.tokens.div_ceil(PAGE_TOKENS),
            }],
            kind_of: Vec::with_capacity(layouts.len()),
            sums: Sums {
                values: layouts.iter().map(StateLayout::values_per_slot).sum(),
                slots: sizes.slots,
                at: 0,
            },
            bytes: 0,
            pages_max: sizes.ctx_len.div_ceil(PAGE_TOKENS),
        };
        plan.sums.at = layout.place(plan.sums.bytes());
        let mut before = 0;
        for it in layouts {
            if let StateLayout::Recurrent { channels, taps, .. } = *it {
                let conv = plan.sums.copy(0, 0) + before * 4;
                plan.layers.push(LayerPlace::Recurrent(RecurrentPlace {
                    conv: DevicePtr(conv as u64),
                    heads: DevicePtr((conv + channels * (taps - 1) * 4) as u64),
                    slot_values: plan.sums.values,
                    copy_values: plan.sums.values * sizes.slots,
                }));
                plan.kind_of.push(None);
                before += it.values_per_slot();
                continue;
            }
            plan.add_attention(it, sizes, &mut layout);
        }
        plan.bytes = layout.bytes();
        plan
    }

    fn add_attention(&mut self, it: &StateLayout, sizes: StateSizes, layout: &mut Layout) {
        let (window, n_kv_heads, head_dim) = match *it {
            StateLayout::Window {
                tokens,
                n_kv_heads,
                head_dim,
            } => (Some(tokens), n_kv_heads, head_dim),
            StateLayout::Full {
                n_kv_heads,
                head_dim,
            } => (None, n_kv_heads, head_dim),
            StateLayout::Recurrent { .. } => return,
        };
        let kind = PageKind {
            window: window.unwrap_or(usize::MAX),
            pages_max: sizes.pages(it),
        };
        let same = |known: &PageKind| known.window == kind.window;
        let kind_idx = self.kinds.iter().position(same).unwrap_or_else(|| {
            self.kinds.push(kind);
            self.kinds.len() - 1
        });
        let mut place = KvPlace {
            keys: DevicePtr(0),
            values: DevicePtr(0),
            pages: DevicePtr(0),
            pages_max: self.pages_max,
            n_kv_heads,
            head_dim,
            window: window.unwrap_or(0),
        };
        let pool = self.kinds[kind_idx].pages_max * place.page_bytes();
        place.keys = DevicePtr(layout.place(pool) as u64);
        place.values = DevicePtr(layout.place(pool) as u64);
        self.layers.push(LayerPlace::Kv(place));
        self.kind_of.push(Some(kind_idx));
    }

    /// The same in memory; `tables` has a table for each kind, one after the other.
    pub(crate) fn at(mut self, base: DevicePtr, tables: DevicePtr) -> Self {
        let table_bytes = self.sums.slots * self.pages_max * 4;
        for (layer, kind) in self.layers.iter_mut().zip(&self.kind_of) {
            match layer {
                LayerPlace::Kv(place) => {
                    place.keys = base.plus(place.keys.0 as usize);
                    place.values = base.plus(place.values.0 as usize);
                    place.pages = tables.plus(kind.unwrap_or(0) * table_bytes);
                }
                LayerPlace::Recurrent(place) => {
                    place.conv = base.plus(place.conv.0 as usize);
                    place.heads = base.plus(place.heads.0 as usize);
                }
            }
        }
        self
    }

    /// Memory for all of it.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The kinds of pages.
    pub(crate) fn kinds(&self) -> &[PageKind] {
        &self.kinds
    }

    /// Entries of a slot in each table.
    pub(crate) fn pages_max(&self) -> usize {
        self.pages_max
    }

    /// Of an attention layer.
    pub(crate) fn kv(&self, layer: usize) -> KvPlace {
        match self.layers[layer] {
            LayerPlace::Kv(place) => place,
            LayerPlace::Recurrent(_) => unreachable!("attention is no recurrent layer"),
        }
    }

    /// Of a recurrent layer.
    pub(crate) fn recurrent(&self, layer: usize) -> RecurrentPlace {
        match self.layers[layer] {
            LayerPlace::Recurrent(place) => place,
            LayerPlace::Kv(_) => unreachable!("a recurrent layer is no attention"),
        }
    }
}

/// One snapshot's memory, free again when dropped.
pub(crate) struct Snapshot {
    number: usize,
    free: Rc<RefCell<Vec<usize>>>,
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.free.borrow_mut().push(self.number);
    }
}

/// The memory behind the bookkeeping. Copies are enqueued behind the forwards before them.
pub(crate) struct DeviceStore {
    device: Rc<Device>,
    base: DevicePtr,
    /// Keys, values and bytes of a page of each layer, by kind.
    pools: Vec<Vec<(DevicePtr, DevicePtr, usize)>>,
    sums: Sums,
    /// For each slot, which copy of its sums was committed.
    live: Vec<usize>,
    free: Rc<RefCell<Vec<usize>>>,
    /// The first copy that failed.
    fault: Option<Fault>,
}

impl DeviceStore {
    /// Over memory in which the plan begins at `base`. All sums are as before the first token.
    pub(crate) fn new(
        device: &Rc<Device>,
        plan: &StatePlan,
        base: DevicePtr,
    ) -> Result<Self, Fault> {
        let mut pools = vec![Vec::new(); plan.kinds.len()];
        for (layer, kind) in plan.layers.iter().zip(&plan.kind_of) {
            if let (LayerPlace::Kv(place), Some(kind)) = (layer, kind) {
                pools[*kind].push((place.keys, place.values, place.page_bytes()));
            }
        }
        let sums = plan.sums;
        if sums.bytes() > 0 {
            device.clear(base.plus(sums.at), sums.bytes())?;
        }
        Ok(Self {
            device: Rc::clone(device),
            base,
            pools,
            sums,
            live: vec![0; sums.slots],
            free: Rc::new(RefCell::new((0..sums.snapshots()).collect())),
            fault: None,
        })
    }

    /// Which copy of a slot's sums was committed.
    pub(crate) fn live(&self, slot: usize) -> usize {
        self.live[slot]
    }

    /// What was committed last counts no more: a forward failed after its slot had moved on.
    pub(crate) fn undo_commit(&mut self, slot: usize) {
        self.live[slot] ^= 1;
    }

    /// The first copy that failed since the last question.
    pub(crate) fn take_fault(&mut self) -> Option<Fault> {
        self.fault.take()
    }

    fn committed(&self, slot: usize) -> DevicePtr {
        self.base.plus(self.sums.copy(self.live[slot], slot))
    }

    fn note(&mut self, done: Result<(), Fault>) {
        if let Err(fault) = done {
            self.fault.get_or_insert(fault);
        }
    }
}

impl Store for DeviceStore {
    type Snapshot = Snapshot;

    fn has_sums(&self) -> bool {
        self.sums.values > 0
    }

    /// All pages are there from the beginning.
    fn make_page(&mut self, _kind: usize) -> bool {
        true
    }

    fn copy_page(&mut self, kind: usize, from: usize, to: usize) {
        for (keys, values, bytes) in self.pools[kind].clone() {
            for pool in [keys, values] {
                let (from, to) = (pool.plus(from * bytes), pool.plus(to * bytes));
                let done = self.device.copy(to, from, bytes);
                self.note(done);
            }
        }
    }

    fn ready(&mut self, _slot: usize) -> bool {
        true
    }

    fn commit(&mut self, slot: usize) {
        self.live[slot] ^= 1;
    }

    fn roll_back(&mut self, _slot: usize) {}

    fn snapshot(&mut self, slot: usize) -> Option<Snapshot> {
        let number = self.free.borrow_mut().pop()?;
        let snapshot = Snapshot {
            number,
            free: Rc::clone(&self.free),
        };
        let to = self.base.plus(self.sums.snapshot(number));
        let done = self
            .device
            .copy(to, self.committed(slot), self.sums.slot_bytes());
        self.note(done);
        Some(snapshot)
    }

    fn restore(&mut self, slot: usize, snapshot: Option<&Snapshot>) {
        let (to, bytes) = (self.committed(slot), self.sums.slot_bytes());
        let done = match snapshot {
            Some(snapshot) => {
                let from = self.base.plus(self.sums.snapshot(snapshot.number));
                self.device.copy(to, from, bytes)
            }
            None => self.device.clear(to, bytes),
        };
        self.note(done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::ALIGN;

    const FULL: StateLayout = StateLayout::Full {
        n_kv_heads: 2,
        head_dim: 64,
    };

    const WINDOW: StateLayout = StateLayout::Window {
        tokens: 512,
        n_kv_heads: 1,
        head_dim: 128,
    };

    const SUM: StateLayout = StateLayout::Recurrent {
        channels: 96,
        taps: 4,
        n_heads: 2,
        state_size: 16,
    };

    /// What is taken is what was said before, but for the gaps between the parts.
    #[track_caller]
    fn check(layouts: &[StateLayout], ctx_len: usize, slots: usize) {
        let sizes = StateSizes {
            kv: KvType::F16,
            ctx_len,
            slots,
            tokens: slots * ctx_len,
            threads: 1,
        };
        let said = sizes.pool_bytes(layouts);
        let taken = StatePlan::new(layouts, sizes).bytes() as u64;
        let gaps = ((2 * layouts.len() + 1) * ALIGN) as u64;
        let within = (said..=said + gaps).contains(&taken);
        assert!(
            within,
            "{layouts:?} {ctx_len} {slots}: {said} said, {taken} taken"
        );
    }

    #[test]
    fn a_state_takes_what_was_said() {
        for (ctx_len, slots) in [(1, 1), (300, 2), (4_096, 1), (100_000, 3)] {
            check(&[FULL], ctx_len, slots);
            check(&[WINDOW, FULL, WINDOW], ctx_len, slots);
            check(&[SUM, FULL, SUM], ctx_len, slots);
            check(&[SUM], ctx_len, slots);
        }
    }

    #[test]
    fn layers_lie_apart_and_kinds_have_tables_of_their_own() {
        let sizes = StateSizes::of_one(1_000, KvType::F16, 1);
        let plan = StatePlan::new(&[FULL, WINDOW, FULL], sizes);
        let windows: Vec<usize> = plan.kinds().iter().map(|kind| kind.window).collect();
        assert_eq!(windows, [usize::MAX, 512]);
        let plan = plan.at(DevicePtr(1 << 20), DevicePtr(1 << 10));
        let tables: Vec<u64> = (0..3).map(|layer| plan.kv(layer).pages.0).collect();
        assert_eq!(tables, [1024, 1024 + 4 * 4, 1024], "four pages hold a slot");
        let mut pools: Vec<u64> = (0..3)
            .flat_map(|layer| [plan.kv(layer).keys.0, plan.kv(layer).values.0])
            .collect();
        pools.dedup();
        assert!(pools.is_sorted() && pools.len() == 6, "{pools:?}");
    }
}
