//! The registers: a group of 16 outputs is one of them.

use std::arch::x86_64::*;

use super::super::interleave::Interleave;
use super::super::wide::{Acts, Lanes, Part, lanes};
use super::{Avx512, products};

/// The first lanes, up to all of them.
#[inline(always)]
fn mask(n: usize) -> __mmask16 {
    ((1u32 << n) - 1) as __mmask16
}

impl Lanes for Avx512 {
    const COUNT: usize = 16;
    const SUMS: usize = 16;

    type Floats = __m512;
    type Ints = __m512i;

    lanes! {
        fn splat(x: f32) -> __m512 { _mm512_set1_ps(x) }
        fn load(at: *const f32) -> __m512 { _mm512_loadu_ps(at) }
        fn load_first(at: *const f32, n: usize) -> __m512 { _mm512_maskz_loadu_ps(mask(n), at) }
        fn store(at: *mut f32, x: __m512) { _mm512_storeu_ps(at, x) }
        fn store_first(at: *mut f32, x: __m512, n: usize) { _mm512_mask_storeu_ps(at, mask(n), x) }
        fn halves(at: *const u8) -> __m512 { _mm512_cvtph_ps(_mm256_loadu_si256(at.cast())) }
        fn brains(at: *const u8) -> __m512 {{
            let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(at.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide))
        }}
        fn bytes(at: *const u8) -> __m512 {
            _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(at.cast())))
        }
        fn signed_bytes(at: *const u8) -> __m512 {
            _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(at.cast())))
        }
        fn low_nibbles(at: *const u8) -> __m512 {{
            let bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(at.cast()));
            _mm512_cvtepi32_ps(_mm512_and_si512(bytes, _mm512_set1_epi32(15)))
        }}
        fn high_nibbles(at: *const u8) -> __m512 {{
            let bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(at.cast()));
            _mm512_cvtepi32_ps(_mm512_srli_epi32::<4>(bytes))
        }}
        fn store_halves(at: *mut u16, x: __m512) {
            _mm256_storeu_si256(at.cast(), _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x))
        }

        fn add(a: __m512, b: __m512) -> __m512 { _mm512_add_ps(a, b) }
        fn sub(a: __m512, b: __m512) -> __m512 { _mm512_sub_ps(a, b) }
        fn mul(a: __m512, b: __m512) -> __m512 { _mm512_mul_ps(a, b) }
        fn div(a: __m512, b: __m512) -> __m512 { _mm512_div_ps(a, b) }
        fn min(a: __m512, b: __m512) -> __m512 { _mm512_min_ps(a, b) }
        fn max(a: __m512, b: __m512) -> __m512 { _mm512_max_ps(a, b) }
        fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 { _mm512_fmadd_ps(a, b, c) }
        fn neg_mul_add(a: __m512, b: __m512, c: __m512) -> __m512 { _mm512_fnmadd_ps(a, b, c) }
        fn abs(x: __m512) -> __m512 { _mm512_andnot_ps(_mm512_set1_ps(-0.0), x) }
        fn round(x: __m512) -> __m512 { _mm512_roundscale_ps::<0>(x) }
        fn scale(x: __m512, n: __m512) -> __m512 { _mm512_scalef_ps(x, n) }
        fn zero_up_to(x: __m512, limit: f32, other: __m512) -> __m512 {{
            let zero = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(x, _mm512_set1_ps(limit));
            _mm512_maskz_mov_ps(!zero, other)
        }}
        fn all_finite(magnitudes: __m512) -> bool {
            _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(magnitudes, _mm512_set1_ps(f32::INFINITY)) == 0
        }
        fn first(x: __m512) -> f32 { _mm512_cvtss_f32(x) }
        fn total(x: __m512) -> f32 { _mm512_reduce_add_ps(x) }
        fn greatest(x: __m512) -> f32 { _mm512_reduce_max_ps(x) }

        fn splat_ints(x: i32) -> __m512i { _mm512_set1_epi32(x) }
        fn splat_bytes(x: u8) -> __m512i { _mm512_set1_epi8(x as i8) }
        fn load_ints(at: *const u8) -> __m512i { _mm512_loadu_si512(at.cast()) }
        fn and(a: __m512i, b: __m512i) -> __m512i { _mm512_and_si512(a, b) }
        fn or(a: __m512i, b: __m512i) -> __m512i { _mm512_or_si512(a, b) }
        fn shift_up(x: __m512i, n: usize) -> __m512i {
            _mm512_sll_epi16(x, _mm_cvtsi32_si128(n as i32))
        }
        fn shift_down(x: __m512i, n: usize) -> __m512i {
            _mm512_srl_epi16(x, _mm_cvtsi32_si128(n as i32))
        }
        fn look_up(table: &[u8; 16], bytes: __m512i) -> __m512i {{
            let table = _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast()));
            _mm512_shuffle_epi8(table, bytes)
        }}
        fn to_ints(x: __m512) -> __m512i { _mm512_cvtps_epi32(x) }
        fn to_floats(x: __m512i) -> __m512 { _mm512_cvtepi32_ps(x) }
        fn total_ints(x: __m512i) -> i32 { _mm512_reduce_add_epi32(x) }
        fn store_bytes(at: *mut i8, x: __m512i) {
            _mm_storeu_si128(at.cast(), _mm512_cvtepi32_epi8(x))
        }
    }

    #[inline(always)]
    unsafe fn products<B: Interleave, const C: usize, const R: usize>(
        codes: [*const u8; C],
        acts: &Acts<R>,
        part: Part,
    ) -> [[__m512i; R]; C] {
        // SAFETY: passed on from the caller.
        unsafe { products::products::<B, C, R>(codes, acts, part) }
    }
}
