//! Products of 8-bit activations with weights of small integers.
//!
//! Everything is inlined into the functions of [`entries`](super::entries), and generic over the
//! type, whose constants decide each branch at compile time.

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

use super::super::buffer::LINE_BYTES;
use super::super::format::{BLOCK, Codes, GROUP_ROWS, Scales, halves_differ};
use super::super::interleave::Interleave;
use super::super::kernels::LinearTask;
use super::super::panel::PanelView;
use super::lanes::Lanes;

/// How far ahead of a product with one row its weights are fetched.
const AHEAD_BYTES: usize = 4096;

/// Where a tile of a product is.
#[derive(Clone, Copy)]
pub(in crate::simd) struct Corner {
    /// The group of its first column.
    pub(super) group: usize,
    /// The lane of the group in which the first column begins.
    lane: usize,
    /// Its first row.
    pub(super) row: usize,
}

impl Corner {
    /// So many groups further on.
    pub(in crate::simd) fn right_by(self, groups: usize) -> Self {
        Self {
            group: self.group + groups,
            ..self
        }
    }

    /// In the middle of the group.
    pub(in crate::simd) fn second_half(self) -> Self {
        Self {
            lane: GROUP_ROWS / 2,
            ..self
        }
    }

    /// The same for `C` columns. As many as make up a group begin at its first lane; saying so here
    /// spares the products a register for it, and 5 to 12 % of the time of a reply with Q4_K.
    #[inline(always)]
    pub(super) fn of_columns<L: Lanes, const C: usize>(self) -> Self {
        let lane = if C * L::COUNT < GROUP_ROWS {
            self.lane
        } else {
            0
        };
        Self { lane, ..self }
    }

    /// The group of column `c`, which is a register of outputs, and its first lane there.
    #[inline(always)]
    pub(super) fn column<L: Lanes>(self, c: usize) -> (usize, usize) {
        let first = c * L::COUNT;
        (
            self.group + first / GROUP_ROWS,
            self.lane + first % GROUP_ROWS,
        )
    }
}

/// Covers a task with tiles, some groups wide. `tile` is told where one begins and how many rows are
/// left there, and says how many of them it took.
pub(in crate::simd) fn walk(
    task: &LinearTask,
    groups: usize,
    tile: impl Fn(Corner, usize) -> usize,
) {
    for group in task.groups.clone().step_by(groups) {
        let mut corner = Corner {
            group,
            lane: 0,
            row: task.rows.start,
        };
        while corner.row < task.rows.end {
            corner.row += tile(corner, task.rows.end - corner.row);
        }
    }
}

/// `R` rows times `C` registers of outputs; gives `R`. What lies behind the task's last group is
/// computed as if it were the last, and not stored.
///
/// # Safety
/// See [`super::super::kernels::LinearFn`]; the row and the `R - 1` after it must be rows of the
/// task, the group must be one of it, and the lanes of a column must lie in one group.
#[inline(always)]
pub(in crate::simd) unsafe fn integers<L: Lanes, B: Interleave, const C: usize, const R: usize>(
    task: &LinearTask,
    corner: Corner,
) -> usize {
    let corner = corner.of_columns::<L, C>();
    // SAFETY: every address below lies in a group of the matrix or in a row of the panel, as the
    // caller states; a prefetch may be to any address.
    unsafe {
        let mut acts = Acts::<R>::new(&task.panel, corner.row);
        let mut units = [task.weights; C];
        for (c, unit) in units.iter_mut().enumerate() {
            let (group, _) = corner.column::<L>(c);
            *unit = unit.add(group.min(task.groups.end - 1) * task.group_bytes);
        }
        let mut sums = [[L::splat(0.0); R]; C];
        let mut left = task.cols / BLOCK;
        let mut offset = 0;
        while left > 0 {
            let ahead = ahead_bytes::<L, C>(offset, task.group_bytes);
            offset += B::UNIT_BYTES;
            if R == 1 {
                for (c, unit) in units.iter().enumerate() {
                    fetch::<L>(c, unit.wrapping_add(ahead), B::HEADER_BYTES);
                }
            }
            for b in 0..left.min(B::UNIT_BLOCKS) {
                block::<L, B, C, R>(units, (corner.lane, b, ahead), &acts, &mut sums);
                acts.advance();
            }
            left -= left.min(B::UNIT_BLOCKS);
            for unit in &mut units {
                *unit = unit.add(B::UNIT_BYTES);
            }
        }
        store_sums::<L, C, R>(task, corner, &sums);
    }
    R
}

