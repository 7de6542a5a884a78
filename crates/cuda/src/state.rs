//! Where the slots' state lies on the device.

use crate::buffer::DevicePtr;

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

/// The addresses of all layers' state.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatePlan {
    layers: Vec<LayerPlace>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum LayerPlace {
    Kv(KvPlace),
    Recurrent(RecurrentPlace),
}

impl StatePlan {
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
