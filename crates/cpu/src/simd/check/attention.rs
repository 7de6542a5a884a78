//! Attention.

use half::f16;

use super::super::attention::{Attention, KV_PAGE, KvHead, page_numbers, part_numbers};
use super::super::kernels::Kernels;
use super::super::tiles::TileQueue;
use super::numbers;

/// Relative to the greatest value: sums of some hundred positive weights, and the exponential.
const TOLERANCE: f64 = 2e-6;

/// Queries, keys and values of one key head.
pub(in crate::simd) struct AttentionCase {
    head_dim: usize,
    heads: usize,
    rows: usize,
    first_position: usize,
    /// How many positions a query sees.
    pub(in crate::simd) window: usize,
    /// What the scores come near.
    softcap: Option<f32>,
    /// A score of each head that has no value.
    sinks: Option<Vec<f32>>,
    queries: Vec<f32>,
    /// Position after position, already rounded to half precision.
    pub(in crate::simd) keys: Vec<f32>,
    /// The same.
    pub(in crate::simd) values: Vec<f32>,
}

impl AttentionCase {
    /// `rows` queries from `first_position` on, for `heads` heads that share the keys.
    pub(in crate::simd) fn new(
        head_dim: usize,
        heads: usize,
        rows: usize,
        first_position: usize,
    ) -> Self {
        let half = |seed| {
            numbers((first_position + rows) * head_dim, seed)
                .iter()
                .map(|v| f16::from_f32(*v).to_f32())
                .collect()
        };
        Self {
            head_dim,
            heads,
            rows,
            first_position,
            window: usize::MAX,
            softcap: None,
            sinks: None,
            queries: numbers(rows * heads * head_dim, 21)
                .iter()
                .map(|v| v * 8.0)
                .collect(),
            keys: half(22),
            values: half(23),
        }
    }

    /// The same with bounded scores and a sink for each head.
    pub(in crate::simd) fn bounded(mut self) -> Self {
        self.softcap = Some(2.0);
        self.sinks = Some(numbers(self.heads, 24));
        self
    }

    /// Whether some kernels give the truth.
    pub(in crate::simd) fn is_right(&self, kernels: &Kernels) -> bool {
        let got = self.compute(kernels, self.rows);
        if self.compute_parts(kernels, 1) != got {
            return false;
        }
        let truth = self.truth();
        got.iter()
            .zip(truth)
            .all(|(g, t)| (f64::from(*g) - t).abs() <= TOLERANCE)
    }

    /// The outputs by some kernels, so many rows in one call.
    pub(in crate::simd) fn compute(&self, kernels: &Kernels, rows_per_tile: usize) -> Vec<f32> {
        let (keys, values) = self.pages(kernels);
        let pages = self.heads_of(&keys, &values);
        let width = self.heads * self.head_dim;
        let mut out = vec![f32::NAN; self.queries.len()];
        let queue = TileQueue::new(&mut out, width, rows_per_tile, width);
        while let Some(mut tile) = queue.take() {
            let attention = Attention {
                first_position: self.first_position + tile.rows().start,
                ..self.attention(&pages)
            };
            kernels.attend(&attention, &mut tile);
        }
        out
    }

    /// The same by parts of so many pages at once, which are then joined.
    pub(in crate::simd) fn compute_parts(&self, kernels: &Kernels, at_once: usize) -> Vec<f32> {
        let (keys, values) = self.pages(kernels);
        let pages = self.heads_of(&keys, &values);
        let (width, numbers) = (self.heads * self.head_dim, part_numbers(self.head_dim));
        let stride = self.rows * self.heads * numbers;
        let mut parts = vec![f32::NAN; pages.len() * stride];
        let spans = pages
            .chunks(at_once)
            .zip(parts.chunks_mut(at_once * stride));
        for (span, (pages, parts)) in spans.enumerate() {
            let attention = Attention {
                first_page: span * at_once,
                ..self.attention(pages)
            };
            kernels.attend_parts(&attention, (0..self.rows, 0..width), width, parts);
        }
        let mut out = vec![f32::NAN; self.queries.len()];
        for (query, out) in out.chunks_exact_mut(self.head_dim).enumerate() {
            let position = self.first_position + query / self.heads;
            let first = (position + 1).saturating_sub(self.window) / KV_PAGE;
            let n_parts = position / KV_PAGE + 1 - first;
            let from = &parts[first * stride + query * numbers..];
            let sink = self.sinks.as_ref().map(|sinks| sinks[query % self.heads]);
            kernels.join((from, stride, n_parts), sink, out);
        }
        out
    }

