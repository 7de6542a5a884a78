//! Operations on rows of floats.

use std::arch::x86_64::*;

use super::super::exp::{EXP_MAX, EXP_MIN, EXP_TERMS, LN2_HIGH, LN2_LOW};
use super::super::format::BLOCK;
use super::super::panel::{PanelRow, SUM_ELEMS};
use super::super::portable;
use super::linear::LANES;

/// # Safety
/// AVX2, FMA and F16C; `out` has a place for each element of `row`.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn quantize(row: &[f32], out: PanelRow<'_>) {
    let sign = _mm256_set1_ps(-0.0);
    let infinity = _mm256_set1_ps(f32::INFINITY);
    for (b, values) in row.as_chunks::<BLOCK>().0.iter().enumerate() {
        let (registers, _) = values.as_chunks::<LANES>();
        let mut largest = _mm256_setzero_ps();
        let mut bad = _mm256_setzero_ps();
        for values in registers {
            // SAFETY: a register of values.
            let values = unsafe { _mm256_loadu_ps(values.as_ptr()) };
            let magnitude = _mm256_andnot_ps(sign, values);
            largest = _mm256_max_ps(largest, magnitude);
            // Not below infinity: infinite, or no number.
            bad = _mm256_or_ps(bad, _mm256_cmp_ps::<_CMP_NLT_UQ>(magnitude, infinity));
        }
        let largest = greatest(largest);
        let inverse = 127.0 / largest;
        let finite = _mm256_movemask_ps(bad) == 0;
        let (scale, inverse) = match (finite, inverse.is_finite()) {
            (true, true) => (largest / 127.0, inverse),
            (true, false) => (0.0, 0.0),
            (false, _) => (f32::NAN, 0.0),
        };
        let codes = &mut out.codes[b * BLOCK..][..BLOCK];
        for (values, codes) in registers.iter().zip(codes.chunks_exact_mut(LANES)) {
            // SAFETY: a register of values.
            let values = unsafe { _mm256_loadu_ps(values.as_ptr()) };
            let scaled = _mm256_mul_ps(values, _mm256_set1_ps(inverse));
            // Rounds to nearest even, as the default mode of the machine is.
            let wide = _mm256_cvtps_epi32(scaled);
            // A block that is not finite gets zero codes, which infinity times zero is not.
            let wide = if finite { wide } else { _mm256_setzero_si256() };
            let mut numbers = [0i32; LANES];
            // SAFETY: the array is as large as a register.
            unsafe { _mm256_storeu_si256(numbers.as_mut_ptr().cast(), wide) };
            for (code, number) in codes.iter_mut().zip(numbers) {
                *code = number as i8;
            }
        }
        let mut sum = 0;
        for (half, codes) in codes.chunks_exact(SUM_ELEMS).enumerate() {
            let half_sum: i32 = codes.iter().map(|c| i32::from(*c)).sum();
            out.neg_sums[2 * b + half] = -half_sum;
            sum += half_sum;
        }
        out.scales[b] = scale;
        out.weighted_sums[b] = scale * sum as f32;
    }
}

/// The greatest lane.
#[target_feature(enable = "avx2")]
pub(super) fn greatest(x: __m256) -> f32 {
    let mut lanes = [0.0f32; LANES];
    // SAFETY: the array is as large as a register.
    unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), x) };
    lanes.into_iter().fold(f32::NEG_INFINITY, f32::max)
}

/// The sum of the lanes, in one fixed order.
#[target_feature(enable = "avx2")]
pub(super) fn total(x: __m256) -> f32 {
    let mut lanes = [0.0f32; LANES];
    // SAFETY: the array is as large as a register.
    unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), x) };
    lanes.into_iter().sum()
}

/// # Safety
/// AVX2, FMA and F16C; all slices of one length.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn rms_norm(row: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let mut sums = [_mm256_setzero_ps(); 4];
    let (registers, tail) = row.as_chunks::<LANES>();
    for (i, values) in registers.iter().enumerate() {
        // SAFETY: a register of values.
        let values = unsafe { _mm256_loadu_ps(values.as_ptr()) };
        sums[i % 4] = _mm256_fmadd_ps(values, values, sums[i % 4]);
    }
    let sum = _mm256_add_ps(
        _mm256_add_ps(sums[0], sums[1]),
        _mm256_add_ps(sums[2], sums[3]),
    );
    let rest: f32 = tail.iter().map(|v| v * v).sum();
    let mean = (total(sum) + rest) / row.len() as f32;
    let factor = 1.0 / (mean + eps).sqrt();
    // The compiler does this well with the instructions at hand.
    for ((out, v), w) in out.iter_mut().zip(row).zip(weight) {
        *out = v * factor * w;
    }
}

