//! Operations on rows of floats.

use super::super::exp::{EXP_MAX, EXP_MIN, EXP_TERMS, LN2_HIGH, LN2_LOW};
use super::super::format::BLOCK;
use super::super::panel::{PanelRow, SUM_ELEMS};
use super::super::portable;
use super::lanes::Lanes;

/// Rounds a row to 8 bits; see [`candor_quant::quantize_activations`].
///
/// # Safety
/// See [`Lanes`]; `out` has a place for each element of `row`.
#[inline(always)]
pub(in crate::simd) unsafe fn quantize<L: Lanes>(row: &[f32], out: PanelRow<'_>) {
    for (b, values) in row.as_chunks::<BLOCK>().0.iter().enumerate() {
        let values = values.as_ptr();
        // SAFETY: whole registers of a block of values; the caller states the rest.
        unsafe {
            let mut most = L::splat(0.0);
            let mut finite = true;
            for at in (0..BLOCK).step_by(L::COUNT) {
                let magnitudes = L::abs(L::load(values.add(at)));
                most = L::max(most, magnitudes);
                finite &= L::all_finite(magnitudes);
            }
            let largest = L::greatest(most);
            let inverse = 127.0 / largest;
            let (scale, inverse) = match (finite, inverse.is_finite()) {
                (true, true) => (largest / 127.0, inverse),
                (true, false) => (0.0, 0.0),
                (false, _) => (f32::NAN, 0.0),
            };
            let mut sums = [0; BLOCK / SUM_ELEMS];
            for at in (0..BLOCK).step_by(L::COUNT) {
                // A block that is not finite gets zero codes, which infinity times zero is not.
                let codes = if finite {
                    L::to_ints(L::mul(L::load(values.add(at)), L::splat(inverse)))
                } else {
                    L::splat_ints(0)
                };
                L::store_bytes(out.codes.as_mut_ptr().add(b * BLOCK + at), codes);
                sums[at / SUM_ELEMS] += L::total_ints(codes);
            }
            out.neg_sums[2 * b] = -sums[0];
            out.neg_sums[2 * b + 1] = -sums[1];
            out.scales[b] = scale;
            out.weighted_sums[b] = scale * (sums[0] + sums[1]) as f32;
        }
    }
}

/// # Safety
/// See [`Lanes`]; all slices of one length.
#[inline(always)]
pub(in crate::simd) unsafe fn rms_norm<L: Lanes>(
    row: &[f32],
    weight: &[f32],
    eps: f32,
    out: &mut [f32],
) {
    // SAFETY: each chunk is as long as it is said to be.
    unsafe {
        let mut sums = [L::splat(0.0); 4];
        for (i, values) in row.chunks(L::COUNT).enumerate() {
            let values = L::load_first(values.as_ptr(), values.len());
            sums[i % 4] = L::mul_add(values, values, sums[i % 4]);
        }
        let sum = L::add(L::add(sums[0], sums[1]), L::add(sums[2], sums[3]));
        let mean = L::total(sum) / row.len() as f32;
        let factor = L::splat(1.0 / (mean + eps).sqrt());
        let chunks = row.chunks(L::COUNT).zip(weight.chunks(L::COUNT));
        for ((values, weight), out) in chunks.zip(out.chunks_mut(L::COUNT)) {
            let n = values.len();
            let scaled = L::mul(L::load_first(values.as_ptr(), n), factor);
            let weighted = L::mul(scaled, L::load_first(weight.as_ptr(), n));
            L::store_first(out.as_mut_ptr(), weighted, n);
        }
    }
}

/// e to the power of each lane; see [`super::super::exp`]. What is no number stays none.
///
/// # Safety
/// See [`Lanes`].
#[inline(always)]
pub(super) unsafe fn exp<L: Lanes>(x: L::Floats) -> L::Floats {
    // SAFETY: the caller has the instructions.
    unsafe {
        // The operand order of max and min lets what is no number through.
        let x = L::max(L::splat(EXP_MIN), L::min(L::splat(EXP_MAX), x));
        let n = L::round(L::mul(x, L::splat(std::f32::consts::LOG2_E)));
        let r = L::neg_mul_add(n, L::splat(LN2_HIGH), x);
        let r = L::neg_mul_add(n, L::splat(LN2_LOW), r);
        let mut p = L::splat(EXP_TERMS[0]);
        for term in &EXP_TERMS[1..] {
            p = L::mul_add(p, r, L::splat(*term));
        }
        L::zero_up_to(x, EXP_MIN, L::scale(p, n))
    }
}

/// `gate` becomes silu(gate) · up.
///
/// # Safety
/// See [`Lanes`]; both slices of one length.
#[inline(always)]
pub(in crate::simd) unsafe fn silu_mul<L: Lanes>(gate: &mut [f32], up: &[f32]) {
    for (gate, up) in gate.chunks_mut(L::COUNT).zip(up.chunks(L::COUNT)) {
        // SAFETY: each chunk is as long as it is said to be.
        unsafe {
            let g = L::load_first(gate.as_ptr(), gate.len());
            let u = L::load_first(up.as_ptr(), up.len());
            let below = L::add(L::splat(1.0), exp::<L>(L::sub(L::splat(0.0), g)));
            let result = L::mul(L::div(g, below), u);
            L::store_first(gate.as_mut_ptr(), result, gate.len());
        }
    }
}

/// `sum` becomes sum + addend.
#[inline(always)]
pub(in crate::simd) fn add(sum: &mut [f32], addend: &[f32]) {
    // The compiler does this well with the instructions at hand.
    for (s, a) in sum.iter_mut().zip(addend) {
        *s += a;
    }
}

/// The nearest half floats.
///
/// # Safety
/// See [`Lanes`]; both slices of one length.
#[inline(always)]
pub(in crate::simd) unsafe fn to_half<L: Lanes>(values: &[f32], out: &mut [u16]) {
    let (chunks, outs) = (
        values.chunks_exact(L::COUNT),
        out.chunks_exact_mut(L::COUNT),
    );
    let tail = chunks.remainder();
    for (values, out) in chunks.zip(outs) {
        // SAFETY: both chunks are whole.
        unsafe { L::store_halves(out.as_mut_ptr(), L::load(values.as_ptr())) }
    }
    let done = values.len() - tail.len();
    portable::to_half(tail, &mut out[done..]);
}
