//! Memory that begins on a cache line.

use bytemuck::{Pod, Zeroable};

/// Bytes of a cache line, and of the widest register.
pub(crate) const LINE_BYTES: usize = 64;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; LINE_BYTES]);

/// Zeroed bytes that begin on a cache line. The zero pages come from the system untouched, so
/// that the threads that fill them are the first to write to them.
pub(crate) struct Buffer {
    lines: Vec<Line>,
}

impl Buffer {
    /// At least `bytes` zero bytes.
    pub(crate) fn zeroed(bytes: usize) -> Self {
        Self {
            lines: bytemuck::allocation::zeroed_vec(bytes.div_ceil(LINE_BYTES)),
        }
    }

    /// The contents as numbers of some plain kind.
    pub(crate) fn as_slice<T: Pod>(&self) -> &[T] {
        bytemuck::cast_slice(&self.lines)
    }

    /// The contents as numbers of some plain kind, to write.
    pub(crate) fn as_mut_slice<T: Pod>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.lines)
    }

    /// How many bytes it holds.
    pub(crate) fn size_bytes(&self) -> usize {
        self.lines.len() * LINE_BYTES
    }
}
