//! The kernels: what the threads of the fast path compute with.
//!
//! Three tables of the same functions, for AVX-512 with VNNI, for AVX2 with FMA and F16C, and
//! portable. The first two share one body, `wide`, over registers of different widths; only what
//! multiplies small integers is their own. [`choose`] takes the best that the machine has, after holding each of its functions
//! against the scalar truth of `candor_quant`. Nothing here knows threads, models or sessions.
//!
//! A row's result never depends on the rows that are computed beside it: see
//! [`format`](self::format) for the linear kernels and [`attention`] for attention.

mod arena;
mod attention;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod buffer;
mod check;
mod coded;
mod delta;
pub(crate) mod exact;
mod exp;
mod format;
mod interleave;
mod kernels;
mod levels;
mod number;
mod packed;
mod panel;
mod portable;
#[cfg(test)]
mod tests;
mod tiles;
#[cfg(target_arch = "x86_64")]
mod wide;

pub(crate) use arena::{Arena, Region};
pub(crate) use attention::{Attention, KV_PAGE, KvHead, part_numbers};
pub(crate) use coded::{CodedHead, append_coded};
pub(crate) use delta::DeltaStep;
pub(crate) use format::GROUP_ROWS;
pub use format::packed_types;
pub use kernels::Isa;
pub(crate) use kernels::{Chosen, Input, Kernels, choose};
pub(crate) use packed::{InputKind, Packed};
pub(crate) use panel::Panel;
pub(crate) use tiles::{Tile, TileQueue, grouped_tiles};
