//! Attention over half-precision pages; see [`super::super::attention`] for the order of things.

use std::arch::x86_64::*;

use super::super::attention::{AttendTask, KEY_LANES, KV_PAGE, KvHead};
use super::super::portable;
use super::linear::LANES;
use super::ops::{exp, greatest, total};

/// Registers of scores of one query and page.
const SCORE_BLOCKS: usize = KV_PAGE / LANES;

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

/// # Safety
/// The machine must have the instructions of [`super::present`]; the task's pointers must be to
/// live matrices of its shapes, and nobody else may touch the outputs.
pub(super) unsafe fn attend(task: &AttendTask) {
    if !task.attention.head_dim.is_multiple_of(LANES) {
        // SAFETY: passed on from the caller.
        return unsafe { (portable::KERNELS.attend)(task) };
    }
    let count = task.rows * task.heads;
    let mut query = 0;
    while query < count {
        // SAFETY: passed on from the caller; the queries are those of the task.
        query += unsafe {
            match count - query {
                4.. => tile::<4>(task, query),
                3 => tile::<3>(task, query),
                2 => tile::<2>(task, query),
                _ => tile::<1>(task, query),
            }
        };
    }
}

/// The attention of `R` queries, counted head by head and row by row; gives `R`.
///
/// # Safety
/// As for [`attend`]; `first` and the `R - 1` after it must be queries of the task.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn tile<const R: usize>(task: &AttendTask, first: usize) -> usize {
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
    let mut maxima = [f32::NEG_INFINITY; R];
    let mut totals = [0.0f32; R];
    for (page_idx, page) in task.attention.pages.iter().enumerate() {
        let seen_most = task.seen(queries.rows[R - 1], page_idx);
        if seen_most == 0 {
            break;
        }
        let mut kept = [0.0f32; R];
        // SAFETY: the places are those of the task's queries, and no row sees more than a page.
        unsafe {
            score(&queries, page, seen_most, &mut scores);
            for r in 0..R {
                let seen = task.seen(queries.rows[r], page_idx);
                let hidden = task.hidden(queries.rows[r], page_idx);
                let (maximum, sum) = weigh(&mut scores.0[r], hidden..seen, maxima[r]);
                // Nothing may have been seen yet, and no difference of infinities is a number.
                kept[r] = match maximum == maxima[r] {
                    true => 1.0,
                    false => scalar_exp(maxima[r] - maximum),
                };
                maxima[r] = maximum;
                totals[r] = totals[r] * kept[r] + sum;
            }
            collect(&queries, page, page_idx, &scores, &kept);
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
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn score<const R: usize>(
    queries: &Queries<'_, R>,
    page: &KvHead<'_>,
    seen: usize,
    scores: &mut Scores<R>,
) {
    let head_dim = queries.task.attention.head_dim;
    let scale = _mm256_set1_ps(queries.task.attention.scale);
    for block in 0..seen.div_ceil(KEY_LANES) {
        // SAFETY: a page holds whole blocks of keys; the queries have `head_dim` elements.
        unsafe {
            let keys = page.keys.as_ptr().add(block * KEY_LANES * head_dim);
            let mut sums = [[_mm256_setzero_ps(); R]; 2];
            for d in 0..head_dim {
                let at = keys.add(d * KEY_LANES);
                let key = [halves(at), halves(at.add(LANES))];
                for r in 0..R {
                    let q = _mm256_set1_ps(*queries.task.queries.add(queries.places[r] + d));
                    for k in 0..2 {
                        sums[k][r] = _mm256_fmadd_ps(q, key[k], sums[k][r]);
                    }
                }
            }
            for (k, sums) in sums.iter().enumerate() {
                for (r, sum) in sums.iter().enumerate() {
                    let at = block * KEY_LANES + k * LANES;
                    let place = scores.0[r][at..].as_mut_ptr();
                    _mm256_storeu_ps(place, _mm256_mul_ps(*sum, scale));
                }
            }
        }
    }
}

/// Turns the seen scores into exponentials against the greatest score so far, and the others into
/// zeros. Gives that greatest score, and the sum.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn weigh(
    scores: &mut [f32; KV_PAGE],
    seen: std::ops::Range<usize>,
    before: f32,
) -> (f32, f32) {
    if seen.is_empty() {
        scores[..seen.end].fill(0.0);
        return (before, 0.0);
    }
    scores[..seen.start].fill(f32::NEG_INFINITY);
    let seen = seen.end;
    let blocks = seen.div_ceil(LANES);
    scores[seen..blocks * LANES].fill(f32::NEG_INFINITY);
    let mut values = [_mm256_setzero_ps(); SCORE_BLOCKS];
    let mut most = _mm256_set1_ps(f32::NEG_INFINITY);
    for (block, values) in values.iter_mut().enumerate().take(blocks) {
        // SAFETY: within the scores.
        *values = unsafe { _mm256_loadu_ps(scores.as_ptr().add(block * LANES)) };
        most = _mm256_max_ps(most, *values);
    }
    let most = before.max(greatest(most));
    let mut sum = _mm256_setzero_ps();
    for block in 0..blocks {
        // SAFETY: within the scores.
        unsafe {
            let weights = exp(_mm256_sub_ps(values[block], _mm256_set1_ps(most)));
            sum = _mm256_add_ps(sum, weights);
            _mm256_storeu_ps(scores.as_mut_ptr().add(block * LANES), weights);
        }
    }
    (most, total(sum))
}

/// Scales what the outputs hold by `kept` (page 0 begins with nothing) and adds the weighted
/// values of a page.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn collect<const R: usize>(
    queries: &Queries<'_, R>,
    page: &KvHead<'_>,
    page_idx: usize,
    scores: &Scores<R>,
    kept: &[f32; R],
) {
    let head_dim = queries.task.attention.head_dim;
    let task = queries.task;
    let seen = task.seen(queries.rows[0], page_idx);
    let weights: [*const f32; R] = std::array::from_fn(|r| scores.0[r].as_ptr());
    let outs: [*mut f32; R] = std::array::from_fn(|r| task.out.wrapping_add(queries.places[r]));
    for r in 0..R {
        for at in (0..head_dim).step_by(LANES) {
            // SAFETY: within the output of the query.
            unsafe {
                let place = outs[r].add(at);
                let held = match page_idx {
                    0 => _mm256_setzero_ps(),
                    _ => _mm256_mul_ps(_mm256_loadu_ps(place), _mm256_set1_ps(kept[r])),
                };
                _mm256_storeu_ps(place, held);
            }
        }
    }
    // The positions that all of them see, then those that only later rows see.
    // SAFETY: weights and values have a place for each position of the page.
    unsafe { add_values(&outs, &weights, page.values.as_ptr(), head_dim, 0..seen) };
    for r in 1..R {
        let rest = seen..task.seen(queries.rows[r], page_idx);
        // SAFETY: as above.
        unsafe {
            add_values(
                &[outs[r]],
                &[weights[r]],
                page.values.as_ptr(),
                head_dim,
                rest,
            )
        };
    }
}

