//! Attention over half-precision pages; see [`super::super::attention`] for the order of things.

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use std::marker::PhantomData;
use std::ops::Range;

use super::super::attention::{AttendTask, Exp, Join, KEY_LANES, KV_PAGE, Known, KvHead, Target};
use super::super::buffer::LINE_BYTES;
use super::super::portable;
use super::lanes::Lanes;
use super::rows::exp;

/// The scores of some queries in one page, then their exponentials.
#[repr(align(64))]
struct Scores<const R: usize>([[f32; KV_PAGE]; R]);

/// Queries that are computed together.
struct Queries<'a, const R: usize> {
    task: &'a AttendTask<'a>,
    /// The number of the first; see [`AttendTask::part_place`].
    first: usize,
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
        first,
        places: [0; R],
        rows: [0; R],
    };
    for r in 0..R {
        let (row, head) = ((first + r) / task.heads, (first + r) % task.heads);
        queries.rows[r] = row;
        queries.places[r] = task.place(row, head);
    }
    let head_dim = task.attention.head_dim;
    let mut scores = Scores([[0.0; KV_PAGE]; R]);
    let mut known: [Known; R] = std::array::from_fn(|r| task.start((first + r) % task.heads));
    if let Target::Output(out) = task.target {
        for place in queries.places {
            // SAFETY: the output of one head of the task.
            unsafe { std::slice::from_raw_parts_mut(out.add(place), head_dim) }.fill(0.0);
        }
    }
    for (page_idx, page) in task.attention.pages.iter().enumerate() {
        let seen: [usize; R] = std::array::from_fn(|r| task.seen(queries.rows[r], page_idx));
        let seen_most = seen[R - 1];
        if seen_most == 0 {
            break;
        }
        // SAFETY: the places are those of the task's queries, and no row sees more than a page.
        unsafe {
            if 4 * R <= L::SUMS {
                score::<L, R, 4>(&queries, page, seen_most, &mut scores);
            } else {
                score::<L, R, 2>(&queries, page, seen_most, &mut scores);
            }
            if let Some(cap) = task.attention.softcap {
                for scores in &mut scores.0 {
                    bound::<L>(cap, &mut scores[..seen_most.next_multiple_of(L::COUNT)]);
                }
            }
            let mut ends = [End::Unseen; R];
            // What comes next is elsewhere in memory, and the exponentials take a while.
            fetch_first(page.values);
            if let Some(next) = task.attention.pages.get(page_idx + 1) {
                fetch_first(next.keys);
            }
            for r in 0..R {
                let hidden = task.hidden(queries.rows[r], page_idx);
                let of_page = weigh::<L>(&mut scores.0[r], hidden..seen[r]);
                ends[r] = match task.target {
                    _ if seen[r] == 0 => End::Unseen,
                    Target::Output(out) => {
                        let factors = known[r].add::<Wide<L>>(of_page);
                        End::Add(out.add(queries.places[r]), factors)
                    }
                    Target::Parts(parts) => {
                        let part = parts.add(task.part_place(page_idx, queries.first + r));
                        *part.add(head_dim) = of_page.maximum;
                        *part.add(head_dim + 1) = of_page.total;
                        End::Put(part)
                    }
                };
            }
            collect::<L, R>(page, head_dim, (&scores, &seen), &ends);
        }
    }
    if let Target::Output(out) = task.target {
        for r in 0..R {
            // SAFETY: the output of one head of the task.
            let out =
                unsafe { std::slice::from_raw_parts_mut(out.add(queries.places[r]), head_dim) };
            out.iter_mut().for_each(|o| *o /= known[r].total);
        }
    }
    R
}

/// The exponential of the weights.
struct Wide<L>(PhantomData<L>);

impl<L: Lanes> Exp for Wide<L> {
    #[inline(always)]
    unsafe fn exp(x: f32) -> f32 {
        // SAFETY: the caller has the instructions.
        unsafe { L::first(exp::<L>(L::splat(x))) }
    }
}

/// Half-precision numbers of a cache line.
const LINE_HALVES: usize = LINE_BYTES / 2;

/// How many positions ahead their values are fetched: some kilobytes.
const VALUES_AHEAD: usize = 32;

/// Lines at the front of a run of memory that are fetched before it is read: what arrives while the
/// exponentials of a page are computed.
const LINES_FIRST: usize = 32;

/// Brings a line into the cache; any address is allowed.
#[inline(always)]
fn fetch(place: *const u16) {
    // SAFETY: a hint, without effect where there is no memory.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) }
}

/// Brings the front of a run of memory into the cache.
#[inline(always)]
fn fetch_first(run: &[u16]) {
    for line in 0..LINES_FIRST {
        fetch(run.as_ptr().wrapping_add(line * LINE_HALVES));
    }
}

/// What becomes of a page's weighted sum of values for a query.
#[derive(Clone, Copy)]
enum End {
    /// The query sees nothing of the page.
    Unseen,
    /// What is there and the sum are scaled and added.
    Add(*mut f32, (f32, f32)),
    /// It is put there.
    Put(*mut f32),
}

/// Joins the parts of a query; see [`super::super::attention`].
///
/// # Safety
/// See [`Lanes`].
#[inline(always)]
pub(in crate::simd) unsafe fn join<L: Lanes>(join: &mut Join<'_>) {
    if !join.out.len().is_multiple_of(L::COUNT) {
        // SAFETY: passed on from the caller.
        return unsafe { (portable::KERNELS.join)(join) };
    }
    let mut known = join.start;
    join.out.fill(0.0);
    for number in 0..join.n_parts {
        let (sums, of_page) = join.part(number);
        let sums = sums.as_ptr();
        // SAFETY: whole registers of the output and of the part, which is as long.
        unsafe {
            let factors = known.add::<Wide<L>>(of_page);
            for at in (0..join.out.len()).step_by(L::COUNT) {
                let place = join.out.as_mut_ptr().add(at);
                add_scaled::<L>(place, factors, L::load(sums.add(at)));
            }
        }
    }
    join.out.iter_mut().for_each(|o| *o /= known.total);
}

