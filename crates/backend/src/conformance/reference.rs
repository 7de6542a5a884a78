//! What the operations mean, one row at a time, in float64.

use candor_arch::{Activation, RopeStyle, Routing, Shares};

/// x / sqrt(mean(x²) + eps) · weight.
pub fn rms_norm(x: &[f64], weight: &[f32], eps: f32) -> Vec<f64> {
    let mean = x.iter().map(|v| v * v).sum::<f64>() / x.len() as f64;
    let scale = 1.0 / (mean + f64::from(eps)).sqrt();
    x.iter()
        .zip(weight)
        .map(|(x, w)| x * scale * f64::from(*w))
        .collect()
}

/// A matrix of `x.len()` columns times x.
pub fn linear(weight: &[f32], x: &[f64]) -> Vec<f64> {
    let dot = |row: &[f32]| row.iter().zip(x).map(|(w, x)| f64::from(*w) * x).sum();
    weight.chunks_exact(x.len()).map(dot).collect()
}

/// Turns the first values of a head; `factors` divide the frequencies and say how many there are.
pub fn rope(
    style: RopeStyle,
    base: f32,
    factors: &[f32],
    position: usize,
    head: &[f64],
) -> Vec<f64> {
    let mut out = head.to_vec();
    let pairs = factors.len();
    for (pair, factor) in factors.iter().enumerate() {
        let power = -(pair as f64) / pairs as f64;
        let angle = position as f64 * f64::from(base).powf(power) / f64::from(*factor);
        let (a, b) = match style {
            RopeStyle::Adjacent => (2 * pair, 2 * pair + 1),
            RopeStyle::Halves => (pair, pair + pairs),
        };
        out[a] = head[a] * angle.cos() - head[b] * angle.sin();
        out[b] = head[a] * angle.sin() + head[b] * angle.cos();
    }
    out
}

/// How scores are made of products.
#[derive(Clone, Copy, Debug)]
pub struct Scores {
    /// Their factor.
    pub scale: f32,
    /// They become c · tanh(score / c).
    pub softcap: Option<f32>,
    /// One more, without a value.
    pub sink: Option<f32>,
}

/// The mean of the values, weighted by the softmax of the scores of query and keys.
pub fn attention(query: &[f64], keys: &[&[f64]], values: &[&[f64]], how: Scores) -> Vec<f64> {
    let score = |key: &&[f64]| {
        let product: f64 = key.iter().zip(query).map(|(k, q)| k * q).sum();
        softcap(product * f64::from(how.scale), how.softcap)
    };
    let scores: Vec<f64> = keys.iter().map(score).collect();
    let sink = how.sink.map(f64::from);
    let largest = scores
        .iter()
        .chain(&sink)
        .copied()
        .fold(f64::NEG_INFINITY, f64::max);
    let share = |score: &f64| (score - largest).exp();
    let total: f64 = scores.iter().chain(&sink).map(share).sum();
    let mut out = vec![0.0; query.len()];
    for (score, value) in scores.iter().zip(values) {
        for (out, value) in out.iter_mut().zip(*value) {
            *out += share(score) / total * value;
        }
    }
    out
}

/// c · tanh(x / c), where there is a bound.
pub fn softcap(x: f64, cap: Option<f32>) -> f64 {
    cap.map(f64::from).map_or(x, |cap| cap * (x / cap).tanh())
}

/// What gate and value become together.
pub fn gated(activation: Activation, gate: f64, up: f64) -> f64 {
    let slope = (2.0 / std::f64::consts::PI).sqrt();
    match activation {
        Activation::Silu => gate * sigmoid(gate) * up,
        Activation::Gelu => {
            0.5 * gate * (1.0 + (slope * (gate + 0.044715 * gate.powi(3))).tanh()) * up
        }
        Activation::Sigmoid => sigmoid(gate) * up,
        Activation::ClampedSwiglu => {
            let gate = gate.min(7.0);
            gate * sigmoid(1.702 * gate) * (up.clamp(-7.0, 7.0) + 1.0)
        }
    }
}

/// Likewise, value by value.
pub fn all_gated(activation: Activation, gate: &[f64], up: &[f64]) -> Vec<f64> {
    let pairs = gate.iter().zip(up);
    pairs
        .map(|(gate, up)| gated(activation, *gate, *up))
        .collect()
}

/// A row in float64.
pub fn wide(row: &[f32]) -> Vec<f64> {
    row.iter().map(|v| f64::from(*v)).collect()
}

/// 1 / (1 + exp(-x)).
pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The best experts and their shares; ties to the lower one.
pub fn shares(logits: &[f64], routing: Routing) -> Vec<(usize, f64)> {
    let weights: Vec<f64> = logits.iter().map(|v| v.exp()).collect();
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]).then(a.cmp(b)));
    let best = &order[..routing.n_used];
    let total: f64 = match routing.shares {
        Shares::OfAll => weights.iter().sum(),
        Shares::OfChosen => best.iter().map(|i| weights[*i]).sum(),
    };
    let scale = f64::from(routing.scale);
    best.iter()
        .map(|i| (*i, weights[*i] / total * scale))
        .collect()
}

/// One step of the gated delta rule. `state` is a row of keys for each value.
pub fn delta_step(
    state: &mut [Vec<f64>],
    [q, k, v]: [&[f64]; 3],
    (decay, beta): (f64, f64),
) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let step = |(row, v): (&mut Vec<f64>, &f64)| {
        row.iter_mut().for_each(|s| *s *= decay);
        let change = (v - dot(row, k)) * beta;
        for (s, k) in row.iter_mut().zip(k) {
            *s += change * k;
        }
        dot(row, q) / (q.len() as f64).sqrt()
    };
    state.iter_mut().zip(v).map(step).collect()
}

/// A vector over its length.
pub fn unit(x: &[f64], eps: f32) -> Vec<f64> {
    let squares: f64 = x.iter().map(|v| v * v).sum();
    let factor = 1.0 / (squares + f64::from(eps)).sqrt();
    x.iter().map(|v| v * factor).collect()
}
