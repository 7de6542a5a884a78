//! The end of the way: one token of those that are left.

use super::{Candidate, NotFinite, Pool, Sampling};

/// Whether something can be chosen from these logits as a model gave them.
pub(crate) fn refuse_not_finite(logits: &[f32]) -> Result<(), NotFinite> {
    if largest(logits).is_some_and(|largest| largest > f32::NEG_INFINITY) {
        return Ok(());
    }
    let unusable = |logit: &f32| logit.is_nan() || *logit == f32::INFINITY;
    Err(NotFinite {
        token: logits.iter().position(unusable).unwrap_or(0),
    })
}

/// Maxima that are taken side by side, so that the compiler uses the processor's vectors.
const LANES: usize = 16;

/// The largest logit, −∞ where there is none; nothing if one is NaN or +∞.
pub(super) fn largest(logits: &[f32]) -> Option<f32> {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let mut usable = [true; LANES];
    let (chunks, rest) = logits.as_chunks::<LANES>();
    for chunk in chunks {
        for i in 0..LANES {
            lanes[i] = if chunk[i] > lanes[i] {
                chunk[i]
            } else {
                lanes[i]
            };
            usable[i] &= chunk[i] < f32::INFINITY;
        }
    }
    let usable =
        usable.into_iter().all(|usable| usable) && rest.iter().all(|logit| *logit < f32::INFINITY);
    usable.then(|| {
        lanes
            .iter()
            .chain(rest)
            .copied()
            .fold(f32::NEG_INFINITY, f32::max)
    })
}

/// The lowest id with this logit, which is the largest.
pub(super) fn first_with(largest: f32, logits: &[f32]) -> u32 {
    (0u32..)
        .zip(logits)
        .find(|(_, logit)| **logit == largest)
        .map_or(0, |(id, _)| id)
}

pub(super) fn temperature(sampling: &Sampling, pool: &mut Pool<'_>) {
    pool.keep_all_if_unfiltered();
    // Counted from the largest down: however small the temperature is, the best stays 0 and the
    // others become −∞ at worst. Divided as they stand, several could become the same +∞.
    let largest = pool.largest();
    for candidate in pool.kept.iter_mut() {
        candidate.logit = (candidate.logit - largest) / sampling.temperature;
    }
}

/// What a candidate weighs beside one with this logit.
pub(super) fn weight_below(largest: f32) -> impl Fn(&Candidate) -> f64 {
    move |candidate| f64::from(candidate.logit - largest).exp()
}

/// Walks the candidates by id until their probabilities reach `point`. The order decides which
/// token a number between 0 and 1 means, so it must not depend on how a filter left them.
pub(super) fn walk(kept: &mut [Candidate], point: f64) -> u32 {
    if !kept.is_sorted_by_key(|candidate| candidate.id) {
        kept.sort_unstable_by_key(|candidate| candidate.id);
    }
    let largest = kept
        .iter()
        .map(|candidate| candidate.logit)
        .fold(f32::NEG_INFINITY, f32::max);
    let weight = weight_below(largest);
    let total: f64 = kept.iter().map(&weight).sum();
    let mut left = point * total;
    let mut last = 0;
    for candidate in kept.iter() {
        let weight = weight(candidate);
        if weight > 0.0 {
            last = candidate.id;
            if left < weight {
                return last;
            }
            left -= weight;
        }
    }
    // Rounding of the sum can leave a rest behind the last candidate.
    last
}