/// What is at a place, scaled, plus the sum of a page, scaled.
#[inline(always)]
unsafe fn add_scaled<L: Lanes>(place: *mut f32, (old, new): (f32, f32), sum: L::Floats) {
    // SAFETY: a register of the output, as the caller states.
    unsafe {
        let held = L::mul(L::load(place), L::splat(old));
        L::store(place, L::mul_add(sum, L::splat(new), held));
    }
}

/// Scaled products of the queries with the first `seen` keys of a page; those of `K` registers of
/// keys share a load of the queries.
#[inline(always)]
unsafe fn score<L: Lanes, const R: usize, const K: usize>(
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
        for first in (0..seen).step_by(K * L::COUNT) {
            let mut keys = [page.keys.as_ptr(); K];
            for (k, keys) in keys.iter_mut().enumerate() {
                let key = first + k * L::COUNT;
                *keys = keys.add(key / KEY_LANES * KEY_LANES * head_dim + key % KEY_LANES);
            }
            let mut sums = [[L::splat(0.0); R]; K];
            for d in 0..head_dim {
                let mut key = [L::splat(0.0); K];
                for k in 0..K {
                    let place = keys[k].add(d * KEY_LANES);
                    key[k] = L::halves(place.cast());
                    // The same place in the keys that come next; a line holds two elements.
                    if d % 2 == 0 && k * L::COUNT % KEY_LANES == 0 {
                        fetch(place.wrapping_add(K * L::COUNT * head_dim));
                    }
                }
                for r in 0..R {
                    let q = L::splat(*queries.task.queries.add(queries.places[r] + d));
                    for k in 0..K {
                        sums[k][r] = L::mul_add(q, key[k], sums[k][r]);
                    }
                }
            }
            for k in 0..K {
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

/// Turns the seen scores into exponentials against the greatest of them, and the others into
/// zeros. Gives that greatest score, and the sum.
#[inline(always)]
unsafe fn weigh<L: Lanes>(scores: &mut [f32; KV_PAGE], seen: Range<usize>) -> Known {
    if seen.is_empty() {
        scores[..seen.end].fill(0.0);
        return Known::start(None);
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
        let maximum = f32::NEG_INFINITY.max(L::greatest(most));
        let mut sum = L::splat(0.0);
        for scores in scores[..end].chunks_exact_mut(L::COUNT) {
            let against = L::sub(L::load(scores.as_ptr()), L::splat(maximum));
            let weights = exp::<L>(against);
            sum = L::add(sum, weights);
            L::store(scores.as_mut_ptr(), weights);
        }
        let total = L::total(sum);
        Known { maximum, total }
    }
}

/// The weighted sums of the values of a page, in the order of the positions: those that all
/// queries see, then those that only later rows see.
#[inline(always)]
unsafe fn collect<L: Lanes, const R: usize>(
    page: &KvHead<'_>,
    head_dim: usize,
    (scores, seen): (&Scores<R>, &[usize; R]),
    ends: &[End; R],
) {
    let values = page.values.as_ptr();
    let mut at = 0;
    while at < head_dim {
        // SAFETY: weights and values have a place for each position of the page; the elements
        // from `at` on are within the head.
        at += unsafe {
            let values = (values.add(at), head_dim);
            match (head_dim - at) / L::COUNT {
                4.. if 4 * R <= L::SUMS => {
                    collect_part::<L, R, 4>(values, at, (scores, seen), ends)
                }
                2.. => collect_part::<L, R, 2>(values, at, (scores, seen), ends),
                _ => collect_part::<L, R, 1>(values, at, (scores, seen), ends),
            }
        };
    }
}

/// [`collect`] for `D` registers of elements from `at` on; gives how many elements they are.
#[inline(always)]
unsafe fn collect_part<L: Lanes, const R: usize, const D: usize>(
    (values, head_dim): (*const u16, usize),
    at: usize,
    (scores, seen): (&Scores<R>, &[usize; R]),
    ends: &[End; R],
) -> usize {
    // SAFETY: passed on from the caller.
    unsafe {
        let mut sums = [[L::splat(0.0); R]; D];
        for position in 0..seen[0] {
            let mut value = [L::splat(0.0); D];
            for d in 0..D {
                let place = values.add(position * head_dim + d * L::COUNT);
                value[d] = L::halves(place.cast());
                if d * L::COUNT % LINE_HALVES == 0 {
                    fetch(place.wrapping_add(VALUES_AHEAD * head_dim));
                }
            }
            for r in 0..R {
                let weight = L::splat(scores.0[r][position]);
                for d in 0..D {
                    sums[d][r] = L::mul_add(weight, value[d], sums[d][r]);
                }
            }
        }
        for r in 1..R {
            for position in seen[0]..seen[r] {
                let weight = L::splat(scores.0[r][position]);
                for d in 0..D {
                    let value = L::halves(values.add(position * head_dim + d * L::COUNT).cast());
                    sums[d][r] = L::mul_add(weight, value, sums[d][r]);
                }
            }
        }
        for r in 0..R {
            for d in 0..D {
                let place = at + d * L::COUNT;
                match ends[r] {
                    End::Unseen => {}
                    End::Add(out, factors) => add_scaled::<L>(out.add(place), factors, sums[d][r]),
                    End::Put(part) => L::store(part.add(place), sums[d][r]),
                }
            }
        }
    }
    D * L::COUNT
}