/// Puts the sums of a tile where they belong.
///
/// # Safety
/// As for [`integers`].
#[inline(always)]
pub(super) unsafe fn store_sums<L: Lanes, const C: usize, const R: usize>(
    task: &LinearTask,
    corner: Corner,
    sums: &[[L::Floats; R]; C],
) {
    for c in 0..C {
        let (group, lane) = corner.column::<L>(c);
        if group >= task.groups.end {
            break;
        }
        let lanes = task.lanes(group).saturating_sub(lane).min(L::COUNT);
        for r in 0..R {
            let place = (corner.row + r) * task.width + group * GROUP_ROWS + lane;
            // SAFETY: the tile's piece of the output; `lanes` keeps within the row.
            unsafe { L::store_first(task.out.wrapping_add(place), sums[c][r], lanes) };
        }
    }
}

/// What of a block has one scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simd) enum Part {
    Whole,
    FirstHalf,
    SecondHalf,
}

/// Where the present block of some rows of the panel is.
pub(in crate::simd) struct Acts<const R: usize> {
    codes: *const i8,
    scales: *const f32,
    neg_sums: *const i32,
    weighted_sums: *const f32,
    codes_stride: usize,
    scales_stride: usize,
    sums_stride: usize,
}

impl<const R: usize> Acts<R> {
    #[inline(always)]
    unsafe fn new(panel: &PanelView, row: usize) -> Self {
        // SAFETY: a row of the panel.
        unsafe {
            Self {
                codes: panel.codes.add(row * panel.codes_stride),
                scales: panel.scales.add(row * panel.scales_stride),
                neg_sums: panel.neg_sums.add(row * panel.sums_stride),
                weighted_sums: panel.weighted_sums.add(row * panel.scales_stride),
                codes_stride: panel.codes_stride,
                scales_stride: panel.scales_stride,
                sums_stride: panel.sums_stride,
            }
        }
    }

    #[inline(always)]
    unsafe fn advance(&mut self) {
        // SAFETY: at most one past the end of a row.
        unsafe {
            self.codes = self.codes.add(BLOCK);
            self.scales = self.scales.add(1);
            self.neg_sums = self.neg_sums.add(2);
            self.weighted_sums = self.weighted_sums.add(1);
        }
    }

    /// Dword `j` of row `r` in each lane.
    #[inline(always)]
    pub(in crate::simd) unsafe fn dword<L: Lanes>(&self, r: usize, j: usize) -> L::Ints {
        // SAFETY: within the block.
        unsafe {
            let at = self.codes.add(r * self.codes_stride + 4 * j);
            L::splat_ints(at.cast::<i32>().read_unaligned())
        }
    }

    /// The sum of the activations of row `r` in a part.
    #[inline(always)]
    unsafe fn weighted_sum(&self, r: usize, part: Part) -> f32 {
        // SAFETY: within the row.
        unsafe {
            let of_half = |half: usize| {
                let scale = *self.scales.add(r * self.scales_stride);
                -scale * *self.neg_sums.add(r * self.sums_stride + half) as f32
            };
            match part {
                Part::Whole => *self.weighted_sums.add(r * self.scales_stride),
                Part::FirstHalf => of_half(0),
                Part::SecondHalf => of_half(1),
            }
        }
    }

    /// What an offset of the codes takes from the products of a part, in each lane.
    #[inline(always)]
    pub(in crate::simd) unsafe fn start<L: Lanes>(
        &self,
        r: usize,
        part: Part,
        offset: u8,
    ) -> L::Ints {
        // SAFETY: within the row.
        unsafe {
            let at = self.neg_sums.add(r * self.sums_stride);
            let sum = match part {
                Part::Whole => *at + *at.add(1),
                Part::FirstHalf => *at,
                Part::SecondHalf => *at.add(1),
            };
            match offset {
                0 => L::splat_ints(0),
                offset => L::splat_ints(sum * i32::from(offset)),
            }
        }
    }
}

/// How far behind a place of a group what is fetched for it lies. Behind the end of a group begins
/// the next one, which another column reads already: what is read next are the groups behind all
/// columns.
#[inline(always)]
fn ahead_bytes<L: Lanes, const C: usize>(offset: usize, group_bytes: usize) -> usize {
    let groups = (C * L::COUNT).div_ceil(GROUP_ROWS);
    if offset + AHEAD_BYTES < group_bytes {
        AHEAD_BYTES
    } else {
        AHEAD_BYTES + (groups - 1) * group_bytes
    }
}

