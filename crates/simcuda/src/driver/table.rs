//! Objects by handle.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use super::codes::Code;
use super::{Handle, Outcome};

/// Where handles begin: far from anything that a program could mistake for one, and a page that no
/// process has, so that whoever reads through a handle notices.
const FIRST: u64 = 0x5c00_0000_0000_0010;

/// Between two handles.
const STRIDE: u64 = 0x10;

/// One row of numbers for all kinds of objects, so that none passes for one of another kind.
static NEXT: AtomicU64 = AtomicU64::new(FIRST);

/// The live objects of one kind.
pub(crate) struct Table<T>(BTreeMap<Handle, T>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Table<T> {
    pub(crate) fn insert(&mut self, object: T) -> Handle {
        let handle = NEXT.fetch_add(STRIDE, Ordering::Relaxed);
        self.0.insert(handle, object);
        handle
    }

    pub(crate) fn get(&self, handle: Handle) -> Outcome<&T> {
        self.0.get(&handle).ok_or(Code::INVALID_HANDLE)
    }

    pub(crate) fn get_mut(&mut self, handle: Handle) -> Outcome<&mut T> {
        self.0.get_mut(&handle).ok_or(Code::INVALID_HANDLE)
    }

    pub(crate) fn remove(&mut self, handle: Handle) -> Outcome<T> {
        self.0.remove(&handle).ok_or(Code::INVALID_HANDLE)
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.0.retain(|_, object| keep(object));
    }

    pub(crate) fn for_each(&mut self, change: impl FnMut(&mut T)) {
        self.0.values_mut().for_each(change);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Handle, &T)> {
        self.0.iter().map(|(handle, object)| (*handle, object))
    }
}
