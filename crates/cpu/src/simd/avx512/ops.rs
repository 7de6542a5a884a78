//! Operations on rows of floats.

use std::arch::x86_64::*;

use super::super::exp::{EXP_MAX, EXP_MIN, EXP_TERMS, LN2_HIGH, LN2_LOW};
use super::super::format::BLOCK;
use super::super::panel::{PanelRow, SUM_ELEMS};
use super::super::portable;

/// Lanes of a register.
const LANES: usize = 16;

/// The first lanes, as many as a tail has.
fn mask(lanes: usize) -> __mmask16 {
    (u32::MAX >> (32 - lanes.clamp(1, LANES))) as __mmask16
}

/// # Safety
/// AVX-512 F, BW, VL and DQ; `out` has a place for each element of `row`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,fma,f16c")]
pub(super) unsafe fn quantize(row: &[f32], out: PanelRow<'_>) {
    let sign = _mm512_set1_ps(-0.0);
    let infinity = _mm512_set1_ps(f32::INFINITY);
    for (b, values) in row.as_chunks::<BLOCK>().0.iter().enumerate() {
        // SAFETY: a block has two registers of values; the caller states the rest.
        unsafe {
            let halves = [
                _mm512_loadu_ps(values.as_ptr()),
                _mm512_loadu_ps(values.as_ptr().add(LANES)),
            ];
            let magnitudes = [
                _mm512_andnot_ps(sign, halves[0]),
                _mm512_andnot_ps(sign, halves[1]),
            ];
            // Not below infinity: infinite, or no number.
            let bad = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(magnitudes[0], infinity)
                | _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(magnitudes[1], infinity);
            let largest = _mm512_reduce_max_ps(_mm512_max_ps(magnitudes[0], magnitudes[1]));
            let inverse = 127.0 / largest;
            let (scale, inverse) = match (bad, inverse.is_finite()) {
                (0, true) => (largest / 127.0, inverse),
                (0, false) => (0.0, 0.0),
                _ => (f32::NAN, 0.0),
            };
            let mut sum = 0;
            for (half, values) in halves.into_iter().enumerate() {
                // A zero mask gives zero codes where infinity times zero would not.
                let keep = if bad == 0 { __mmask16::MAX } else { 0 };
                let scaled = _mm512_maskz_mul_ps(keep, values, _mm512_set1_ps(inverse));
                // Rounds to nearest even, as the default mode of the machine is.
                let codes = _mm512_cvtps_epi32(scaled);
                let half_sum = _mm512_reduce_add_epi32(codes);
                _mm_storeu_si128(
                    out.codes
                        .as_mut_ptr()
                        .add(b * BLOCK + half * SUM_ELEMS)
                        .cast(),
                    _mm512_cvtepi32_epi8(codes),
                );
                out.neg_sums[2 * b + half] = -half_sum;
                sum += half_sum;
            }
            out.scales[b] = scale;
            out.weighted_sums[b] = scale * sum as f32;
        }
    }
}

/// # Safety
/// AVX-512 F, BW, VL and DQ; all slices of one length.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,fma,f16c")]
pub(super) unsafe fn rms_norm(row: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let mut sums = [_mm512_setzero_ps(); 4];
    for (i, values) in row.chunks(LANES).enumerate() {
        // SAFETY: the mask keeps within the chunk.
        let values = unsafe { _mm512_maskz_loadu_ps(mask(values.len()), values.as_ptr()) };
        sums[i % 4] = _mm512_fmadd_ps(values, values, sums[i % 4]);
    }
    let sum = _mm512_add_ps(
        _mm512_add_ps(sums[0], sums[1]),
        _mm512_add_ps(sums[2], sums[3]),
    );
    let mean = _mm512_reduce_add_ps(sum) / row.len() as f32;
    let factor = _mm512_set1_ps(1.0 / (mean + eps).sqrt());
    let chunks = row.chunks(LANES).zip(weight.chunks(LANES));
    for ((values, weight), out) in chunks.zip(out.chunks_mut(LANES)) {
        let mask = mask(values.len());
        // SAFETY: the mask keeps within the chunks, which have one length.
        unsafe {
            let scaled = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, values.as_ptr()), factor);
            let weighted = _mm512_mul_ps(scaled, _mm512_maskz_loadu_ps(mask, weight.as_ptr()));
            _mm512_mask_storeu_ps(out.as_mut_ptr(), mask, weighted);
        }
    }
}

/// e to the power of each lane; see [`super::super::exp`]. What is no number stays none.
#[inline(always)]
pub(super) unsafe fn exp(x: __m512) -> __m512 {
    // SAFETY: needs AVX-512 F only, which the caller has.
    unsafe {
        // The operand order of max and min lets what is no number through.
        let x = _mm512_min_ps(_mm512_set1_ps(EXP_MAX), x);
        let x = _mm512_max_ps(_mm512_set1_ps(EXP_MIN), x);
        let n =
            _mm512_roundscale_ps::<0>(_mm512_mul_ps(x, _mm512_set1_ps(std::f32::consts::LOG2_E)));
        let r = _mm512_fnmadd_ps(n, _mm512_set1_ps(LN2_HIGH), x);
        let r = _mm512_fnmadd_ps(n, _mm512_set1_ps(LN2_LOW), r);
        let mut p = _mm512_set1_ps(EXP_TERMS[0]);
        for term in &EXP_TERMS[1..] {
            p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(*term));
        }
        let zero = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(x, _mm512_set1_ps(EXP_MIN));
        _mm512_mask_scalef_ps(_mm512_setzero_ps(), !zero, p, n)
    }
}

/// # Safety
/// AVX-512 F, BW, VL and DQ; both slices of one length.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,fma,f16c")]
pub(super) unsafe fn silu_mul(gate: &mut [f32], up: &[f32]) {
    let one = _mm512_set1_ps(1.0);
    for (gate, up) in gate.chunks_mut(LANES).zip(up.chunks(LANES)) {
        let mask = mask(gate.len());
        // SAFETY: the mask keeps within the chunks, which have one length.
        unsafe {
            let g = _mm512_maskz_loadu_ps(mask, gate.as_ptr());
            let u = _mm512_maskz_loadu_ps(mask, up.as_ptr());
            let below = _mm512_add_ps(one, exp(_mm512_sub_ps(_mm512_setzero_ps(), g)));
            let result = _mm512_mul_ps(_mm512_div_ps(g, below), u);
            _mm512_mask_storeu_ps(gate.as_mut_ptr(), mask, result);
        }
    }
}

/// # Safety
/// AVX-512 F, BW, VL and DQ; both slices of one length.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,fma,f16c")]
pub(super) unsafe fn add(sum: &mut [f32], addend: &[f32]) {
    // The compiler does this well with the instructions at hand.
    for (s, a) in sum.iter_mut().zip(addend) {
        *s += a;
    }
}

/// # Safety
/// AVX-512 F, BW, VL and DQ; both slices of one length.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,fma,f16c")]
pub(super) unsafe fn to_half(values: &[f32], out: &mut [u16]) {
    let (chunks, tail) = values.as_chunks::<LANES>();
    let (out_chunks, out_tail) = out.as_chunks_mut::<LANES>();
    for (values, out) in chunks.iter().zip(out_chunks) {
        // SAFETY: both chunks are whole.
        unsafe {
            let half =
                _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm512_loadu_ps(values.as_ptr()));
            _mm256_storeu_si256(out.as_mut_ptr().cast(), half);
        }
    }
    portable::to_half(tail, out_tail);
}