/// Brings some lines of column `c` into the cache, unless the column before has the same.
#[inline(always)]
fn fetch<L: Lanes>(c: usize, place: *const u8, bytes: usize) {
    if (c * L::COUNT).is_multiple_of(GROUP_ROWS) {
        for line in 0..bytes.div_ceil(LINE_BYTES) {
            // SAFETY: a hint, without effect where there is no memory.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(place.wrapping_add(line * LINE_BYTES).cast()) };
        }
    }
}

/// Adds the products of one block.
#[inline(always)]
unsafe fn block<L: Lanes, B: Interleave, const C: usize, const R: usize>(
    units: [*const u8; C],
    (lane, b, ahead): (usize, usize, usize),
    acts: &Acts<R>,
    sums: &mut [[L::Floats; R]; C],
) {
    // SAFETY: block `b` of each unit, and the present block of each row.
    unsafe {
        let mut codes = units;
        for (c, code) in codes.iter_mut().enumerate() {
            let block = code.add(B::HEADER_BYTES + b * B::BLOCK_BYTES);
            if R == 1 {
                fetch::<L>(c, block.wrapping_add(ahead), B::BLOCK_BYTES);
            }
            *code = block.add(4 * (lane + c * L::COUNT % GROUP_ROWS));
        }
        let headers = Headers {
            units,
            lane,
            block: b,
        };
        if halves_differ(B::SCALES) {
            add_part::<L, B, C, R>(Part::FirstHalf, (codes, &headers), acts, sums);
            add_part::<L, B, C, R>(Part::SecondHalf, (codes, &headers), acts, sums);
        } else {
            add_part::<L, B, C, R>(Part::Whole, (codes, &headers), acts, sums);
        }
    }
}

/// Adds the products of a part of a block.
#[inline(always)]
unsafe fn add_part<L: Lanes, B: Interleave, const C: usize, const R: usize>(
    part: Part,
    (codes, headers): ([*const u8; C], &Headers<C>),
    acts: &Acts<R>,
    sums: &mut [[L::Floats; R]; C],
) {
    // SAFETY: passed on from the caller.
    unsafe {
        let products = L::products::<B, C, R>(codes, acts, part);
        headers.add_scaled::<L, B, R>(part, acts, &products, sums);
        if let Scales::StepBase | Scales::SixBit | Scales::FourBit = B::SCALES {
            headers.add_bases::<L, B, R>(part, acts, sums);
        }
    }
}

/// The headers of the units of some columns, for one of their blocks.
struct Headers<const C: usize> {
    units: [*const u8; C],
    /// Where in its group the first column begins.
    lane: usize,
    block: usize,
}

impl<const C: usize> Headers<C> {
    /// The first lane of column `c`.
    #[inline(always)]
    fn lane<L: Lanes>(&self, c: usize) -> usize {
        self.lane + c * L::COUNT % GROUP_ROWS
    }

    /// The values of one step of the codes of a part of the block.
    #[inline(always)]
    unsafe fn step<L: Lanes, B: Interleave>(&self, c: usize, part: Part) -> L::Floats {
        let (b, lane) = (self.block, self.lane::<L>(c));
        let half = 2 * b + usize::from(part == Part::SecondHalf);
        // SAFETY: within the header.
        unsafe {
            let floats = self.units[c].add(4 * lane);
            let halves = self.units[c].add(2 * lane);
            let bytes = self.units[c].add(64 + lane);
            match B::SCALES {
                Scales::Step => L::halves(halves.add(32 * b)),
                Scales::BrainStep => L::brains(halves.add(32 * b)),
                Scales::StepBase => L::halves(halves.add(64 * b)),
                Scales::HalfSteps => L::halves(halves.add(32 * half)),
                Scales::SixBit => L::mul(L::halves(halves), L::bytes(bytes.add(16 * b))),
                Scales::Multiples => {
                    L::mul(L::load(floats.cast()), L::signed_bytes(bytes.add(16 * b)))
                }
                Scales::HalfMultiples => {
                    let multiples = L::signed_bytes(bytes.add(16 * half));
                    L::mul(L::load(floats.cast()), multiples)
                }
                Scales::FourBit => L::mul(L::halves(halves), L::low_nibbles(bytes.add(16 * half))),
            }
        }
    }

