//! From logits to a token. Pure: no clock, no generator state, no thread.
//!
//! The stages run in the order of [`STAGES`], which is the order that llama.cpp's default chain
//! made the habit of the field: repeat penalty, top-k, top-p, min-p, temperature. Temperature is
//! last, so that the filters judge the model's own probabilities. What is left is walked in the
//! order of token ids with one number between 0 and 1, which depends on the seed and on how many
//! tokens were drawn before, and on nothing else.

use std::cmp::Ordering;

use crate::draw::uniform;

/// Tokens that the repeat penalty looks back over. 64 is the window that users of other programs
/// know; a longer one begins to punish the words that every sentence needs.
pub const REPEAT_WINDOW: usize = 64;
/// Above this every distribution is flat already.
pub const TEMPERATURE_MAX: f32 = 10.0;
/// Below 1 a penalty rewards repetition; a tenth is beyond any sensible use.
pub const REPEAT_PENALTY_MIN: f32 = 0.1;
/// Above this a repeated token is as good as forbidden.
pub const REPEAT_PENALTY_MAX: f32 = 10.0;

/// How the next token is chosen, as the user says it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// 0 takes the best token, the lowest id on ties; the filters then have nothing to do.
    pub temperature: f32,
    /// Keeps the `top_k` best; 0 keeps all.
    pub top_k: usize,
    /// Keeps the best tokens that together reach this probability; 1 keeps all.
    pub top_p: f32,
    /// Keeps tokens with at least this share of the best one's probability; 0 keeps all.
    pub min_p: f32,
    /// Divides (negative: multiplies) the logits of tokens seen lately; 1 changes nothing.
    pub repeat_penalty: f32,
    /// Same seed, same reply.
    pub seed: u64,
}

impl Sampling {
    /// The best token each time.
    pub fn greedy() -> Self {
        Self {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repeat_penalty: 1.0,
            seed: 0,
        }
    }
}

/// A number outside its bounds.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{what} is {found}; it has to be between {min} and {max}")]
pub struct SamplingError {
    /// Which number.
    pub what: &'static str,
    /// As given.
    pub found: f32,
    /// The least allowed.
    pub min: f32,
    /// The most allowed.
    pub max: f32,
}

/// The logits hold something that is no number, or nothing that can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the logit of token {token} is not a number that can be chosen from")]
pub struct NotFinite {
    /// The first such token.
    pub token: usize,
}

/// Chooses tokens for one reply. Keeps its scratch memory between tokens.
#[derive(Clone, Debug)]
pub struct Sampler {
    sampling: Sampling,
    scratch: Vec<Candidate>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Candidate {
    id: u32,
    logit: f32,
}

/// What a stage works on.
struct Pool<'a> {
    /// Logits of the whole vocabulary; what counts until `kept` does.
    logits: &'a mut [f32],
    /// What is left, once a filter has run. Empty before.
    kept: &'a mut Vec<Candidate>,
    /// Tokens already in the context, oldest first.
    history: &'a [u32],
}

/// One step on the way from logits to a token.
struct Stage {
    name: &'static str,
    apply: fn(&Sampling, &mut Pool<'_>),
}

/// Every stage, in order. A new one is a function below and a row here. Where the best token is
/// taken (temperature 0) only the first one runs.
static STAGES: &[Stage] = &[
    Stage {
        name: "repeat_penalty",
        apply: repeat_penalty,
    },
    Stage {
        name: "top_k",
        apply: top_k,
    },
    Stage {
        name: "top_p",
        apply: top_p,
    },
    Stage {
        name: "min_p",
        apply: min_p,
    },
    Stage {
        name: "temperature",
        apply: temperature,
    },
];

/// Names of the stages in the order in which they run.
pub fn stage_names() -> impl Iterator<Item = &'static str> {
    STAGES.iter().map(|stage| stage.name)
}

impl Sampler {
    /// # Errors
    /// [`SamplingError`] for the first number outside its bounds (a NaN is outside of all).
    pub fn new(sampling: Sampling) -> Result<Self, SamplingError> {
        let bounds = [
            ("temperature", sampling.temperature, 0.0, TEMPERATURE_MAX),
            ("top-p", sampling.top_p, 0.0, 1.0),
            ("min-p", sampling.min_p, 0.0, 1.0),
            (
                "repeat penalty",
                sampling.repeat_penalty,
                REPEAT_PENALTY_MIN,
                REPEAT_PENALTY_MAX,
            ),
        ];
        for (what, found, min, max) in bounds {
            if !(min..=max).contains(&found) {
                return Err(SamplingError {
                    what,
                    found,
                    min,
                    max,
                });
            }
        }
        Ok(Self {
            sampling,
            scratch: Vec::new(),
        })
    }

