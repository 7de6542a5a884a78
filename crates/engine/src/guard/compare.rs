//! Two rows of logits, and how far they are apart. Pure.
//!
//! The reference's side is kept: some rows in full, the others as their best entries and a sample
//! that goes through the whole vocabulary from row to row. So a probe of a large vocabulary takes
//! some 20 MB and not five times as much, every position is judged, and no part of the vocabulary
//! is left out.

use half::f16;

/// The best entries that a sampled row keeps: nearly all of the probability.
const BEST: usize = 32;

/// Entries of the sample of a row.
const SAMPLE: usize = 4_096;

/// Rows that are kept in full: the last positions of a prompt, or as many from all over a probe.
const FULL_ROWS: usize = 64;

/// Logits of the reference at one position, relative to the largest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeptRow {
    pub(crate) entries: Entries,
    /// In the order of the entries.
    pub(crate) values: Vec<f16>,
    /// Log of the sum of exponentials over the vocabulary, relative to the largest logit.
    pub(crate) lse: f32,
    pub(crate) argmax: u32,
    pub(crate) vocabulary: u32,
}

/// Which logits a row keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entries {
    All,
    /// The best ones, and every `step`th from `start` on that is not among them.
    Some {
        /// In ascending order.
        best: Vec<u32>,
        start: u32,
        step: u32,
    },
}

/// What a comparison of two rows gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measure {
    /// Between the centred logits; NaN never.
    pub(crate) cosine: f64,
    /// Of the probabilities, reference first, in nats.
    pub(crate) kl: f64,
    pub(crate) reference_token: u32,
    pub(crate) candidate_token: u32,
    /// By how much the reference likes its own token better than the candidate's, in nats.
    pub(crate) margin: f64,
}

/// Why two rows cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// The candidate's row has another length.
    Length { found: usize, expected: usize },
    /// The candidate's row holds something that is no number.
    NotFinite { token: usize },
}

impl KeptRow {
    /// Row `row` of `rows`; none if a logit is no number or every one is −∞.
    pub(crate) fn new(logits: &[f32], row: usize, rows: usize) -> Option<Self> {
        let argmax = best_of(logits)?;
        let largest = f64::from(logits[argmax as usize]);
        let step = logits.len() / SAMPLE;
        let entries = if step < 2 || is_full(row, rows) {
            Entries::All
        } else {
            Entries::Some {
                best: best(logits, BEST),
                start: (row % step) as u32,
                step: step as u32,
            }
        };
        let vocabulary = logits.len() as u32;
        let value = |id: u32| f16::from_f64(f64::from(logits[id as usize]) - largest);
        let values: Vec<f16> = entries.ids(vocabulary).map(value).collect();
        let lse = match entries {
            // Of what is kept, so that its probabilities are one together.
            Entries::All => log_sum_exp(values.iter().map(|value| value.to_f64())),
            Entries::Some { .. } => log_sum_exp(relative(logits, largest)),
        } as f32;
        Some(Self {
            entries,
            values,
            lse,
            argmax,
            vocabulary,
        })
    }

    /// Holds a row of the candidate against this one.
    pub(crate) fn compare(&self, logits: &[f32]) -> Result<Measure, Unfit> {
        let (found, expected) = (logits.len(), self.vocabulary as usize);
        if found != expected {
            return Err(Unfit::Length { found, expected });
        }
        let Some(candidate_token) = best_of(logits) else {
            let unusable = |logit: &f32| logit.is_nan() || *logit == f32::INFINITY;
            let token = logits.iter().position(unusable).unwrap_or(0);
            return Err(Unfit::NotFinite { token });
        };
        let largest = f64::from(logits[candidate_token as usize]);
        let lse = log_sum_exp(relative(logits, largest));
        let ids = || self.entries.ids(self.vocabulary);
        let pairs = || {
            let values = self.values.iter().map(|value| value.to_f64());
            values.zip(ids().map(|id| f64::from(logits[id as usize]) - largest))
        };
        let value_of = |wanted: u32| {
            let at = ids().position(|id| id == wanted);
            at.map(|at| self.values[at].to_f64())
        };
        let margin = match value_of(candidate_token) {
            Some(value) => -value,
            // Outside the best ones: at least as far as the last of these.
            None => -self.last_of_best(),
        };
        Ok(Measure {
            cosine: cosine(pairs()),
            kl: divergence(pairs(), f64::from(self.lse), lse),
            reference_token: self.argmax,
            candidate_token,
            margin,
        })
    }