    /// What is added to the values of a part of the block.
    #[inline(always)]
    unsafe fn base<L: Lanes, B: Interleave>(&self, c: usize, part: Part) -> L::Floats {
        let (b, lane) = (self.block, self.lane::<L>(c));
        // SAFETY: within the header.
        unsafe {
            let halves = self.units[c].add(2 * lane);
            let bytes = self.units[c].add(64 + lane);
            let offsets = match B::SCALES {
                Scales::StepBase => return L::halves(halves.add(64 * b + 32)),
                Scales::FourBit => {
                    let half = 2 * b + usize::from(part == Part::SecondHalf);
                    L::high_nibbles(bytes.add(16 * half))
                }
                _ => L::bytes(bytes.add(16 * (B::UNIT_BLOCKS + b))),
            };
            L::sub(L::splat(0.0), L::mul(L::halves(halves.add(32)), offsets))
        }
    }

    /// Adds products times the steps of both factors.
    #[inline(always)]
    unsafe fn add_scaled<L: Lanes, B: Interleave, const R: usize>(
        &self,
        part: Part,
        acts: &Acts<R>,
        products: &[[L::Ints; R]; C],
        sums: &mut [[L::Floats; R]; C],
    ) {
        // SAFETY: within the header and the rows.
        unsafe {
            let mut steps = [L::splat(0.0); C];
            for c in 0..C {
                steps[c] = self.step::<L, B>(c, part);
            }
            for r in 0..R {
                let scale = L::splat(*acts.scales.add(r * acts.scales_stride));
                for c in 0..C {
                    let product = L::to_floats(products[c][r]);
                    sums[c][r] = L::mul_add(product, L::mul(steps[c], scale), sums[c][r]);
                }
            }
        }
    }

    /// Adds bases times the weighted sums of the activations.
    #[inline(always)]
    unsafe fn add_bases<L: Lanes, B: Interleave, const R: usize>(
        &self,
        part: Part,
        acts: &Acts<R>,
        sums: &mut [[L::Floats; R]; C],
    ) {
        // SAFETY: within the header and the rows.
        unsafe {
            let mut bases = [L::splat(0.0); C];
            for c in 0..C {
                bases[c] = self.base::<L, B>(c, part);
            }
            for r in 0..R {
                let weighted = L::splat(acts.weighted_sum(r, part));
                for c in 0..C {
                    sums[c][r] = L::mul_add(bases[c], weighted, sums[c][r]);
                }
            }
        }
    }
}

/// The codes of dword `J` of a block, or the levels that they choose, unsigned; see
/// [`super::super::format`].
#[inline(always)]
pub(in crate::simd) unsafe fn unpack<L: Lanes, B: Interleave, const J: usize>(
    block: *const u8,
) -> L::Ints {
    // SAFETY: within the block.
    unsafe {
        let low = match B::CODES {
            Codes::Bytes => line::<L>(block, J),
            Codes::TwoBits | Codes::ThreeBits => {
                bits::<L>(line::<L>(block, J / 4), J % 4 * 2, 0, 3)
            }
            Codes::Nibbles | Codes::FiveBits | Codes::SixBits => {
                bits::<L>(line::<L>(block, J % 4), J / 4 * 4, 0, 15)
            }
        };
        let codes = match B::CODES {
            Codes::ThreeBits => L::or(low, bits::<L>(line::<L>(block, 2), J, 2, 1)),
            Codes::FiveBits => L::or(low, bits::<L>(line::<L>(block, 4), J, 4, 1)),
            Codes::SixBits => {
                let high = line::<L>(block, 4 + J / 4);
                L::or(low, bits::<L>(high, J % 4 * 2, 4, 3))
            }
            Codes::Bytes | Codes::TwoBits | Codes::Nibbles => low,
        };
        match B::LEVELS {
            Some(levels) => L::look_up(&levels, codes),
            None => codes,
        }
    }
}

/// The bits of each byte from bit `from` on, brought to bit `to`; `mask` says how many.
#[inline(always)]
unsafe fn bits<L: Lanes>(bytes: L::Ints, from: usize, to: usize, mask: u8) -> L::Ints {
    // SAFETY: the caller has the instructions.
    unsafe {
        let moved = if from < to {
            L::shift_up(bytes, to - from)
        } else if from > to {
            L::shift_down(bytes, from - to)
        } else {
            bytes
        };
        L::and(moved, L::splat_bytes(mask << to))
    }
}

/// A register's part of a line of a block.
#[inline(always)]
unsafe fn line<L: Lanes>(block: *const u8, l: usize) -> L::Ints {
    // SAFETY: within the block.
    unsafe { L::load_ints(block.add(l * LINE_BYTES)) }
}
