//! Products of 8-bit activations with weights of small integers.
//!
//! Two bytes times two bytes are added in 16 bits; how many of these sums fit into 16 bits
//! depends on the width of the codes ([`dwords_per_sum`]), then they are widened to 32.
//! Measured on one core of Zen 5 (3.9 GHz): a prompt 260 * 10^9 operations a second with Q4_K,
//! 240 Q4_0, 190 Q5_0, 165 Q8_0 and Q6_K; a reply 26 to 38 GB/s.
//!
//! The helpers are inlined into [`tile`], which has the instructions; they are generic over the
//! type, whose constants decide each branch at compile time.

use std::arch::x86_64::*;

use super::super::buffer::LINE_BYTES;
use super::super::format::{BLOCK, Codes, GROUP_ROWS, Scales};
use super::super::interleave::Interleave;
use super::super::kernels::LinearTask;

/// Outputs of a register.
pub(super) const LANES: usize = 8;

/// Bytes of a register.
const HALF_LINE: usize = LINE_BYTES / 2;

/// How far ahead of the decode kernel its weights are fetched.
const AHEAD_BYTES: usize = 4096;

/// How many dwords' products may be added in 16 bits: each adds two products of a code and an
/// activation of at most 127.
const fn dwords_per_sum(codes: Codes) -> usize {
    match codes {
        // 8 * 2 * 15 * 127 = 30,480
        Codes::Nibbles => 8,
        // 4 * 2 * 31 * 127 = 31,496
        Codes::FiveBits => 4,
        // 2 * 2 * 63 * 127 = 32,004
        Codes::SixBits => 2,
        // 2 * 128 * 127 = 32,512, with the signed codes
        Codes::Bytes => 1,
    }
}

/// What the products of a half of a group are kept in.
type Lanes<const H: usize, const R: usize> = [[__m256i; R]; H];

/// # Safety
/// See [`super::super::kernels::LinearFn`].
pub(super) unsafe fn integers<B: Interleave>(task: &LinearTask) {
    for group in task.groups.clone() {
        let mut row = task.rows.start;
        while row < task.rows.end {
            // SAFETY: passed on from the caller; the rows and groups are those of the task.
            row += unsafe {
                match task.rows.end - row {
                    4.. => {
                        tile::<B, 1, 4>(task, group, 0, row);
                        tile::<B, 1, 4>(task, group, 1, row)
                    }
                    2.. => tile::<B, 2, 2>(task, group, 0, row),
                    _ => tile::<B, 2, 1>(task, group, 0, row),
                }
            };
        }
    }
}

/// `R` rows times `H` halves of a group; gives `R`.
///
/// # Safety
/// See [`super::super::kernels::LinearFn`]; `row` and the `R - 1` after it must be rows of the task.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn tile<B: Interleave, const H: usize, const R: usize>(
    task: &LinearTask,
    group: usize,
    half: usize,
    row: usize,
) -> usize {
    // SAFETY: every address below lies in a group of the matrix or in a row of the panel, as the
    // caller states; a prefetch may be to any address.
    unsafe {
        let panel = &task.panel;
        let mut acts = Acts::<R> {
            codes: panel.codes.add(row * panel.codes_stride),
            scales: panel.scales.add(row * panel.scales_stride),
            neg_sums: panel.neg_sums.add(row * panel.sums_stride),
            weighted_sums: panel.weighted_sums.add(row * panel.scales_stride),
            codes_stride: panel.codes_stride,
            scales_stride: panel.scales_stride,
            sums_stride: panel.sums_stride,
        };
        let mut unit = task.weights.add(group * task.group_bytes);
        let mut sums = [[_mm256_setzero_ps(); R]; H];
        let mut left = task.cols / BLOCK;
        while left > 0 {
            for b in 0..left.min(B::UNIT_BLOCKS) {
                block::<B, H, R>((unit, half), b, &acts, &mut sums);
                acts.advance();
            }
            left -= left.min(B::UNIT_BLOCKS);
            unit = unit.add(B::UNIT_BYTES);
        }
        for (h, sums) in sums.iter().enumerate() {
            let lanes = task.lanes(group).saturating_sub((half + h) * LANES);
            for (r, sum) in sums.iter().enumerate() {
                let place = (row + r) * task.width + group * GROUP_ROWS + (half + h) * LANES;
                store(task.out.wrapping_add(place), *sum, lanes.min(LANES));
            }
        }
    }
    R
}

