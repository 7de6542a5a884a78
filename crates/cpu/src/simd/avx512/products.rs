//! Products of codes, four to a lane in one instruction.

use std::arch::x86_64::*;

use super::super::interleave::Interleave;
use super::super::wide::{Acts, Part, unpack};
use super::Avx512;

/// See [`super::super::wide::Lanes::products`].
#[inline(always)]
pub(super) unsafe fn products<B: Interleave, const C: usize, const R: usize>(
    codes: [*const u8; C],
    acts: &Acts<R>,
    part: Part,
) -> [[__m512i; R]; C] {
    // SAFETY: within the block and the rows.
    unsafe {
        let mut start = [_mm512_setzero_si512(); R];
        for r in 0..R {
            start[r] = acts.start::<Avx512>(r, part, B::OFFSET);
        }
        let mut products = [start; C];
        match part {
            Part::Whole => {
                // In this order a line of nibbles is used twice in a row.
                dword::<B, C, R, 0>(codes, acts, &mut products);
                dword::<B, C, R, 4>(codes, acts, &mut products);
                dword::<B, C, R, 1>(codes, acts, &mut products);
                dword::<B, C, R, 5>(codes, acts, &mut products);
                dword::<B, C, R, 2>(codes, acts, &mut products);
                dword::<B, C, R, 6>(codes, acts, &mut products);
                dword::<B, C, R, 3>(codes, acts, &mut products);
                dword::<B, C, R, 7>(codes, acts, &mut products);
            }
            Part::FirstHalf => {
                dword::<B, C, R, 0>(codes, acts, &mut products);
                dword::<B, C, R, 1>(codes, acts, &mut products);
                dword::<B, C, R, 2>(codes, acts, &mut products);
                dword::<B, C, R, 3>(codes, acts, &mut products);
            }
            Part::SecondHalf => {
                dword::<B, C, R, 4>(codes, acts, &mut products);
                dword::<B, C, R, 5>(codes, acts, &mut products);
                dword::<B, C, R, 6>(codes, acts, &mut products);
                dword::<B, C, R, 7>(codes, acts, &mut products);
            }
        }
        products
    }
}

/// Adds the products of four elements, dword `J` of a block.
#[inline(always)]
unsafe fn dword<B: Interleave, const C: usize, const R: usize, const J: usize>(
    codes: [*const u8; C],
    acts: &Acts<R>,
    products: &mut [[__m512i; R]; C],
) {
    // SAFETY: within the block.
    unsafe {
        let mut unpacked = [_mm512_setzero_si512(); C];
        for c in 0..C {
            unpacked[c] = unpack::<Avx512, B, J>(codes[c]);
        }
        for r in 0..R {
            let acts = acts.dword::<Avx512>(r, J);
            for c in 0..C {
                products[c][r] = _mm512_dpbusd_epi32(products[c][r], unpacked[c], acts);
            }
        }
    }
}
