//! What the operations mean, one row at a time, in float64.

use candor_arch::RopeStyle;

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

/// The mean of the values, weighted by softmax(scale · query · key).
pub fn attention(query: &[f64], keys: &[&[f64]], values: &[&[f64]], scale: f32) -> Vec<f64> {
    let score =
        |key: &&[f64]| key.iter().zip(query).map(|(k, q)| k * q).sum::<f64>() * f64::from(scale);
    let scores: Vec<f64> = keys.iter().map(score).collect();
    let largest = scores.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
    let shares: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
    let total: f64 = shares.iter().sum();
    let mut out = vec![0.0; query.len()];
    for (share, value) in shares.iter().zip(values) {
        for (out, value) in out.iter_mut().zip(*value) {
            *out += share / total * value;
        }
    }
    out
}

/// silu(gate) · up, value by value.
pub fn silu_mul(gate: &[f64], up: &[f64]) -> Vec<f64> {
    gate.iter()
        .zip(up)
        .map(|(g, u)| g / (1.0 + (-g).exp()) * u)
        .collect()
}

/// A row in float64.
pub fn wide(row: &[f32]) -> Vec<f64> {
    row.iter().map(|v| f64::from(*v)).collect()
}

/// gelu(gate) · up, value by value, with the tangent.
pub fn gelu_mul(gate: &[f64], up: &[f64]) -> Vec<f64> {
    let slope = (2.0 / std::f64::consts::PI).sqrt();
    let gelu = |x: f64| 0.5 * x * (1.0 + (slope * (x + 0.044715 * x.powi(3))).tanh());
    gate.iter().zip(up).map(|(g, u)| gelu(*g) * u).collect()
}

/// 1 / (1 + exp(-x)).
pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The shares of the best experts: softmax over all, ties to the lower one, over their sum.
pub fn shares(logits: &[f64], n_used: usize) -> Vec<(usize, f64)> {
    let weights: Vec<f64> = logits.iter().map(|v| v.exp()).collect();
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]).then(a.cmp(b)));
    let best = &order[..n_used];
    let total: f64 = best.iter().map(|i| weights[*i]).sum();
    best.iter().map(|i| (*i, weights[*i] / total)).collect()
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