/// Stores the first lanes.
///
/// # Safety
/// They must have places at `out`.
#[inline(always)]
pub(super) unsafe fn store(out: *mut f32, sum: __m256, lanes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if lanes == LANES {
            _mm256_storeu_ps(out, sum);
        } else {
            let mut all = [0.0f32; LANES];
            _mm256_storeu_ps(all.as_mut_ptr(), sum);
            out.copy_from_nonoverlapping(all.as_ptr(), lanes);
        }
    }
}

/// Where the present block of some rows of the panel is.
struct Acts<const R: usize> {
    codes: *const i8,
    scales: *const f32,
    neg_sums: *const i32,
    weighted_sums: *const f32,
    codes_stride: usize,
    scales_stride: usize,
    sums_stride: usize,
}

impl<const R: usize> Acts<R> {
    #[inline(always)]
    unsafe fn advance(&mut self) {
        // SAFETY: at most one past the end of a row.
        unsafe {
            self.codes = self.codes.add(BLOCK);
            self.scales = self.scales.add(1);
            self.neg_sums = self.neg_sums.add(2);
            self.weighted_sums = self.weighted_sums.add(1);
        }
    }

    /// Dword `j` of row `r` in each lane.
    #[inline(always)]
    unsafe fn dword(&self, r: usize, j: usize) -> __m256i {
        // SAFETY: within the block.
        unsafe {
            let at = self.codes.add(r * self.codes_stride + 4 * j);
            _mm256_set1_epi32(at.cast::<i32>().read_unaligned())
        }
    }

    /// What the offset of the codes takes from the products of one half block. Bytes are used as
    /// signed codes, without an offset.
    #[inline(always)]
    unsafe fn start<B: Interleave>(&self, r: usize, half: usize) -> __m256i {
        // SAFETY: within the row.
        unsafe {
            let at = self.neg_sums.add(r * self.sums_stride);
            let sum = match B::SCALES {
                Scales::Halves => *at.add(half),
                _ => *at + *at.add(1),
            };
            match (B::CODES, B::OFFSET) {
                (Codes::Bytes, _) | (_, 0) => _mm256_setzero_si256(),
                (_, offset) => _mm256_set1_epi32(sum * i32::from(offset)),
            }
        }
    }
}

/// Adds the products of one block.
#[inline(always)]
unsafe fn block<B: Interleave, const H: usize, const R: usize>(
    (unit, half): (*const u8, usize),
    b: usize,
    acts: &Acts<R>,
    sums: &mut [[__m256; R]; H],
) {
    // SAFETY: block `b` of the unit, and the present block of each row.
    unsafe {
        let codes = unit.add(B::HEADER_BYTES + b * B::BLOCK_BYTES + half * HALF_LINE);
        if R == 1 {
            for line in 0..B::BLOCK_BYTES / LINE_BYTES {
                _mm_prefetch::<_MM_HINT_T0>(codes.add(AHEAD_BYTES + line * LINE_BYTES).cast());
            }
        }
        if let Scales::Halves = B::SCALES {
            let mut products = start::<B, H, R>(acts, 0);
            four_dwords::<B, H, R, 0, 1, 2, 3>(codes, acts, &mut products);
            add_scaled::<B, H, R>((unit, half), 2 * b, acts, &products, sums);
            let mut products = start::<B, H, R>(acts, 1);
            four_dwords::<B, H, R, 4, 5, 6, 7>(codes, acts, &mut products);
            add_scaled::<B, H, R>((unit, half), 2 * b + 1, acts, &products, sums);
        } else {
            let mut products = start::<B, H, R>(acts, 0);
            // In this order a line of nibbles is used twice in a row.
            eight_dwords::<B, H, R>(codes, acts, &mut products);
            add_scaled::<B, H, R>((unit, half), b, acts, &products, sums);
            if let Scales::StepBase | Scales::SixBit = B::SCALES {
                add_base::<B, H, R>((unit, half), b, acts, sums);
            }
        }
    }
}

/// What the products of a half block begin with.
#[inline(always)]
unsafe fn start<B: Interleave, const H: usize, const R: usize>(
    acts: &Acts<R>,
    half: usize,
) -> Lanes<H, R> {
    // SAFETY: within the rows.
    unsafe {
        let mut start = [_mm256_setzero_si256(); R];
        for r in 0..R {
            start[r] = acts.start::<B>(r, half);
        }
        [start; H]
    }
}

