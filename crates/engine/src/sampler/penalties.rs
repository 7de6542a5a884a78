//! Stages that change logits by what was written before: the penalties and DRY.

use super::{Pool, REPEAT_WINDOW, Sampling};

/// Each token of the window once: the repeat penalty divides it (negative: multiplies), then
/// frequency is taken off for every time that it stands there, and presence once. As llama.cpp
/// does it; the window holds the end of the prompt too.
pub(super) fn penalties(sampling: &Sampling, pool: &mut Pool<'_>) {
    let &Sampling {
        repeat_penalty: repeat,
        presence_penalty: presence,
        frequency_penalty: frequency,
        ..
    } = sampling;
    if !sampling.penalises() {
        return;
    }
    let history = pool.given.history;
    let window = &history[history.len().saturating_sub(REPEAT_WINDOW)..];
    for (i, id) in window.iter().enumerate() {
        if window[..i].contains(id) {
            continue;
        }
        let count = window[i..].iter().filter(|other| *other == id).count();
        if let Some(logit) = pool.logits.get_mut(*id as usize) {
            *logit = if *logit > 0.0 {
                *logit / repeat
            } else {
                *logit * repeat
            };
            *logit -= count as f32 * frequency + presence;
        }
    }
}

/// What DRY needs while it looks for repetitions; kept between tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct DryScratch {
    /// For each distance: how many tokens before it equal the newest ones.
    matches: Vec<u32>,
    /// Tokens that would go on with a repetition, and how long that is already.
    followers: Vec<(u32, u32)>,
}

/// Past this the power no longer fits into a float32 anyhow (its natural logarithm).
const LARGEST_EXPONENT: f32 = 88.7;

/// "Don't repeat yourself" (p-e-w, 2024, as llama.cpp has it): a token that would go on with
/// something that was written before loses the more, the longer the repetition is already.
/// Breakers end a repetition, so that the frame of a chat does not count as one.
pub(super) fn dry(sampling: &Sampling, pool: &mut Pool<'_>) {
    if !sampling.is_dry() {
        return;
    }
    let history = pool.given.history;
    let window = match sampling.dry_window {
        0 => history,
        tokens => &history[history.len().saturating_sub(tokens)..],
    };
    let is_breaker = |id: &u32| pool.breakers.binary_search(id).is_ok();
    let longest = window.iter().rev().take_while(|id| !is_breaker(id)).count();
    let allowed = sampling.dry_allowed_length;
    if longest < allowed || window.len() <= allowed {
        return;
    }
    let DryScratch { matches, followers } = pool.dry;
    count_matches(window, matches);
    followers.clear();
    for (distance, &found) in matches.iter().enumerate().skip(1) {
        let length = (found as usize).min(longest);
        if length >= allowed {
            let next = window[window.len() - distance];
            followers.push((next, length as u32));
        }
    }
    // The longest repetition of each token comes first.
    followers.sort_unstable_by_key(|&(id, length)| (id, std::cmp::Reverse(length)));
    followers.dedup_by_key(|(id, _)| *id);
    let base = sampling.dry_base;
    let exponent_max = match base > 1.0 {
        true => LARGEST_EXPONENT / base.ln(),
        false => f32::INFINITY,
    };
    for &(id, length) in followers.iter() {
        let exponent = (length as usize - allowed) as f32;
        let penalty = sampling.dry_multiplier * base.powf(exponent.min(exponent_max));
        if let Some(logit) = pool.logits.get_mut(id as usize) {
            *logit -= penalty;
        }
    }
}

/// For each distance from the newest token: how many tokens, going back, equal the newest ones.
/// The Z-function of the window read backwards, so that a long context costs one pass.
fn count_matches(window: &[u32], matches: &mut Vec<u32>) {
    let len = window.len();
    let back = |i: usize| window[len - 1 - i];
    matches.clear();
    matches.resize(len, 0);
    // What lies between is known to equal the beginning.
    let (mut start, mut end) = (0, 0);
    for distance in 1..len {
        let mut length = match distance < end {
            true => (matches[distance - start] as usize).min(end - distance),
            false => 0,
        };
        while distance + length < len && back(length) == back(distance + length) {
            length += 1;
        }
        if distance + length > end {
            (start, end) = (distance, distance + length);
        }
        matches[distance] = length as u32;
    }
}