/// e to the power of each lane; see [`super::super::exp`]. What is no number stays none.
#[inline(always)]
pub(super) unsafe fn exp(x: __m256) -> __m256 {
    // SAFETY: needs AVX2 and FMA only, which the caller has.
    unsafe {
        // The operand order of max and min lets what is no number through.
        let x = _mm256_min_ps(_mm256_set1_ps(EXP_MAX), x);
        let x = _mm256_max_ps(_mm256_set1_ps(EXP_MIN), x);
        let n = _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(
            _mm256_mul_ps(x, _mm256_set1_ps(std::f32::consts::LOG2_E)),
        );
        let r = _mm256_fnmadd_ps(n, _mm256_set1_ps(LN2_HIGH), x);
        let r = _mm256_fnmadd_ps(n, _mm256_set1_ps(LN2_LOW), r);
        let mut p = _mm256_set1_ps(EXP_TERMS[0]);
        for term in &EXP_TERMS[1..] {
            p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(*term));
        }
        // 2^n in two factors, since 2^128 alone is no float32.
        let n = _mm256_cvtps_epi32(n);
        let half = _mm256_srai_epi32::<1>(n);
        let scaled = _mm256_mul_ps(p, power_of_two(half));
        let scaled = _mm256_mul_ps(scaled, power_of_two(_mm256_sub_epi32(n, half)));
        let zero = _mm256_cmp_ps::<_CMP_LE_OQ>(x, _mm256_set1_ps(EXP_MIN));
        _mm256_andnot_ps(zero, scaled)
    }
}

/// 2 to the power of each lane, from -126 to 127.
#[inline(always)]
unsafe fn power_of_two(n: __m256i) -> __m256 {
    // SAFETY: needs AVX2 only, which the caller has.
    unsafe {
        let exponent = _mm256_add_epi32(n, _mm256_set1_epi32(127));
        _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponent))
    }
}

/// # Safety
/// AVX2, FMA and F16C; both slices of one length.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn silu_mul(gate: &mut [f32], up: &[f32]) {
    let (registers, tail) = gate.as_chunks_mut::<LANES>();
    let (ups, up_tail) = up.as_chunks::<LANES>();
    for (gate, up) in registers.iter_mut().zip(ups) {
        // SAFETY: the caller has the instructions.
        unsafe { silu_register(gate, up) };
    }
    if !tail.is_empty() {
        let (mut gate, mut up) = ([0.0; LANES], [0.0; LANES]);
        gate[..tail.len()].copy_from_slice(tail);
        up[..tail.len()].copy_from_slice(up_tail);
        // SAFETY: the caller has the instructions.
        unsafe { silu_register(&mut gate, &up) };
        tail.copy_from_slice(&gate[..tail.len()]);
    }
}

#[inline(always)]
unsafe fn silu_register(gate: &mut [f32; LANES], up: &[f32; LANES]) {
    // SAFETY: registers of values; the caller has the instructions.
    unsafe {
        let g = _mm256_loadu_ps(gate.as_ptr());
        let below = _mm256_add_ps(
            _mm256_set1_ps(1.0),
            exp(_mm256_sub_ps(_mm256_setzero_ps(), g)),
        );
        let result = _mm256_mul_ps(_mm256_div_ps(g, below), _mm256_loadu_ps(up.as_ptr()));
        _mm256_storeu_ps(gate.as_mut_ptr(), result);
    }
}

/// # Safety
/// AVX2, FMA and F16C; both slices of one length.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn add(sum: &mut [f32], addend: &[f32]) {
    // The compiler does this well with the instructions at hand.
    for (s, a) in sum.iter_mut().zip(addend) {
        *s += a;
    }
}

/// # Safety
/// AVX2, FMA and F16C; both slices of one length.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn to_half(values: &[f32], out: &mut [u16]) {
    let (chunks, tail) = values.as_chunks::<LANES>();
    let (out_chunks, out_tail) = out.as_chunks_mut::<LANES>();
    for (values, out) in chunks.iter().zip(out_chunks) {
        // SAFETY: both chunks are whole.
        unsafe {
            let half =
                _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(values.as_ptr()));
            _mm_storeu_si128(out.as_mut_ptr().cast(), half);
        }
    }
    portable::to_half(tail, out_tail);
}
