//! Attention over pages of half-precision keys and values.
//!
//! A page holds [`KV_PAGE`] positions of one key head. Keys are interleaved by 16 positions, so
//! that a register holds one element of 16 keys; values lie position after position.
//!
//! Each page is summed by itself: the scores (sums over the head's elements in order), their
//! maximum, the exponentials against it, and the weighted sum of the values in order of the
//! positions. The pages of a query are then joined in their order. So a result does not depend on
//! the queries that are computed beside it, nor on where a batch began, nor on which thread summed
//! which page: one may walk all pages ([`super::Kernels::attend`]), or several may leave the parts
//! of some pages each ([`super::Kernels::attend_parts`]), which are joined later
//! ([`super::Kernels::join`]).

use std::ops::Range;

use super::kernels::Kernels;
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
    /// Pages of the key head that follow each other.
    pub(crate) pages: &'a [KvHead<'a>],
    /// How many pages lie before these.
    pub(crate) first_page: usize,
    /// The position of the tile's first row, counted from the first page of all.
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

/// Numbers of a part: what one page gives to one query. The weighted sum of the values, the
/// greatest score, and the sum of the weights.
pub(crate) const fn part_numbers(head_dim: usize) -> usize {
    head_dim + 2
}

/// What is known of the scores of a query: the greatest, and the sum of the exponentials against
/// it.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub(super) maximum: f32,
    pub(super) total: f32,
}

impl Known {
    /// Before the first page: nothing, or a sink.
    pub(super) fn start(sink: Option<f32>) -> Self {
        match sink {
            Some(maximum) => Self {
                maximum,
                total: 1.0,
            },
            None => Self {
                maximum: f32::NEG_INFINITY,
                total: 0.0,
            },
        }
    }

    /// Adds a page. Gives what the sums of before and those of the page are multiplied with.
    ///
    /// # Safety
    /// That of the exponential.
    #[inline(always)]
    pub(super) unsafe fn add<E: Exp>(&mut self, page: Self) -> (f32, f32) {
        let maximum = self.maximum.max(page.maximum);
        // SAFETY: passed on from the caller.
        let factors = unsafe {
            (
                factor::<E>(self.maximum, maximum),
                factor::<E>(page.maximum, maximum),
            )
        };
        *self = Self {
            maximum,
            total: self.total * factors.0 + page.total * factors.1,
        };
        factors
    }
}

/// Nothing may have been seen yet, and no difference of infinities is a number.
#[inline(always)]
unsafe fn factor<E: Exp>(of: f32, maximum: f32) -> f32 {
    if of == maximum {
        return 1.0;
    }
    // SAFETY: passed on from the caller.
    unsafe { E::exp(of - maximum) }
}

/// The exponential of a family.
pub(super) trait Exp {
    /// # Safety
    /// The machine must have the instructions of the family.
    unsafe fn exp(x: f32) -> f32;
}

/// The parts of one query, to be joined.
pub(super) struct Join<'a> {
    /// The first part; the others follow each `stride` numbers further on.
    pub(super) parts: &'a [f32],
    pub(super) stride: usize,
    pub(super) n_parts: usize,
    pub(super) start: Known,
    /// One head.
    pub(super) out: &'a mut [f32],
}

impl Join<'_> {
    /// A part's sums, and what it knows.
    pub(super) fn part(&self, number: usize) -> (&[f32], Known) {
        let head_dim = self.out.len();
        let part = &self.parts[number * self.stride..][..part_numbers(head_dim)];
        let known = Known {
            maximum: part[head_dim],
            total: part[head_dim + 1],
        };
        (&part[..head_dim], known)
    }
}

/// Where the result of a task goes.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// The joined pages, to the place of each query in a matrix.
    Output(*mut f32),
    /// A part for each page and in it for each query; see [`part_numbers`]. What pages give that a
    /// query does not see is not written.
    Parts(*mut f32),
}

/// [`Attention`] with compared shapes.
pub(super) struct AttendTask<'a> {
    pub(super) attention: &'a Attention<'a>,
    /// The query of the first row and head.
    pub(super) queries: *const f32,
    /// For outputs, the same place.
    pub(super) target: Target,
    /// Numbers from one row to the next.
    pub(super) stride: usize,
    pub(super) rows: usize,
    /// Query heads that share the key head.
    pub(super) heads: usize,
}

impl<'a> AttendTask<'a> {
    /// Panics if the shapes do not belong together.
    pub(super) fn new(attention: &'a Attention<'a>, tile: &mut Tile<'_>) -> Self {
        let positions = attention.first_position + tile.rows.len();
        let pages = attention.first_page + attention.pages.len();
        assert!(pages * KV_PAGE >= positions, "enough pages");
        let place = (tile.rows.clone(), tile.cols.clone());
        let (start, rows, heads) = Self::compare(attention, place, tile.width);
        Self {
            attention,
            queries: attention.queries[start..].as_ptr(),
            // SAFETY: the tile's first place lies in its matrix.
            target: Target::Output(unsafe { tile.out.add(start) }),
            stride: tile.width,
            rows,
            heads,
        }
    }

