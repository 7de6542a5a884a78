//! The registers: a group of 16 outputs is two of them.

use std::arch::x86_64::*;

use super::super::interleave::Interleave;
use super::super::wide::{Acts, Lanes, Part, lanes};
use super::{Avx2, products};

/// Lanes of a register.
const LANES: usize = 8;

/// The lanes as numbers.
#[inline(always)]
unsafe fn spread(x: __m256) -> [f32; LANES] {
    let mut lanes = [0.0; LANES];
    // SAFETY: the array is as large as a register; the caller has the instructions.
    unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), x) };
    lanes
}

/// 2 to the power of each lane, from -126 to 127.
#[inline(always)]
unsafe fn power_of_two(n: __m256i) -> __m256 {
    // SAFETY: the caller has the instructions.
    unsafe {
        let exponent = _mm256_add_epi32(n, _mm256_set1_epi32(127));
        _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponent))
    }
}

impl Lanes for Avx2 {
    const COUNT: usize = LANES;
    const SUMS: usize = 8;

    type Floats = __m256;
    type Ints = __m256i;

    lanes! {
        fn splat(x: f32) -> __m256 { _mm256_set1_ps(x) }
        fn load(at: *const f32) -> __m256 { _mm256_loadu_ps(at) }
        fn load_first(at: *const f32, n: usize) -> __m256 {{
            if n == LANES {
                _mm256_loadu_ps(at)
            } else {
                let mut lanes = [0.0f32; LANES];
                lanes.as_mut_ptr().copy_from_nonoverlapping(at, n);
                _mm256_loadu_ps(lanes.as_ptr())
            }
        }}
        fn store(at: *mut f32, x: __m256) { _mm256_storeu_ps(at, x) }
        fn store_first(at: *mut f32, x: __m256, n: usize) {
            if n == LANES {
                _mm256_storeu_ps(at, x)
            } else {
                at.copy_from_nonoverlapping(spread(x).as_ptr(), n)
            }
        }
        fn halves(at: *const u8) -> __m256 { _mm256_cvtph_ps(_mm_loadu_si128(at.cast())) }
        fn brains(at: *const u8) -> __m256 {{
            let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(at.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide))
        }}
        fn bytes(at: *const u8) -> __m256 {
            _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(at.cast())))
        }
        fn signed_bytes(at: *const u8) -> __m256 {
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(at.cast())))
        }
        fn low_nibbles(at: *const u8) -> __m256 {{
            let bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(at.cast()));
            _mm256_cvtepi32_ps(_mm256_and_si256(bytes, _mm256_set1_epi32(15)))
        }}
        fn high_nibbles(at: *const u8) -> __m256 {{
            let bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(at.cast()));
            _mm256_cvtepi32_ps(_mm256_srli_epi32::<4>(bytes))
        }}
        fn store_halves(at: *mut u16, x: __m256) {
            _mm_storeu_si128(at.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x))
        }

        fn add(a: __m256, b: __m256) -> __m256 { _mm256_add_ps(a, b) }
        fn sub(a: __m256, b: __m256) -> __m256 { _mm256_sub_ps(a, b) }
        fn mul(a: __m256, b: __m256) -> __m256 { _mm256_mul_ps(a, b) }
        fn div(a: __m256, b: __m256) -> __m256 { _mm256_div_ps(a, b) }
        fn min(a: __m256, b: __m256) -> __m256 { _mm256_min_ps(a, b) }
        fn max(a: __m256, b: __m256) -> __m256 { _mm256_max_ps(a, b) }
        fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 { _mm256_fmadd_ps(a, b, c) }
        fn neg_mul_add(a: __m256, b: __m256, c: __m256) -> __m256 { _mm256_fnmadd_ps(a, b, c) }
        fn abs(x: __m256) -> __m256 { _mm256_andnot_ps(_mm256_set1_ps(-0.0), x) }
        fn round(x: __m256) -> __m256 {
            _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x)
        }
        fn scale(x: __m256, n: __m256) -> __m256 {{
            // Two factors, since 2^128 alone is no float32.
            let n = _mm256_cvtps_epi32(n);
            let half = _mm256_srai_epi32::<1>(n);
            let x = _mm256_mul_ps(x, power_of_two(half));
            _mm256_mul_ps(x, power_of_two(_mm256_sub_epi32(n, half)))
        }}
        fn zero_up_to(x: __m256, limit: f32, other: __m256) -> __m256 {
            _mm256_andnot_ps(_mm256_cmp_ps::<_CMP_LE_OQ>(x, _mm256_set1_ps(limit)), other)
        }
        fn all_finite(magnitudes: __m256) -> bool {{
            let infinity = _mm256_set1_ps(f32::INFINITY);
            _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_NLT_UQ>(magnitudes, infinity)) == 0
        }}
        fn first(x: __m256) -> f32 { _mm256_cvtss_f32(x) }
        fn total(x: __m256) -> f32 { spread(x).into_iter().sum() }
        fn greatest(x: __m256) -> f32 {
            spread(x).into_iter().fold(f32::NEG_INFINITY, f32::max)
        }

        fn splat_ints(x: i32) -> __m256i { _mm256_set1_epi32(x) }
        fn splat_bytes(x: u8) -> __m256i { _mm256_set1_epi8(x as i8) }
        fn load_ints(at: *const u8) -> __m256i { _mm256_loadu_si256(at.cast()) }
        fn and(a: __m256i, b: __m256i) -> __m256i { _mm256_and_si256(a, b) }
        fn or(a: __m256i, b: __m256i) -> __m256i { _mm256_or_si256(a, b) }
        fn shift_up(x: __m256i, n: usize) -> __m256i {
            _mm256_sll_epi16(x, _mm_cvtsi32_si128(n as i32))
        }
        fn shift_down(x: __m256i, n: usize) -> __m256i {
            _mm256_srl_epi16(x, _mm_cvtsi32_si128(n as i32))
        }
        fn look_up(table: &[u8; 16], bytes: __m256i) -> __m256i {{
            let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
            _mm256_shuffle_epi8(table, bytes)
        }}
        fn to_ints(x: __m256) -> __m256i { _mm256_cvtps_epi32(x) }
        fn to_floats(x: __m256i) -> __m256 { _mm256_cvtepi32_ps(x) }
        fn total_ints(x: __m256i) -> i32 {{
            let mut lanes = [0i32; LANES];
            _mm256_storeu_si256(lanes.as_mut_ptr().cast(), x);
            lanes.into_iter().sum()
        }}
        fn store_bytes(at: *mut i8, x: __m256i) {{
            let both = _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
            _mm_storel_epi64(at.cast(), _mm_packs_epi16(both, both))
        }}
    }

    #[inline(always)]
    unsafe fn products<B: Interleave, const C: usize, const R: usize>(
        codes: [*const u8; C],
        acts: &Acts<R>,
        part: Part,
    ) -> [[__m256i; R]; C] {
        // SAFETY: passed on from the caller.
        unsafe { products::products::<B, C, R>(codes, acts, part) }
    }
}
