//! Products of codes: two bytes times two bytes are added in 16 bits; how many of these sums fit
//! into 16 bits depends on the greatest code ([`dwords_per_sum`]), then they are widened to 32.

use std::arch::x86_64::*;

use super::super::interleave::Interleave;
use super::super::wide::{Acts, Part, unpack};
use super::Avx2;

/// The greatest code whose two products with an activation of at most 127 fit into 16 bits.
/// 2 * 129 * 127 = 32,766
const UNSIGNED_MAX: u8 = 129;

/// Whether the codes are used as signed ones, without their offset: none of these is beyond 128,
/// and 2 * 128 * 127 = 32,512.
const fn is_signed<B: Interleave>() -> bool {
    B::CODE_MAX > UNSIGNED_MAX
}

/// How many dwords' products may be added in 16 bits: each adds two products of a code and an
/// activation of at most 127.
const fn dwords_per_sum<B: Interleave>() -> usize {
    match UNSIGNED_MAX / B::CODE_MAX {
        // 8 * 2 * 15 * 127 = 30,480
        8.. => 8,
        // 4 * 2 * 31 * 127 = 31,496
        4.. => 4,
        // 2 * 2 * 63 * 127 = 32,004
        2.. => 2,
        _ => 1,
    }
}

/// What the products of a tile are kept in.
type Tile<const C: usize, const R: usize> = [[__m256i; R]; C];

/// See [`super::super::wide::Lanes::products`].
#[inline(always)]
pub(super) unsafe fn products<B: Interleave, const C: usize, const R: usize>(
    codes: [*const u8; C],
    acts: &Acts<R>,
    part: Part,
) -> Tile<C, R> {
    // SAFETY: within the block and the rows.
    unsafe {
        let offset = if is_signed::<B>() { 0 } else { B::OFFSET };
        let mut start = [_mm256_setzero_si256(); R];
        for r in 0..R {
            start[r] = acts.start::<Avx2>(r, part, offset);
        }
        let mut products = [start; C];
        match part {
            Part::Whole if dwords_per_sum::<B>() == 8 => {
                let mut narrow = [[_mm256_setzero_si256(); R]; C];
                // In this order a line of nibbles is used twice in a row.
                dword::<B, C, R, 0>(codes, acts, &mut narrow);
                dword::<B, C, R, 4>(codes, acts, &mut narrow);
                dword::<B, C, R, 1>(codes, acts, &mut narrow);
                dword::<B, C, R, 5>(codes, acts, &mut narrow);
                dword::<B, C, R, 2>(codes, acts, &mut narrow);
                dword::<B, C, R, 6>(codes, acts, &mut narrow);
                dword::<B, C, R, 3>(codes, acts, &mut narrow);
                dword::<B, C, R, 7>(codes, acts, &mut narrow);
                widen(&mut narrow, &mut products);
            }
            Part::Whole => {
                four_dwords::<B, C, R, 0, 4, 1, 5>(codes, acts, &mut products);
                four_dwords::<B, C, R, 2, 6, 3, 7>(codes, acts, &mut products);
            }
            Part::FirstHalf => four_dwords::<B, C, R, 0, 1, 2, 3>(codes, acts, &mut products),
            Part::SecondHalf => four_dwords::<B, C, R, 4, 5, 6, 7>(codes, acts, &mut products),
        }
        products
    }
}

/// Adds the products of four dwords.
#[inline(always)]
unsafe fn four_dwords<
    B: Interleave,
    const C: usize,
    const R: usize,
    const J: usize,
    const K: usize,
    const L: usize,
    const M: usize,
>(
    codes: [*const u8; C],
    acts: &Acts<R>,
    products: &mut Tile<C, R>,
) {
    // SAFETY: within the block.
    unsafe {
        let together = dwords_per_sum::<B>();
        let mut narrow = [[_mm256_setzero_si256(); R]; C];
        dword::<B, C, R, J>(codes, acts, &mut narrow);
        if together < 2 {
            widen(&mut narrow, products);
        }
        dword::<B, C, R, K>(codes, acts, &mut narrow);
        if together < 4 {
            widen(&mut narrow, products);
        }
        dword::<B, C, R, L>(codes, acts, &mut narrow);
        if together < 2 {
            widen(&mut narrow, products);
        }
        dword::<B, C, R, M>(codes, acts, &mut narrow);
        widen(&mut narrow, products);
    }
}

/// Adds sums of 16 bits to those of 32, and begins new ones.
#[inline(always)]
unsafe fn widen<const C: usize, const R: usize>(
    narrow: &mut Tile<C, R>,
    products: &mut Tile<C, R>,
) {
    // SAFETY: the caller has the instructions.
    unsafe {
        for c in 0..C {
            for r in 0..R {
                let wide = _mm256_madd_epi16(narrow[c][r], _mm256_set1_epi16(1));
                products[c][r] = _mm256_add_epi32(products[c][r], wide);
            }
        }
        *narrow = [[_mm256_setzero_si256(); R]; C];
    }
}

/// Adds the products of four elements, dword `J` of a block, in 16 bits.
#[inline(always)]
unsafe fn dword<B: Interleave, const C: usize, const R: usize, const J: usize>(
    codes: [*const u8; C],
    acts: &Acts<R>,
    narrow: &mut Tile<C, R>,
) {
    // SAFETY: within the block.
    unsafe {
        let mut unpacked = [_mm256_setzero_si256(); C];
        for c in 0..C {
            unpacked[c] = unpack::<Avx2, B, J>(codes[c]);
            if is_signed::<B>() {
                let offset = _mm256_set1_epi8(B::OFFSET as i8);
                unpacked[c] = _mm256_sub_epi8(unpacked[c], offset);
            }
        }
        for r in 0..R {
            let acts = acts.dword::<Avx2>(r, J);
            for c in 0..C {
                let products = if is_signed::<B>() {
                    // The sign of the code goes over to the activation.
                    let signed = _mm256_sign_epi8(acts, unpacked[c]);
                    _mm256_maddubs_epi16(_mm256_abs_epi8(unpacked[c]), signed)
                } else {
                    _mm256_maddubs_epi16(unpacked[c], acts)
                };
                narrow[c][r] = _mm256_add_epi16(narrow[c][r], products);
            }
        }
    }
}