/// Adds the products of a block of codes that are summed in 16 bits eight or four at a time, or
/// one at a time.
#[inline(always)]
unsafe fn eight_dwords<B: Interleave, const H: usize, const R: usize>(
    codes: *const u8,
    acts: &Acts<R>,
    products: &mut Lanes<H, R>,
) {
    // SAFETY: within the block.
    unsafe {
        if dwords_per_sum(B::CODES) < 8 {
            four_dwords::<B, H, R, 0, 4, 1, 5>(codes, acts, products);
            four_dwords::<B, H, R, 2, 6, 3, 7>(codes, acts, products);
            return;
        }
        let mut narrow = [[_mm256_setzero_si256(); R]; H];
        dword::<B, H, R, 0>(codes, acts, &mut narrow);
        dword::<B, H, R, 4>(codes, acts, &mut narrow);
        dword::<B, H, R, 1>(codes, acts, &mut narrow);
        dword::<B, H, R, 5>(codes, acts, &mut narrow);
        dword::<B, H, R, 2>(codes, acts, &mut narrow);
        dword::<B, H, R, 6>(codes, acts, &mut narrow);
        dword::<B, H, R, 3>(codes, acts, &mut narrow);
        dword::<B, H, R, 7>(codes, acts, &mut narrow);
        widen(&mut narrow, products);
    }
}

/// Adds the products of four dwords.
#[inline(always)]
unsafe fn four_dwords<
    B: Interleave,
    const H: usize,
    const R: usize,
    const J: usize,
    const K: usize,
    const L: usize,
    const M: usize,
>(
    codes: *const u8,
    acts: &Acts<R>,
    products: &mut Lanes<H, R>,
) {
    // SAFETY: within the block.
    unsafe {
        let together = dwords_per_sum(B::CODES);
        let mut narrow = [[_mm256_setzero_si256(); R]; H];
        dword::<B, H, R, J>(codes, acts, &mut narrow);
        if together < 2 {
            widen(&mut narrow, products);
        }
        dword::<B, H, R, K>(codes, acts, &mut narrow);
        if together < 4 {
            widen(&mut narrow, products);
        }
        dword::<B, H, R, L>(codes, acts, &mut narrow);
        if together < 2 {
            widen(&mut narrow, products);
        }
        dword::<B, H, R, M>(codes, acts, &mut narrow);
        widen(&mut narrow, products);
    }
}

/// Adds sums of 16 bits to those of 32, and begins new ones.
#[inline(always)]
unsafe fn widen<const H: usize, const R: usize>(
    narrow: &mut Lanes<H, R>,
    products: &mut Lanes<H, R>,
) {
    // SAFETY: the caller has the instructions.
    unsafe {
        for h in 0..H {
            for r in 0..R {
                let wide = _mm256_madd_epi16(narrow[h][r], _mm256_set1_epi16(1));
                products[h][r] = _mm256_add_epi32(products[h][r], wide);
            }
        }
        *narrow = [[_mm256_setzero_si256(); R]; H];
    }
}

/// Adds the products of four elements, dword `J` of a block, in 16 bits.
#[inline(always)]
unsafe fn dword<B: Interleave, const H: usize, const R: usize, const J: usize>(
    codes: *const u8,
    acts: &Acts<R>,
    narrow: &mut Lanes<H, R>,
) {
    // SAFETY: within the block.
    unsafe {
        let mut unpacked = [_mm256_setzero_si256(); H];
        for h in 0..H {
            unpacked[h] = unpack::<B, J>(codes.add(h * HALF_LINE));
        }
        for r in 0..R {
            let acts = acts.dword(r, J);
            for h in 0..H {
                let products = if let Codes::Bytes = B::CODES {
                    // The sign of the code goes over to the activation.
                    let signed = _mm256_sign_epi8(acts, unpacked[h]);
                    _mm256_maddubs_epi16(_mm256_abs_epi8(unpacked[h]), signed)
                } else {
                    _mm256_maddubs_epi16(unpacked[h], acts)
                };
                narrow[h][r] = _mm256_add_epi16(narrow[h][r], products);
            }
        }
    }
}

/// Half a line of a block.
#[inline(always)]
unsafe fn half_line(block: *const u8, l: usize) -> __m256i {
    // SAFETY: within the block.
    unsafe { _mm256_loadu_si256(block.add(l * LINE_BYTES).cast()) }
}