    /// What it was made of.
    pub fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// Whether it takes the best of the logits as they are, so that nothing but that token need
    /// be known.
    pub fn takes_best(&self) -> bool {
        self.sampling.temperature == 0.0 && self.sampling.repeat_penalty == 1.0
    }

    /// The next token. `logits` is used up. `draw` counts the tokens that this reply has so far.
    ///
    /// # Errors
    /// [`NotFinite`] if a logit is NaN or +∞, or if every one is −∞.
    pub fn next(
        &mut self,
        logits: &mut [f32],
        history: &[u32],
        draw: u64,
    ) -> Result<u32, NotFinite> {
        refuse_not_finite(logits)?;
        self.scratch.clear();
        let mut pool = Pool {
            logits,
            kept: &mut self.scratch,
            history,
        };
        if self.sampling.temperature == 0.0 {
            repeat_penalty(&self.sampling, &mut pool);
            return Ok(best(pool.logits));
        }
        for stage in STAGES {
            (stage.apply)(&self.sampling, &mut pool);
        }
        pool.keep_all_if_unfiltered();
        Ok(walk(pool.kept, uniform(self.sampling.seed, draw)))
    }
}

fn refuse_not_finite(logits: &[f32]) -> Result<(), NotFinite> {
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
fn largest(logits: &[f32]) -> Option<f32> {
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

/// The lowest id with the largest logit.
fn best(logits: &[f32]) -> u32 {
    let largest = largest(logits).unwrap_or(f32::NEG_INFINITY);
    (0u32..)
        .zip(logits)
        .find(|(_, logit)| **logit == largest)
        .map_or(0, |(id, _)| id)
}

/// Best first; ties to the lower id, so that every filter has one answer.
fn better_first(a: &Candidate, b: &Candidate) -> Ordering {
    b.logit.total_cmp(&a.logit).then(a.id.cmp(&b.id))
}

impl Pool<'_> {
    fn keep_all_if_unfiltered(&mut self) {
        if self.kept.is_empty() {
            let all = (0u32..).zip(self.logits.iter());
            self.kept
                .extend(all.map(|(id, &logit)| Candidate { id, logit }));
        }
    }

    fn largest(&self) -> f32 {
        if self.kept.is_empty() {
            return largest(self.logits).unwrap_or(f32::NEG_INFINITY);
        }
        self.kept
            .iter()
            .map(|candidate| candidate.logit)
            .fold(f32::NEG_INFINITY, f32::max)
    }
}

/// Each token of the window once, however often it stands there.
fn repeat_penalty(sampling: &Sampling, pool: &mut Pool<'_>) {
    let penalty = sampling.repeat_penalty;
    if penalty == 1.0 {
        return;
    }
    let window = &pool.history[pool.history.len().saturating_sub(REPEAT_WINDOW)..];
    for (i, id) in window.iter().enumerate() {
        if window[..i].contains(id) {
            continue;
        }
        if let Some(logit) = pool.logits.get_mut(*id as usize) {
            *logit = if *logit > 0.0 {
                *logit / penalty
            } else {
                *logit * penalty
            };
        }
    }
}

/// Keeps a buffer of twice `k` candidates that is cut back when full: one pass over the
/// vocabulary, of which nearly every entry fails the first comparison.
fn top_k(sampling: &Sampling, pool: &mut Pool<'_>) {
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
fn top_p(sampling: &Sampling, pool: &mut Pool<'_>) {
    if sampling.top_p >= 1.0 {
        return;
    }
    pool.keep_all_if_unfiltered();
    let largest = pool.largest();
    let weight = |candidate: &Candidate| f64::from(candidate.logit - largest).exp();
    let total: f64 = pool.kept.iter().map(weight).sum();
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
fn min_p(sampling: &Sampling, pool: &mut Pool<'_>) {
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

fn temperature(sampling: &Sampling, pool: &mut Pool<'_>) {
    pool.keep_all_if_unfiltered();
    // Counted from the largest down: however small the temperature is, the best stays 0 and the
    // others become −∞ at worst. Divided as they stand, several could become the same +∞.
    let largest = pool.largest();
    for candidate in pool.kept.iter_mut() {
        candidate.logit = (candidate.logit - largest) / sampling.temperature;
    }
}

/// Walks the candidates by id until their probabilities reach `point`. The order decides which
/// token a number between 0 and 1 means, so it must not depend on how a filter left them.
fn walk(kept: &mut [Candidate], point: f64) -> u32 {
    if !kept.is_sorted_by_key(|candidate| candidate.id) {
        kept.sort_unstable_by_key(|candidate| candidate.id);
    }
    let largest = kept
        .iter()
        .map(|candidate| candidate.logit)
        .fold(f32::NEG_INFINITY, f32::max);
    let weight = |candidate: &Candidate| f64::from(candidate.logit - largest).exp();
    let total: f64 = kept.iter().map(weight).sum();
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

#[cfg(test)]
mod tests;
