//! Disjoint pieces of an output matrix, for threads that fill it together.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A row-major output matrix cut into tiles, each of which is handed out once.
///
/// The tiles of one range of columns follow each other, so that what belongs to the columns
/// (weights, keys and values) is still in the cache for the next rows.
pub(crate) struct TileQueue<'a> {
    out: *mut f32,
    rows: usize,
    width: usize,
    rows_per_tile: usize,
    cols_per_tile: usize,
    taken: AtomicUsize,
    borrow: PhantomData<&'a mut [f32]>,
}

// SAFETY: the pointer is to memory borrowed exclusively for 'a, f32 is Send, and `take` gives
// each piece of it to one caller only.
unsafe impl Send for TileQueue<'_> {}
// SAFETY: as above; shared use hands out disjoint pieces through an atomic counter.
unsafe impl Sync for TileQueue<'_> {}

impl<'a> TileQueue<'a> {
    /// Cuts `out`, which holds rows of `width`. For [`super::Kernels::linear`] the columns of a
    /// tile must be whole groups, for [`super::Kernels::attend`] the heads of one key head.
    pub(crate) fn new(
        out: &'a mut [f32],
        width: usize,
        rows_per_tile: usize,
        cols_per_tile: usize,
    ) -> Self {
        assert!(width > 0 && rows_per_tile > 0 && cols_per_tile > 0);
        assert!(out.len().is_multiple_of(width), "whole rows");
        Self {
            rows: out.len() / width,
            out: out.as_mut_ptr(),
            width,
            rows_per_tile,
            cols_per_tile,
            taken: AtomicUsize::new(0),
            borrow: PhantomData,
        }
    }

    /// How many tiles there are.
    pub(crate) fn len(&self) -> usize {
        self.rows.div_ceil(self.rows_per_tile) * self.col_tiles()
    }

    /// The next tile that nobody has, or `None` if all are taken.
    pub(crate) fn take(&self) -> Option<Tile<'a>> {
        // Never wraps: each caller stops at its first None.
        let tile_idx = self.taken.fetch_add(1, Ordering::Relaxed);
        if tile_idx >= self.len() {
            return None;
        }
        let row_tiles = self.rows.div_ceil(self.rows_per_tile);
        let first_row = tile_idx % row_tiles * self.rows_per_tile;
        let first_col = tile_idx / row_tiles * self.cols_per_tile;
        Some(Tile {
            out: self.out,
            width: self.width,
            rows: first_row..(first_row + self.rows_per_tile).min(self.rows),
            cols: first_col..(first_col + self.cols_per_tile).min(self.width),
            borrow: PhantomData,
        })
    }

    fn col_tiles(&self) -> usize {
        self.width.div_ceil(self.cols_per_tile)
    }
}

/// Cuts a matrix by groups of rows, one group behind the other, and each group into tiles. `groups`
/// gives how many rows each has, and the rows and columns of its tiles. Gives each tile with the
/// number of its group.
pub(crate) fn grouped_tiles<'a>(
    out: &'a mut [f32],
    width: usize,
    groups: impl Iterator<Item = (usize, (usize, usize))>,
) -> Vec<(usize, Tile<'a>)> {
    let n_rows = out.len() / width;
    let mut tiles = Vec::new();
    let mut first_row = 0;
    for (group_idx, (rows, (rows_per_tile, cols_per_tile))) in groups.enumerate() {
        let end = first_row + rows;
        assert!(end <= n_rows, "rows of the matrix");
        for col in (0..width).step_by(cols_per_tile) {
            for row in (first_row..end).step_by(rows_per_tile) {
                let tile = Tile {
                    out: out.as_mut_ptr(),
                    width,
                    rows: row..(row + rows_per_tile).min(end),
                    cols: col..(col + cols_per_tile).min(width),
                    borrow: PhantomData,
                };
                tiles.push((group_idx, tile));
            }
        }
        first_row = end;
    }
    tiles
}

/// A piece of an output matrix: some rows, and in them some columns.
pub(crate) struct Tile<'a> {
    pub(super) out: *mut f32,
    pub(super) width: usize,
    pub(super) rows: Range<usize>,
    pub(super) cols: Range<usize>,
    borrow: PhantomData<&'a mut [f32]>,
}

// SAFETY: a tile is the only one with its piece of the matrix.
unsafe impl Send for Tile<'_> {}

impl Tile<'_> {
    /// Its rows.
    pub(crate) fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// Its columns.
    pub(crate) fn cols(&self) -> Range<usize> {
        self.cols.clone()
    }

    /// Its part of a row of the matrix.
    ///
    /// Panics if the tile does not have the row.
    pub(crate) fn row(&mut self, row: usize) -> &mut [f32] {
        assert!(self.rows.contains(&row), "a row of the tile");
        let cols = self.cols();
        // SAFETY: the piece lies in the matrix, which is borrowed as long as the tile lives, and
        // the tile is the only one with it.
        unsafe {
            let start = self.out.add(row * self.width + cols.start);
            std::slice::from_raw_parts_mut(start, cols.len())
        }
    }
}
