//! Attention over half-precision pages; see [`super::super::attention`] for the order of things.

use std::ops::Range;

use super::super::attention::{AttendTask, KEY_LANES, KV_PAGE, KvHead};
use super::super::portable;
use super::lanes::Lanes;
use super::rows::exp;

/// Registers of keys whose products share a load of the queries.
const KEYS: usize = 2;

/// The scores of some queries in one page, then their exponentials.
#[repr(align(64))]
struct Scores<const R: usize>([[f32; KV_PAGE]; R]);

/// Queries that are computed together.
struct Queries<'a, const R: usize> {
    task: &'a AttendTask<'a>,
    /// Where each begins, and its output.
    places: [usize; R],
    /// The row of each.
    rows: [usize; R],
}

/// [`attend`] for some number of queries, compiled for a family.
pub(in crate::simd) type AttendTile = unsafe fn(&AttendTask, usize) -> usize;

/// Attention, as many queries at once as are left and have a tile; `tiles` are those for one query,
/// for two and so on.
///
/// # Safety
/// The machine must have the instructions of the tiles; the task's pointers must be to live
/// matrices of its shapes, and nobody else may touch the outputs.
pub(in crate::simd) unsafe fn attend_by<L: Lanes>(task: &AttendTask, tiles: &[AttendTile]) {
    if !task.attention.head_dim.is_multiple_of(L::COUNT) {
        // SAFETY: passed on from the caller.
        return unsafe { (portable::KERNELS.attend)(task) };
    }
    let count = task.rows * task.heads;
    let mut query = 0;
    while query < count {
        let together = (count - query).min(tiles.len());
        // SAFETY: passed on from the caller; the queries are those of the task.
        query += unsafe { tiles[together - 1](task, query) };
    }
}

/// The attention of `R` queries, counted head by head and row by row; gives `R`.
///
/// # Safety
/// See [`Lanes`]; the task's pointers must be to live matrices of its shapes, nobody else may
/// touch the outputs, `first` and the `R - 1` after it must be queries of the task, and its heads
/// must be whole registers.
#[inline(always)]
pub(in crate::simd) unsafe fn attend<L: Lanes, const R: usize>(
    task: &AttendTask,
    first: usize,
) -> usize {
    let mut queries = Queries::<R> {
        task,
        places: [0; R],
        rows: [0; R],
    };
    for r in 0..R {
        let (row, head) = ((first + r) / task.heads, (first + r) % task.heads);
        queries.rows[r] = row;
        queries.places[r] = task.place(row, head);
    }
    let mut scores = Scores([[0.0; KV_PAGE]; R]);
    let start: [(f32, f32); R] = std::array::from_fn(|r| task.start((first + r) % task.heads));
    let mut maxima = start.map(|(maximum, _)| maximum);
    let mut totals = start.map(|(_, total)| total);
    for (page_idx, page) in task.attention.pages.iter().enumerate() {
        let seen_most = task.seen(queries.rows[R - 1], page_idx);
        if seen_most == 0 {
            break;
        }
        let mut kept = [0.0f32; R];
        // SAFETY: the places are those of the task's queries, and no row sees more than a page.
        unsafe {
            score::<L, R>(&queries, page, seen_most, &mut scores);
            if let Some(cap) = task.attention.softcap {
                for scores in &mut scores.0 {
                    bound::<L>(cap, &mut scores[..seen_most.next_multiple_of(L::COUNT)]);
                }
            }
            for r in 0..R {
                let seen = task.seen(queries.rows[r], page_idx);
                let hidden = task.hidden(queries.rows[r], page_idx);
                let (maximum, total) = weigh::<L>(&mut scores.0[r], hidden..seen, maxima[r]);
                // Nothing may have been seen yet, and no difference of infinities is a number.
                kept[r] = match maximum == maxima[r] {
                    true => 1.0,
                    false => L::first(exp::<L>(L::splat(maxima[r] - maximum))),
                };
                maxima[r] = maximum;
                totals[r] = totals[r] * kept[r] + total;
            }
            collect::<L, R>(&queries, (page, page_idx), &scores, &kept);
        }
    }
    for r in 0..R {
        // SAFETY: the output of one head of the task.
        let out = unsafe {
            let out = task.out.add(queries.places[r]);
            std::slice::from_raw_parts_mut(out, task.attention.head_dim)
        };
        out.iter_mut().for_each(|o| *o /= totals[r]);
    }
    R
}