    /// The same with a part for each page and query. Rows and columns are those of the queries, a
    /// matrix of `width`.
    ///
    /// Panics if the shapes do not belong together.
    pub(super) fn for_parts(
        attention: &'a Attention<'a>,
        place: (Range<usize>, Range<usize>),
        width: usize,
        parts: &mut [f32],
    ) -> Self {
        let (start, rows, heads) = Self::compare(attention, place, width);
        let numbers = rows * heads * part_numbers(attention.head_dim);
        assert_eq!(
            parts.len(),
            attention.pages.len() * numbers,
            "a part for each"
        );
        Self {
            attention,
            queries: attention.queries[start..].as_ptr(),
            target: Target::Parts(parts.as_mut_ptr()),
            stride: width,
            rows,
            heads,
        }
    }

    /// Gives where the first query is, and how many rows and heads there are.
    fn compare(
        attention: &Attention<'_>,
        (rows, cols): (Range<usize>, Range<usize>),
        width: usize,
    ) -> (usize, usize, usize) {
        let head_dim = attention.head_dim;
        for page in attention.pages {
            assert_eq!(page.keys.len(), page_numbers(head_dim));
            assert_eq!(page.values.len(), page_numbers(head_dim));
        }
        assert!(cols.len().is_multiple_of(head_dim), "whole heads");
        let sinks = attention.sinks.map(<[f32]>::len);
        assert!(
            sinks.is_none_or(|sinks| sinks == cols.len() / head_dim),
            "one for each head"
        );
        assert!(attention.queries.len() >= rows.end * width && cols.end <= width);
        let start = rows.start * width + cols.start;
        (start, rows.len(), cols.len() / head_dim)
    }

    /// Where the query of a row and head begins, and its output.
    pub(super) fn place(&self, row: usize, head: usize) -> usize {
        row * self.stride + head * self.attention.head_dim
    }

    /// Where a query's part of a page is, by the number of the query: head by head and row by row.
    pub(super) fn part_place(&self, page_idx: usize, query: usize) -> usize {
        let queries = self.rows * self.heads;
        (page_idx * queries + query) * part_numbers(self.attention.head_dim)
    }

    /// What is known of a head's scores before the first page.
    pub(super) fn start(&self, head: usize) -> Known {
        Known::start(self.attention.sinks.map(|sinks| sinks[head]))
    }

    /// How many positions of a page a row sees.
    pub(super) fn seen(&self, row: usize, page_idx: usize) -> usize {
        (self.attention.first_position + row + 1)
            .saturating_sub((self.attention.first_page + page_idx) * KV_PAGE)
            .min(KV_PAGE)
    }

    /// How many positions at the front of a page lie before a row's window.
    pub(super) fn hidden(&self, row: usize, page_idx: usize) -> usize {
        (self.attention.first_position + row + 1)
            .saturating_sub(self.attention.window)
            .saturating_sub((self.attention.first_page + page_idx) * KV_PAGE)
            .min(KV_PAGE)
    }
}

impl Kernels {
    /// Attention of the queries in a tile's rows and columns to the keys and values of one key
    /// head, from the first page that they see to their own; see [`Attention`].
    pub(crate) fn attend(&self, attention: &Attention<'_>, tile: &mut Tile<'_>) {
        let task = AttendTask::new(attention, tile);
        // SAFETY: the machine has the instructions; AttendTask::new compared the shapes, and a
        // tile is the only one with its piece of the output.
        unsafe { (self.attend)(&task) }
    }

    /// What some pages give to queries; `place` is their rows and columns in a matrix of `width`.
    /// `parts` has [`part_numbers`] for each page, and in it for each row, and in it for each head.
    pub(crate) fn attend_parts(
        &self,
        attention: &Attention<'_>,
        place: (Range<usize>, Range<usize>),
        width: usize,
        parts: &mut [f32],
    ) {
        let task = AttendTask::for_parts(attention, place, width, parts);
        // SAFETY: the machine has the instructions; the shapes were compared, and `parts` is
        // borrowed exclusively.
        unsafe { (self.attend)(&task) }
    }

    /// Joins the parts of one query, the first of `parts` and those each `stride` numbers behind
    /// it, to its output. They are those of the pages that it sees, in their order.
    pub(crate) fn join(
        &self,
        (parts, stride, n_parts): (&[f32], usize, usize),
        sink: Option<f32>,
        out: &mut [f32],
    ) {
        let numbers = part_numbers(out.len());
        assert!(n_parts > 0 && parts.len() >= (n_parts - 1) * stride + numbers);
        let mut join = Join {
            parts,
            stride,
            n_parts,
            start: Known::start(sink),
            out,
        };
        // SAFETY: the machine has the instructions; the parts are there.
        unsafe { (self.join)(&mut join) }
    }
}