    fn last_of_best(&self) -> f64 {
        let Entries::Some { best, .. } = &self.entries else {
            return 0.0;
        };
        let kept = best.len().min(self.values.len());
        let values = self.values[..kept].iter().map(|value| value.to_f64());
        values.fold(0.0, f64::min)
    }
}

impl Entries {
    /// The ids in the order in which values are kept: the best, then the sample.
    pub(crate) fn ids(&self, vocabulary: u32) -> impl Iterator<Item = u32> + Clone + '_ {
        let (best, start, step) = match self {
            Self::All => (&[][..], 0, 1),
            Self::Some { best, start, step } => (&best[..], *start, *step),
        };
        let sample = (start..vocabulary).step_by(step.max(1) as usize);
        let sample = sample.filter(|id| best.binary_search(id).is_err());
        best.iter().copied().chain(sample)
    }
}

/// Spread evenly, the first and the last among them.
fn is_full(row: usize, rows: usize) -> bool {
    let part = |row: usize| row * FULL_ROWS / rows;
    rows <= FULL_ROWS + 1 || row + 1 == rows || row == 0 || part(row) != part(row - 1)
}

/// The largest, ties to the lower id; none if one is NaN or +∞, or if every one is −∞.
pub(crate) fn best_of(logits: &[f32]) -> Option<u32> {
    if !logits.iter().all(|logit| *logit < f32::INFINITY) {
        return None;
    }
    let mut best = 0;
    for (id, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = id;
        }
    }
    let finite = logits.get(best).is_some_and(|logit| logit.is_finite());
    finite.then_some(best as u32)
}

/// The ids of the largest, in ascending order of the ids.
fn best(logits: &[f32], k: usize) -> Vec<u32> {
    let mut ids: Vec<u32> = (0..logits.len() as u32).collect();
    let better = |a: &u32, b: &u32| logits[*b as usize].total_cmp(&logits[*a as usize]);
    if k < ids.len() {
        ids.select_nth_unstable_by(k, better);
        ids.truncate(k);
    }
    ids.sort_unstable();
    ids
}

fn relative(logits: &[f32], largest: f64) -> impl Iterator<Item = f64> + '_ {
    logits.iter().map(move |logit| f64::from(*logit) - largest)
}

/// Of values of which the largest is about 0.
fn log_sum_exp(values: impl Iterator<Item = f64>) -> f64 {
    values.map(f64::exp).sum::<f64>().ln()
}

/// The cosine between the deviations from the means. Real logits have large common offsets, which
/// would hide any difference. Two rows that are all the same value agree.
pub(crate) fn cosine(pairs: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
    // A logit may be −∞, which nothing can be centred by: as low as any number can be is enough.
    const LOWEST: f64 = -1e4;
    let pairs = pairs.map(|(a, b)| (a.max(LOWEST), b.max(LOWEST)));
    let (mut n, mut sum_a, mut sum_b) = (0.0, 0.0, 0.0);
    for (a, b) in pairs.clone() {
        n += 1.0;
        sum_a += a;
        sum_b += b;
    }
    let (mean_a, mean_b) = (sum_a / n, sum_b / n);
    let (mut aa, mut bb, mut ab) = (0.0, 0.0, 0.0);
    for (a, b) in pairs {
        let (a, b) = (a - mean_a, b - mean_b);
        aa += a * a;
        bb += b * b;
        ab += a * b;
    }
    if aa == 0.0 && bb == 0.0 {
        return 1.0;
    }
    if aa == 0.0 || bb == 0.0 {
        return 0.0;
    }
    ab / (aa.sqrt() * bb.sqrt())
}

/// Σ p · ln(p / q) over the kept entries, and over all others as one.
fn divergence(pairs: impl Iterator<Item = (f64, f64)>, lse_a: f64, lse_b: f64) -> f64 {
    let (mut sum, mut rest_p, mut rest_q) = (0.0, 1.0, 1.0);
    for (a, b) in pairs {
        let (log_p, log_q) = (a - lse_a, b - lse_b);
        let p = log_p.exp();
        rest_p -= p;
        rest_q -= log_q.exp();
        if p > 0.0 {
            sum += p * (log_p - log_q);
        }
    }
    // What is not kept counts as one; less than the rounding of what is kept leaves is nothing.
    const REST: f64 = 1e-3;
    if rest_p > REST {
        sum += rest_p * (rest_p / rest_q.max(REST / 10.0)).ln();
    }
    sum.max(0.0)
}
