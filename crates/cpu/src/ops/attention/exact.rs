//! The float32 arithmetic: page by page, the scores, their exponentials against the page's largest
//! score, the weighted sum of the values; then the pages are joined in their order.

use super::{Item, Shape, bound};
use crate::simd::exact;
use crate::state::{FloatHead, PAGE_TOKENS};

/// What is known of one query after some pages.
struct Sums<'a> {
    largest: &'a mut f32,
    total: &'a mut f32,
    values: &'a mut [f32],
}

/// The float32 arithmetic for one tile.
pub(super) fn attend(
    item: &mut Item<'_>,
    pages: &[FloatHead<'_>],
    shape: Shape<'_>,
    scratch: &mut Vec<f32>,
) {
    let Shape {
        head_dim, group, ..
    } = shape;
    let rows = item.tile.rows();
    let first_col = item.tile.cols().start;
    // For each query: largest score, sum of exponentials, sum of values. Then for one page: the
    // scores, and the sum of values.
    let n_queries = rows.len() * group;
    scratch.clear();
    scratch.resize(n_queries * (2 + head_dim) + PAGE_TOKENS + head_dim, 0.0);
    let (largest, rest) = scratch.split_at_mut(n_queries);
    let (totals, rest) = rest.split_at_mut(n_queries);
    let (sums, rest) = rest.split_at_mut(n_queries * head_dim);
    let (scores, page_sum) = rest.split_at_mut(PAGE_TOKENS);
    start(shape.sinks(first_col / head_dim), largest, totals);
    for (page_idx, page) in pages.iter().enumerate() {
        for (i, row) in rows.clone().enumerate() {
            let position = item.first_position + i;
            let seen = (position + 1)
                .saturating_sub(page_idx * PAGE_TOKENS)
                .min(PAGE_TOKENS);
            let hidden = (position + 1)
                .saturating_sub(shape.window)
                .saturating_sub(page_idx * PAGE_TOKENS);
            if seen <= hidden {
                continue;
            }
            for head in 0..group {
                let at = i * group + head;
                let query = &item.queries[row * item.width + first_col + head * head_dim..];
                let sums = Sums {
                    largest: &mut largest[at],
                    total: &mut totals[at],
                    values: &mut sums[at * head_dim..][..head_dim],
                };
                let query = &query[..head_dim];
                let page = FloatHead {
                    keys: &page.keys[hidden * head_dim..],
                    values: &page.values[hidden * head_dim..],
                };
                let scores = &mut scores[..seen - hidden];
                add_page(sums, query, &page, shape, (scores, page_sum));
            }
        }
    }
    for (i, row) in rows.enumerate() {
        for (head, out) in item.tile.row(row).chunks_exact_mut(head_dim).enumerate() {
            let at = i * group + head;
            for (out, sum) in out.iter_mut().zip(&sums[at * head_dim..]) {
                *out = sum / totals[at];
            }
        }
    }
}

/// What is known of the queries before the first page: nothing, or their heads' sinks.
fn start(sinks: Option<&[f32]>, largest: &mut [f32], totals: &mut [f32]) {
    let Some(sinks) = sinks else {
        return largest.fill(f32::NEG_INFINITY);
    };
    for largest in largest.chunks_exact_mut(sinks.len()) {
        largest.copy_from_slice(sinks);
    }
    totals.fill(1.0);
}

/// Adds a page to what is known of a query. `scores` has a place for each token that it sees.
fn add_page(
    sums: Sums<'_>,
    query: &[f32],
    page: &FloatHead<'_>,
    shape: Shape<'_>,
    (scores, page_sum): (&mut [f32], &mut [f32]),
) {
    let head_dim = query.len();
    exact::products(
        &page.keys[..scores.len() * head_dim],
        query,
        head_dim,
        scores,
    );
    scores.iter_mut().for_each(|score| *score *= shape.scale);
    if let Some(cap) = shape.softcap {
        bound(cap, scores);
    }
    let page_largest = scores.iter().fold(f32::NEG_INFINITY, |a, b| a.max(*b));
    let mut page_total = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - page_largest).exp();
        page_total += *score;
    }
    page_sum.fill(0.0);
    exact::weighted_sum(scores, page.values, page_sum);
    let largest = sums.largest.max(page_largest);
    let (old, new) = (
        (*sums.largest - largest).exp(),
        (page_largest - largest).exp(),
    );
    *sums.largest = largest;
    *sums.total = *sums.total * old + page_total * new;
    for (sum, page_sum) in sums.values.iter_mut().zip(page_sum.iter()) {
        *sum = *sum * old + page_sum * new;
    }
}
