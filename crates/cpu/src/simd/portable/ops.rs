//! Operations on rows of floats.

use bytemuck::Zeroable;
use candor_quant::{ActivationBlock, quantize_activations};
use half::f16;

use super::super::format::BLOCK;
use super::super::panel::{PanelRow, SUM_ELEMS};

pub(super) fn quantize(row: &[f32], out: PanelRow<'_>) {
    let mut block = [ActivationBlock::zeroed()];
    for (b, values) in row.chunks_exact(BLOCK).enumerate() {
        quantize_activations(values, &mut block);
        let [block] = &block;
        out.codes[b * BLOCK..][..BLOCK].copy_from_slice(&block.codes);
        out.scales[b] = block.scale;
        out.weighted_sums[b] = block.scale * block.sum as f32;
        for (half, codes) in block.codes.chunks_exact(SUM_ELEMS).enumerate() {
            out.neg_sums[2 * b + half] = -codes.iter().map(|c| i32::from(*c)).sum::<i32>();
        }
    }
}

/// Lanes of a sum of squares, so that the compiler can use what registers there are.
const LANES: usize = 16;

pub(super) fn rms_norm(row: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let mut lanes = [0.0f32; LANES];
    for values in row.chunks(LANES) {
        for (lane, v) in lanes.iter_mut().zip(values) {
            *lane += v * v;
        }
    }
    let mean = lanes.iter().sum::<f32>() / row.len() as f32;
    let factor = 1.0 / (mean + eps).sqrt();
    for ((out, v), w) in out.iter_mut().zip(row).zip(weight) {
        *out = v * factor * w;
    }
}

pub(super) fn silu_mul(gate: &mut [f32], up: &[f32]) {
    for (g, u) in gate.iter_mut().zip(up) {
        *g = *g / (1.0 + (-*g).exp()) * u;
    }
}

pub(super) fn add(sum: &mut [f32], addend: &[f32]) {
    for (s, a) in sum.iter_mut().zip(addend) {
        *s += a;
    }
}

pub(in crate::simd) fn to_half(values: &[f32], out: &mut [u16]) {
    for (o, v) in out.iter_mut().zip(values) {
        *o = f16::from_f32(*v).to_bits();
    }
}
