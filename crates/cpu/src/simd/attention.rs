//! Attention over pages of half-precision keys and values.
//!
//! A page holds [`KV_PAGE`] positions of one key head. Keys are interleaved by 16 positions, so
//! that a register holds one element of 16 keys; values lie position after position.
//!
//! For each query the pages are taken in order. In a page: the scores (sums over the head's
//! elements in order), their maximum, the exponentials against the maximum so far, and the
//! weighted sum of the values in order of the positions; what was summed before is scaled once.
//! So the result of a query does not depend on the queries that are computed beside it, nor on
//! where a batch began.

use super::tiles::Tile;

/// Positions of a page.
pub(crate) const KV_PAGE: usize = candor_arch::PAGE_TOKENS;

/// Positions whose keys lie beside each other.
pub(super) const KEY_LANES: usize = 16;

/// Half-precision numbers of a page of keys, and of a page of values.
pub(crate) const fn page_numbers(head_dim: usize) -> usize {
    KV_PAGE * head_dim
}

/// Where an element of a key is in its page.
pub(super) const fn key_place(head_dim: usize, in_page: usize, element: usize) -> usize {
    (in_page / KEY_LANES * head_dim + element) * KEY_LANES + in_page % KEY_LANES
}

/// A page of one key head.
#[derive(Clone, Copy)]
pub(crate) struct KvHead<'a> {
    /// Written by [`super::Kernels::append`].
    pub(crate) keys: &'a [u16],
    /// Written by [`super::Kernels::append`].
    pub(crate) values: &'a [u16],
}

/// What a tile of queries attends to. The tile's columns are the query heads that share the key
/// head; its rows are consecutive positions of one sequence.
pub(crate) struct Attention<'a> {
    /// The queries, in a matrix of the shape of the output.
    pub(crate) queries: &'a [f32],
    /// Elements of a head.
    pub(crate) head_dim: usize,
    /// Pages of the key head that follow each other, from position 0 on, or from a later page that
    /// no row sees beyond.
    pub(crate) pages: &'a [KvHead<'a>],
    /// The position of the tile's first row, counted from the first of the pages.
    pub(crate) first_position: usize,
    /// How many positions a row sees: its own and those right before it.
    pub(crate) window: usize,
    /// What scores are multiplied with.
    pub(crate) scale: f32,
    /// Then they become c · tanh(score / c).
    pub(crate) softcap: Option<f32>,
    /// One more score for each of the tile's heads, without a value.
    pub(crate) sinks: Option<&'a [f32]>,
}

/// [`Attention`] with compared shapes.
pub(super) struct AttendTask<'a> {
    pub(super) attention: &'a Attention<'a>,
    /// The query of the tile's first row and head.
    pub(super) queries: *const f32,
    /// The same place of the output.
    pub(super) out: *mut f32,
    /// Numbers from one row to the next.
    pub(super) stride: usize,
    pub(super) rows: usize,
    /// Query heads in the tile.
    pub(super) heads: usize,
}

impl<'a> AttendTask<'a> {
    /// Panics if the shapes do not belong together.
    pub(super) fn new(attention: &'a Attention<'a>, tile: &mut Tile<'_>) -> Self {
        let head_dim = attention.head_dim;
        let positions = attention.first_position + tile.rows.len();
        assert!(attention.pages.len() * KV_PAGE >= positions, "enough pages");
        for page in attention.pages {
            assert_eq!(page.keys.len(), page_numbers(head_dim));
            assert_eq!(page.values.len(), page_numbers(head_dim));
        }
        assert!(tile.cols.len().is_multiple_of(head_dim), "whole heads");
        let sinks = attention.sinks.map(<[f32]>::len);
        assert!(
            sinks.is_none_or(|sinks| sinks == tile.cols.len() / head_dim),
            "one for each head"
        );
        assert!(attention.queries.len() >= tile.rows.end * tile.width);
        let start = tile.rows.start * tile.width + tile.cols.start;
        Self {
            attention,
            queries: attention.queries[start..].as_ptr(),
            // SAFETY: the tile's first place lies in its matrix.
            out: unsafe { tile.out.add(start) },
            stride: tile.width,
            rows: tile.rows.len(),
            heads: tile.cols.len() / head_dim,
        }
    }

    /// Where the query of a row and head begins, and its output.
    pub(super) fn place(&self, row: usize, head: usize) -> usize {
        row * self.stride + head * self.attention.head_dim
    }

    /// What is known of a head's scores before the first page: the greatest, and the sum of the
    /// exponentials against it.
    pub(super) fn start(&self, head: usize) -> (f32, f32) {
        match self.attention.sinks {
            Some(sinks) => (sinks[head], 1.0),
            None => (f32::NEG_INFINITY, 0.0),
        }
    }

    /// How many positions of a page a row sees.
    pub(super) fn seen(&self, row: usize, page_idx: usize) -> usize {
        (self.attention.first_position + row + 1)
            .saturating_sub(page_idx * KV_PAGE)
            .min(KV_PAGE)
    }

    /// How many positions at the front of a page lie before a row's window.
    pub(super) fn hidden(&self, row: usize, page_idx: usize) -> usize {
        (self.attention.first_position + row + 1)
            .saturating_sub(self.attention.window)
            .saturating_sub(page_idx * KV_PAGE)
            .min(KV_PAGE)
    }
}