/// Scaled products of the queries with the first `seen` keys of a page.
#[inline(always)]
unsafe fn score<L: Lanes, const R: usize>(
    queries: &Queries<'_, R>,
    page: &KvHead<'_>,
    seen: usize,
    scores: &mut Scores<R>,
) {
    let head_dim = queries.task.attention.head_dim;
    // SAFETY: a page holds a whole number of the registers that are taken together; the queries
    // have `head_dim` elements.
    unsafe {
        let scale = L::splat(queries.task.attention.scale);
        for first in (0..seen).step_by(KEYS * L::COUNT) {
            let mut keys = [page.keys.as_ptr(); KEYS];
            for (k, keys) in keys.iter_mut().enumerate() {
                let key = first + k * L::COUNT;
                *keys = keys.add(key / KEY_LANES * KEY_LANES * head_dim + key % KEY_LANES);
            }
            let mut sums = [[L::splat(0.0); R]; KEYS];
            for d in 0..head_dim {
                let mut key = [L::splat(0.0); KEYS];
                for k in 0..KEYS {
                    key[k] = L::halves(keys[k].add(d * KEY_LANES).cast());
                }
                for r in 0..R {
                    let q = L::splat(*queries.task.queries.add(queries.places[r] + d));
                    for k in 0..KEYS {
                        sums[k][r] = L::mul_add(q, key[k], sums[k][r]);
                    }
                }
            }
            for k in 0..KEYS {
                for r in 0..R {
                    let place = scores.0[r][first + k * L::COUNT..].as_mut_ptr();
                    L::store(place, L::mul(sums[k][r], scale));
                }
            }
        }
    }
}

/// Whole registers of scores become cap · tanh(score / cap), where tanh(x) = 1 − 2 / (e^2x + 1).
#[inline(always)]
unsafe fn bound<L: Lanes>(cap: f32, scores: &mut [f32]) {
    // SAFETY: the caller has the instructions, and whole registers of scores.
    unsafe {
        let (one, two) = (L::splat(1.0), L::splat(2.0));
        for scores in scores.chunks_exact_mut(L::COUNT) {
            let twice = L::mul(L::load(scores.as_ptr()), L::splat(2.0 / cap));
            let below = L::add(exp::<L>(twice), one);
            let tanh = L::sub(one, L::div(two, below));
            L::store(scores.as_mut_ptr(), L::mul(L::splat(cap), tanh));
        }
    }
}

/// Turns the seen scores into exponentials against the greatest score so far, and the others into
/// zeros. Gives that greatest score, and the sum.
#[inline(always)]
unsafe fn weigh<L: Lanes>(
    scores: &mut [f32; KV_PAGE],
    seen: Range<usize>,
    before: f32,
) -> (f32, f32) {
    if seen.is_empty() {
        scores[..seen.end].fill(0.0);
        return (before, 0.0);
    }
    let end = seen.end.next_multiple_of(L::COUNT);
    scores[..seen.start].fill(f32::NEG_INFINITY);
    scores[seen.end..end].fill(f32::NEG_INFINITY);
    // SAFETY: whole registers of scores.
    unsafe {
        let mut most = L::splat(f32::NEG_INFINITY);
        for scores in scores[..end].chunks_exact(L::COUNT) {
            most = L::max(most, L::load(scores.as_ptr()));
        }
        let most = before.max(L::greatest(most));
        let mut sum = L::splat(0.0);
        for scores in scores[..end].chunks_exact_mut(L::COUNT) {
            let against = L::sub(L::load(scores.as_ptr()), L::splat(most));
            let weights = exp::<L>(against);
            sum = L::add(sum, weights);
            L::store(scores.as_mut_ptr(), weights);
        }
        (most, L::total(sum))
    }
}