/// Adds the weighted values of some positions, in their order, to some outputs.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn add_values<const R: usize>(
    outs: &[*mut f32; R],
    weights: &[*const f32; R],
    values: *const u16,
    head_dim: usize,
    positions: std::ops::Range<usize>,
) {
    let mut at = 0;
    while at < head_dim && !positions.is_empty() {
        // SAFETY: passed on from the caller; the elements from `at` on are within the head.
        at += unsafe {
            match (head_dim - at) / LANES {
                4.. if R <= 2 => {
                    add_part::<R, 4>(outs, weights, (values, head_dim, at), &positions)
                }
                2.. => add_part::<R, 2>(outs, weights, (values, head_dim, at), &positions),
                _ => add_part::<R, 1>(outs, weights, (values, head_dim, at), &positions),
            }
        };
    }
}

/// [`add_values`] for `D` registers of elements from `at` on; gives how many elements they are.
#[inline(always)]
unsafe fn add_part<const R: usize, const D: usize>(
    outs: &[*mut f32; R],
    weights: &[*const f32; R],
    (values, head_dim, at): (*const u16, usize, usize),
    positions: &std::ops::Range<usize>,
) -> usize {
    // SAFETY: passed on from the caller.
    unsafe {
        let mut sums = [[_mm256_setzero_ps(); R]; D];
        for d in 0..D {
            for r in 0..R {
                sums[d][r] = _mm256_loadu_ps(outs[r].add(at + d * LANES));
            }
        }
        for position in positions.start..positions.end {
            let mut value = [_mm256_setzero_ps(); D];
            for d in 0..D {
                value[d] = halves(values.add(position * head_dim + at + d * LANES));
            }
            for r in 0..R {
                let weight = _mm256_set1_ps(*weights[r].add(position));
                for d in 0..D {
                    sums[d][r] = _mm256_fmadd_ps(weight, value[d], sums[d][r]);
                }
            }
        }
        for d in 0..D {
            for r in 0..R {
                _mm256_storeu_ps(outs[r].add(at + d * LANES), sums[d][r]);
            }
        }
    }
    D * LANES
}

/// 8 half floats.
#[inline(always)]
unsafe fn halves(at: *const u16) -> __m256 {
    // SAFETY: passed on from the caller.
    unsafe { _mm256_cvtph_ps(_mm_loadu_si128(at.cast())) }
}

/// The exponential of one number, the same as in a lane.
#[inline(always)]
unsafe fn scalar_exp(x: f32) -> f32 {
    // SAFETY: the caller has the instructions.
    unsafe { _mm256_cvtss_f32(exp(_mm256_set1_ps(x))) }
}