/// The codes of dword `J` of a block, unsigned but for bytes; see [`super::super::format`].
#[inline(always)]
unsafe fn unpack<B: Interleave, const J: usize>(block: *const u8) -> __m256i {
    // SAFETY: within the block.
    unsafe {
        if let Codes::Bytes = B::CODES {
            return _mm256_xor_si256(half_line(block, J), _mm256_set1_epi8(-128));
        }
        let low = half_line(block, J % 4);
        let low = if J < 4 {
            low
        } else {
            _mm256_srli_epi16::<4>(low)
        };
        let nibbles = _mm256_and_si256(low, _mm256_set1_epi8(15));
        let (high, bits) = match B::CODES {
            Codes::FiveBits => {
                let high = half_line(block, 4);
                let high = match J {
                    0 => _mm256_slli_epi16::<4>(high),
                    1 => _mm256_slli_epi16::<3>(high),
                    2 => _mm256_slli_epi16::<2>(high),
                    3 => _mm256_slli_epi16::<1>(high),
                    4 => high,
                    5 => _mm256_srli_epi16::<1>(high),
                    6 => _mm256_srli_epi16::<2>(high),
                    _ => _mm256_srli_epi16::<3>(high),
                };
                (high, 0x10)
            }
            Codes::SixBits => {
                let high = half_line(block, 4 + J / 4);
                let high = match J % 4 {
                    0 => _mm256_slli_epi16::<4>(high),
                    1 => _mm256_slli_epi16::<2>(high),
                    2 => high,
                    _ => _mm256_srli_epi16::<2>(high),
                };
                (high, 0x30)
            }
            _ => return nibbles,
        };
        _mm256_or_si256(nibbles, _mm256_and_si256(high, _mm256_set1_epi8(bits)))
    }
}

/// 8 half floats.
#[inline(always)]
unsafe fn halves(at: *const u8) -> __m256 {
    // SAFETY: 16 bytes of a header.
    unsafe { _mm256_cvtph_ps(_mm_loadu_si128(at.cast())) }
}

/// 8 unsigned bytes.
#[inline(always)]
unsafe fn bytes(at: *const u8) -> __m256 {
    // SAFETY: 8 bytes of a header.
    unsafe { _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(at.cast()))) }
}

/// The values of one step of the codes of a block, or of half a block where these have their own.
#[inline(always)]
unsafe fn step<B: Interleave>(unit: *const u8, half: usize, b: usize) -> __m256 {
    // SAFETY: within the header.
    unsafe {
        let of_unit = halves(unit.add(2 * LANES * half));
        let byte = unit.add(64 + 16 * b + LANES * half);
        match B::SCALES {
            Scales::Step => halves(unit.add(32 * b + 2 * LANES * half)),
            Scales::StepBase => halves(unit.add(64 * b + 2 * LANES * half)),
            Scales::SixBit => _mm256_mul_ps(of_unit, bytes(byte)),
            Scales::Halves => {
                let signed = _mm256_cvtepi8_epi32(_mm_loadl_epi64(byte.cast()));
                _mm256_mul_ps(of_unit, _mm256_cvtepi32_ps(signed))
            }
        }
    }
}

/// What is added to the values of a block.
#[inline(always)]
unsafe fn base<B: Interleave>(unit: *const u8, half: usize, b: usize) -> __m256 {
    // SAFETY: within the header.
    unsafe {
        let unit = unit.add(LANES * half);
        match B::SCALES {
            Scales::StepBase => halves(unit.add(64 * b + 32 + LANES * half)),
            _ => {
                let offset = bytes(unit.add(64 + 16 * (B::UNIT_BLOCKS + b)));
                let offset = _mm256_mul_ps(halves(unit.add(32 + LANES * half)), offset);
                _mm256_sub_ps(_mm256_setzero_ps(), offset)
            }
        }
    }
}

/// Adds products times the steps of both factors.
#[inline(always)]
unsafe fn add_scaled<B: Interleave, const H: usize, const R: usize>(
    (unit, half): (*const u8, usize),
    b: usize,
    acts: &Acts<R>,
    products: &Lanes<H, R>,
    sums: &mut [[__m256; R]; H],
) {
    // SAFETY: within the header and the rows.
    unsafe {
        for h in 0..H {
            let step = step::<B>(unit, half + h, b);
            for r in 0..R {
                let scale = _mm256_set1_ps(*acts.scales.add(r * acts.scales_stride));
                sums[h][r] = _mm256_fmadd_ps(
                    _mm256_cvtepi32_ps(products[h][r]),
                    _mm256_mul_ps(step, scale),
                    sums[h][r],
                );
            }
        }
    }
}

/// Adds bases times the weighted sums of the activations.
#[inline(always)]
unsafe fn add_base<B: Interleave, const H: usize, const R: usize>(
    (unit, half): (*const u8, usize),
    b: usize,
    acts: &Acts<R>,
    sums: &mut [[__m256; R]; H],
) {
    // SAFETY: within the header and the rows.
    unsafe {
        for h in 0..H {
            let base = base::<B>(unit, half + h, b);
            for r in 0..R {
                let weighted = _mm256_set1_ps(*acts.weighted_sums.add(r * acts.scales_stride));
                sums[h][r] = _mm256_fmadd_ps(base, weighted, sums[h][r]);
            }
        }
    }
}
