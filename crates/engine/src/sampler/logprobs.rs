//! How likely a token was by the model's own word: log probabilities over the whole vocabulary,
//! from the logits as the model gave them, before biases, penalties, grammar and temperature.

use std::cmp::Ordering;

/// Most likely tokens that are told for each one written: what other servers allow, and what one
/// can read.
pub const TOP_LOGPROBS_MAX: usize = 20;

/// How likely a written token and the best others were.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Logprobs {
    /// Natural logarithm of the written token's probability.
    pub chosen: f32,
    /// The most likely tokens and the logarithms of their probabilities, best first.
    pub top: Vec<(u32, f32)>,
}

/// The logits of one row, kept while sampling uses the row up.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogprobScratch {
    logits: Vec<f32>,
}

impl LogprobScratch {
    /// Keeps what a model gave.
    pub(crate) fn keep(&mut self, logits: &[f32]) {
        self.logits.clear();
        self.logits.extend_from_slice(logits);
    }

    /// What is to be said of the token that was chosen from what was kept. The `top` best are told
    /// too, ties to the lower id.
    pub(crate) fn of(&self, chosen: u32, top: usize) -> Logprobs {
        let lse = log_sum_exp(&self.logits);
        let chance = |logit: f32| (f64::from(logit) - lse) as f32;
        let chosen = self.logits.get(chosen as usize).copied();
        let best = best_of(&self.logits, top.min(TOP_LOGPROBS_MAX));
        Logprobs {
            chosen: chosen.map_or(f32::NEG_INFINITY, chance),
            top: best
                .into_iter()
                .map(|(id, logit)| (id, chance(logit)))
                .collect(),
        }
    }
}

fn log_sum_exp(logits: &[f32]) -> f64 {
    let largest = super::largest(logits).unwrap_or(f32::NEG_INFINITY);
    let sum: f64 = logits
        .iter()
        .map(|logit| f64::from(logit - largest).exp())
        .sum();
    f64::from(largest) + sum.ln()
}

/// The `k` largest, best first. `k` is small, so a sorted list is held while the row is read once.
fn best_of(logits: &[f32], k: usize) -> Vec<(u32, f32)> {
    if k == 0 {
        return Vec::new();
    }
    let mut best: Vec<(u32, f32)> = Vec::with_capacity(k + 1);
    for (id, &logit) in (0u32..).zip(logits) {
        let worst = best.last().map_or(f32::NEG_INFINITY, |(_, worst)| *worst);
        // A later equal has the higher id, so it comes after all that are kept.
        if best.len() == k && logit.total_cmp(&worst) != Ordering::Greater {
            continue;
        }
        let at = best.partition_point(|(_, other)| other.total_cmp(&logit) != Ordering::Less);
        best.insert(at, (id, logit));
        best.truncate(k);
    }
    best
}
