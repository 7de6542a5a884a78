//! Activations in 8 bits, as the kernels read them.

use super::buffer::{Buffer, LINE_BYTES};
use super::format::BLOCK;

/// Elements that share one sum of codes: the finest scale of any weight type.
pub(crate) const SUM_ELEMS: usize = 16;

/// The 8-bit activations of some rows, each part in a plane of its own. The codes and scales are
/// those of [`candor_quant::quantize_activations`], bit for bit.
pub(crate) struct Panel {
    rows: usize,
    cols: usize,
    codes: Buffer,
    scales: Buffer,
    sums: Buffer,
    weighted: Buffer,
}

/// One row of a panel.
#[derive(Debug)]
pub(super) struct PanelRow<'a> {
    /// Codes from -127 to 127.
    pub(super) codes: &'a mut [i8],
    /// The value of a step, for each 32.
    pub(super) scales: &'a mut [f32],
    /// The sum of the codes, negated, for each 16.
    pub(super) neg_sums: &'a mut [i32],
    /// Scale times sum, for each 32.
    pub(super) weighted_sums: &'a mut [f32],
}

impl Panel {
    /// Room for `rows` rows of `cols` elements, a multiple of 32.
    pub(crate) fn new(rows: usize, cols: usize) -> Self {
        assert!(cols.is_multiple_of(BLOCK), "whole blocks of activations");
        Self {
            rows,
            cols,
            codes: Buffer::zeroed(rows * codes_stride(cols)),
            scales: Buffer::zeroed(rows * stride(cols / BLOCK) * 4),
            sums: Buffer::zeroed(rows * stride(cols / SUM_ELEMS) * 4),
            weighted: Buffer::zeroed(rows * stride(cols / BLOCK) * 4),
        }
    }

    /// Its rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Elements of a row.
    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    /// The same memory for another shape, grown if it must. The contents are lost.
    pub(crate) fn reshape(&mut self, rows: usize, cols: usize) {
        let fits = rows * codes_stride(cols) <= self.codes.size_bytes()
            && rows * stride(cols / BLOCK) * 4 <= self.scales.size_bytes()
            && rows * stride(cols / SUM_ELEMS) * 4 <= self.sums.size_bytes();
        if fits && cols.is_multiple_of(BLOCK) {
            (self.rows, self.cols) = (rows, cols);
        } else {
            *self = Self::new(rows, cols);
        }
    }

    /// All rows, in parts of `rows_per_part`, to be filled by any thread.
    pub(crate) fn parts(&mut self, rows_per_part: usize) -> impl Iterator<Item = PanelPart<'_>> {
        let (rows, cols) = (self.rows, self.cols);
        let codes = &mut self.codes.as_mut_slice::<i8>()[..rows * codes_stride(cols)];
        let per_block = rows * stride(cols / BLOCK);
        let scales = &mut self.scales.as_mut_slice::<f32>()[..per_block];
        let weighted = &mut self.weighted.as_mut_slice::<f32>()[..per_block];
        let sums = &mut self.sums.as_mut_slice::<i32>()[..rows * stride(cols / SUM_ELEMS)];
        codes
            .chunks_mut(rows_per_part * codes_stride(cols))
            .zip(scales.chunks_mut(rows_per_part * stride(cols / BLOCK)))
            .zip(sums.chunks_mut(rows_per_part * stride(cols / SUM_ELEMS)))
            .zip(weighted.chunks_mut(rows_per_part * stride(cols / BLOCK)))
            .enumerate()
            .map(
                move |(part_idx, (((codes, scales), neg_sums), weighted_sums))| PanelPart {
                    first_row: part_idx * rows_per_part,
                    cols,
                    codes,
                    scales,
                    neg_sums,
                    weighted_sums,
                },
            )
    }

    /// Whether both hold the same bits in every plane.
    pub(super) fn same_bits(&self, other: &Self) -> bool {
        let planes = |p: &Self| {
            [&p.codes, &p.scales, &p.sums, &p.weighted].map(|b| b.as_slice::<u8>().to_vec())
        };
        planes(self) == planes(other)
    }

    pub(super) fn view(&self) -> PanelView {
        PanelView {
            codes: self.codes.as_slice::<i8>().as_ptr(),
            codes_stride: codes_stride(self.cols),
            scales: self.scales.as_slice::<f32>().as_ptr(),
            neg_sums: self.sums.as_slice::<i32>().as_ptr(),
            weighted_sums: self.weighted.as_slice::<f32>().as_ptr(),
            scales_stride: stride(self.cols / BLOCK),
            sums_stride: stride(self.cols / SUM_ELEMS),
        }
    }
}

/// Some consecutive rows of a panel, to be filled.
pub(crate) struct PanelPart<'a> {
    first_row: usize,
    cols: usize,
    codes: &'a mut [i8],
    scales: &'a mut [f32],
    neg_sums: &'a mut [i32],
    weighted_sums: &'a mut [f32],
}

impl PanelPart<'_> {
    /// Its first row in the panel.
    pub(crate) fn first_row(&self) -> usize {
        self.first_row
    }

    /// Elements of a row.
    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    /// How many rows it has.
    pub(crate) fn rows(&self) -> usize {
        self.codes.len() / codes_stride(self.cols)
    }

    pub(super) fn row(&mut self, row: usize) -> PanelRow<'_> {
        let cols = self.cols;
        let blocks = row * stride(cols / BLOCK);
        PanelRow {
            codes: &mut self.codes[row * codes_stride(cols)..][..cols],
            scales: &mut self.scales[blocks..][..cols / BLOCK],
            neg_sums: &mut self.neg_sums[row * stride(cols / SUM_ELEMS)..][..cols / SUM_ELEMS],
            weighted_sums: &mut self.weighted_sums[blocks..][..cols / BLOCK],
        }
    }
}

/// Where the planes of a panel are.
#[derive(Clone, Copy)]
pub(super) struct PanelView {
    pub(super) codes: *const i8,
    pub(super) codes_stride: usize,
    pub(super) scales: *const f32,
    pub(super) neg_sums: *const i32,
    pub(super) weighted_sums: *const f32,
    pub(super) scales_stride: usize,
    pub(super) sums_stride: usize,
}

/// An odd number of cache lines, so that the same element of consecutive rows does not fall into
/// the same set of the first-level cache.
fn codes_stride(cols: usize) -> usize {
    (cols.div_ceil(LINE_BYTES) | 1) * LINE_BYTES
}

/// The same for four-byte numbers.
fn stride(numbers: usize) -> usize {
    codes_stride(numbers * 4) / 4
}