/// Scales what the outputs hold by `kept` (page 0 begins with nothing) and adds the weighted
/// values of a page.
#[inline(always)]
unsafe fn collect<L: Lanes, const R: usize>(
    queries: &Queries<'_, R>,
    (page, page_idx): (&KvHead<'_>, usize),
    scores: &Scores<R>,
    kept: &[f32; R],
) {
    let head_dim = queries.task.attention.head_dim;
    let task = queries.task;
    let seen = task.seen(queries.rows[0], page_idx);
    let weights: [*const f32; R] = std::array::from_fn(|r| scores.0[r].as_ptr());
    let outs: [*mut f32; R] = std::array::from_fn(|r| task.out.wrapping_add(queries.places[r]));
    for r in 0..R {
        for at in (0..head_dim).step_by(L::COUNT) {
            // SAFETY: within the output of the query.
            unsafe {
                let place = outs[r].add(at);
                let held = match page_idx {
                    0 => L::splat(0.0),
                    _ => L::mul(L::load(place), L::splat(kept[r])),
                };
                L::store(place, held);
            }
        }
    }
    let values = (page.values.as_ptr(), head_dim);
    // The positions that all of them see, then those that only later rows see.
    // SAFETY: weights and values have a place for each position of the page.
    unsafe {
        add_values::<L, R>(&outs, &weights, values, 0..seen);
        for r in 1..R {
            let rest = seen..task.seen(queries.rows[r], page_idx);
            add_values::<L, 1>(&[outs[r]], &[weights[r]], values, rest);
        }
    }
}

/// Adds the weighted values of some positions, in their order, to some outputs. `values` are those
/// of a page, and how many elements each has.
#[inline(always)]
unsafe fn add_values<L: Lanes, const R: usize>(
    outs: &[*mut f32; R],
    weights: &[*const f32; R],
    values: (*const u16, usize),
    positions: Range<usize>,
) {
    let head_dim = values.1;
    let mut at = 0;
    while at < head_dim && !positions.is_empty() {
        // SAFETY: passed on from the caller; the elements from `at` on are within the head.
        at += unsafe {
            match (head_dim - at) / L::COUNT {
                4.. if 4 * R <= L::SUMS => {
                    add_part::<L, R, 4>(outs, weights, values, (at, &positions))
                }
                2.. => add_part::<L, R, 2>(outs, weights, values, (at, &positions)),
                _ => add_part::<L, R, 1>(outs, weights, values, (at, &positions)),
            }
        };
    }
}

/// [`add_values`] for `D` registers of elements from `at` on; gives how many elements they are.
#[inline(always)]
unsafe fn add_part<L: Lanes, const R: usize, const D: usize>(
    outs: &[*mut f32; R],
    weights: &[*const f32; R],
    (values, head_dim): (*const u16, usize),
    (at, positions): (usize, &Range<usize>),
) -> usize {
    // SAFETY: passed on from the caller.
    unsafe {
        let mut sums = [[L::splat(0.0); R]; D];
        for d in 0..D {
            for r in 0..R {
                sums[d][r] = L::load(outs[r].add(at + d * L::COUNT));
            }
        }
        for position in positions.start..positions.end {
            let mut value = [L::splat(0.0); D];
            for d in 0..D {
                let value_at = values.add(position * head_dim + at + d * L::COUNT);
                value[d] = L::halves(value_at.cast());
            }
            for r in 0..R {
                let weight = L::splat(*weights[r].add(position));
                for d in 0..D {
                    sums[d][r] = L::mul_add(weight, value[d], sums[d][r]);
                }
            }
        }
        for d in 0..D {
            for r in 0..R {
                L::store(outs[r].add(at + d * L::COUNT), sums[d][r]);
            }
        }
    }
    D * L::COUNT
}
