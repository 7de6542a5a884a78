//! Stages that leave candidates out.

use std::cmp::Ordering;

use super::choose::weight_below;
use super::{Candidate, Pool, Sampling};
use crate::draw::uniform;

/// Best first; ties to the lower id, so that every filter has one answer.
pub(super) fn better_first(a: &Candidate, b: &Candidate) -> Ordering {
    b.logit.total_cmp(&a.logit).then(a.id.cmp(&b.id))
}

/// Keeps a buffer of twice `k` candidates that is cut back when full: one pass over the
/// vocabulary, of which nearly every entry fails the first comparison.
pub(super) fn top_k(sampling: &Sampling, pool: &mut Pool<'_>) {
    let k = sampling.top_k;
    if k == 0 || k >= pool.logits.len() {
        return;
    }
    let mut threshold = f32::NEG_INFINITY;
    let mut full = false;
    for (id, &logit) in (0u32..).zip(pool.logits.iter()) {
        // A later equal has the higher id, so it loses against all that are kept.
        if full && logit <= threshold {
            continue;
        }
        pool.kept.push(Candidate { id, logit });
        if pool.kept.len() == 2 * k {
            threshold = cut_to_best(pool.kept, k);
            full = true;
        }
    }
    if pool.kept.len() > k {
        cut_to_best(pool.kept, k);
    }
}

/// Leaves the `k` best in any order and returns the logit of the worst of them.
fn cut_to_best(kept: &mut Vec<Candidate>, k: usize) -> f32 {
    let (_, worst, _) = kept.select_nth_unstable_by(k - 1, better_first);
    let worst = worst.logit;
    kept.truncate(k);
    worst
}

/// Candidates that are sorted first; most nuclei are smaller.
const TOP_P_SORTED_FIRST: usize = 128;

/// Drops what cannot be needed without sorting, then sorts only as far as the probability needs,
/// in portions that double.
pub(super) fn top_p(sampling: &Sampling, pool: &mut Pool<'_>) {
    if sampling.top_p >= 1.0 {
        return;
    }
    pool.keep_all_if_unfiltered();
    let largest = pool.largest();
    let weight = weight_below(largest);
    let total: f64 = pool.kept.iter().map(&weight).sum();
    let needed = f64::from(sampling.top_p) * total;
    // All candidates below this together have no more than the part that may be left out.
    let least = (total - needed) / pool.kept.len() as f64;
    pool.kept.retain(|candidate| weight(candidate) >= least);
    let (mut sum, mut sorted, mut portion) = (0.0, 0, TOP_P_SORTED_FIRST);
    while sorted < pool.kept.len() {
        let rest = &mut pool.kept[sorted..];
        let next = portion.min(rest.len());
        if next < rest.len() {
            rest.select_nth_unstable_by(next, better_first);
        }
        rest[..next].sort_unstable_by(better_first);
        for (i, candidate) in rest[..next].iter().enumerate() {
            sum += weight(candidate);
            if sum >= needed {
                pool.kept.truncate(sorted + i + 1);
                return;
            }
        }
        sorted += next;
        portion *= 2;
    }
}

/// A share of the best one's probability is a distance of logits, so nothing is summed.
pub(super) fn min_p(sampling: &Sampling, pool: &mut Pool<'_>) {
    if sampling.min_p == 0.0 {
        return;
    }
    let least = pool.largest() + sampling.min_p.ln();
    if pool.kept.is_empty() {
        let all = (0u32..)
            .zip(pool.logits.iter())
            .filter(|(_, logit)| **logit >= least);
        pool.kept
            .extend(all.map(|(id, &logit)| Candidate { id, logit }));
    } else {
        pool.kept.retain(|candidate| candidate.logit >= least);
    }
}

/// Tells the draws of this stage from those that choose the token.
const XTC_STREAM: u64 = 0x5854_4321_5854_4321;

/// "Exclude top choices" (p-e-w, 2024, as llama.cpp has it): of the candidates that reach the
/// threshold only the least likely stays, so often as the probability says.
pub(super) fn xtc(sampling: &Sampling, pool: &mut Pool<'_>) {
    if sampling.xtc_probability == 0.0 {
        return;
    }
    let point = uniform(sampling.seed ^ XTC_STREAM, pool.given.draw);
    if point >= f64::from(sampling.xtc_probability) {
        return;
    }
    pool.keep_all_if_unfiltered();
    let weight = weight_below(pool.largest());
    let total: f64 = pool.kept.iter().map(&weight).sum();
    let needed = f64::from(sampling.xtc_threshold) * total;
    let reaches = |candidate: &Candidate| {
        let weight = weight(candidate);
        weight > 0.0 && weight >= needed
    };
    let reaching = pool.kept.iter().filter(|candidate| reaches(candidate));
    let Some(&stays) = reaching.max_by(|a, b| better_first(a, b)) else {
        return;
    };
    pool.kept
        .retain(|candidate| candidate.id == stays.id || !reaches(candidate));
}