    /// All rows at once.
    fn attention<'a>(&'a self, pages: &'a [KvHead<'a>]) -> Attention<'a> {
        Attention {
            queries: &self.queries,
            head_dim: self.head_dim,
            pages,
            first_page: 0,
            first_position: self.first_position,
            window: self.window,
            scale: self.scale(),
            softcap: self.softcap,
            sinks: self.sinks.as_deref(),
        }
    }

    /// The keys and values as the kernels write them.
    fn pages(&self, kernels: &Kernels) -> (Vec<u16>, Vec<u16>) {
        let positions = self.first_position + self.rows;
        let numbers = page_numbers(self.head_dim);
        // What no position has written must not be read: NaN would show.
        let mut keys = vec![u16::MAX; positions.div_ceil(KV_PAGE) * numbers];
        let mut values = keys.clone();
        for position in 0..positions {
            let row = position * self.head_dim..(position + 1) * self.head_dim;
            let page = position / KV_PAGE * numbers..(position / KV_PAGE + 1) * numbers;
            kernels.append(
                position,
                &self.keys[row.clone()],
                &self.values[row],
                &mut keys[page.clone()],
                &mut values[page],
            );
        }
        (keys, values)
    }

    fn heads_of<'a>(&self, keys: &'a [u16], values: &'a [u16]) -> Vec<KvHead<'a>> {
        let numbers = page_numbers(self.head_dim);
        keys.chunks_exact(numbers)
            .zip(values.chunks_exact(numbers))
            .map(|(keys, values)| KvHead { keys, values })
            .collect()
    }

    fn scale(&self) -> f32 {
        1.0 / (self.head_dim as f32).sqrt()
    }

    fn truth(&self) -> Vec<f64> {
        let mut out = Vec::new();
        for (i, query) in self.queries.chunks_exact(self.head_dim).enumerate() {
            let seen = self.first_position + i / self.heads + 1;
            let hidden = seen.saturating_sub(self.window);
            let scores: Vec<f64> = self
                .keys
                .chunks_exact(self.head_dim)
                .take(seen)
                .skip(hidden)
                .map(|key| {
                    let terms = query
                        .iter()
                        .zip(key)
                        .map(|(q, k)| f64::from(*q) * f64::from(*k));
                    let score = terms.sum::<f64>() * f64::from(self.scale());
                    match self.softcap.map(f64::from) {
                        Some(cap) => cap * (score / cap).tanh(),
                        None => score,
                    }
                })
                .collect();
            let sinks = self.sinks.as_ref();
            let sink = sinks.map(|sinks| f64::from(sinks[i % self.heads]));
            let all = scores.iter().copied().chain(sink);
            let greatest = all.fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|s| (s - greatest).exp()).collect();
            let sunk = sink.map_or(0.0, |sink| (sink - greatest).exp());
            let total = sunk + weights.iter().sum::<f64>();
            for d in 0..self.head_dim {
                let first = hidden * self.head_dim + d;
                let values = self.values.iter().skip(first).step_by(self.head_dim);
                let sum: f64 = weights
                    .iter()
                    .zip(values)
                    .map(|(w, v)| w * f64::from(*v))
                    .sum();
                out.push(sum / total);
            }
        }
        out
    }
}
