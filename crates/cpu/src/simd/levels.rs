//! How the types whose codes are a few levels are interleaved: the codes as numbers of levels, the
//! steps as what they are multiples of.

use candor_quant::types::{
    Stepped, iq1_m::Iq1M, iq1_s::Iq1S, iq2_s::Iq2S, iq2_xs::Iq2Xs, iq2_xxs::Iq2Xxs, iq3_s::Iq3S,
    iq3_xxs::Iq3Xxs, iq4_nl, iq4_nl::Iq4Nl, iq4_xs::Iq4Xs, mxfp4, mxfp4::Mxfp4, nvfp4::Nvfp4,
    q3_k::Q3K, tq1_0::Tq1_0, tq2_0::Tq2_0,
};
use half::{bf16, f16};

use super::format::{BLOCK, Codes, GROUP_ROWS, LEVELS_MAX, Scales};
use super::interleave::{DWORDS, Interleave, put};

/// A type whose codes are one of some levels.
pub(super) trait Levels: Stepped {
    /// What a code can be.
    const LEVELS: &'static [i8];
    /// Wide enough for the number of a level.
    const CODES: Codes;
    /// One of those without a base.
    const SCALES: Scales;
}

impl<T: Levels> Interleave for T {
    const CODES: Codes = <T as Levels>::CODES;
    const SCALES: Scales = <T as Levels>::SCALES;
    // The scales of two blocks fill a cache line.
    const UNIT_BLOCKS: usize = if <T as Stepped>::ELEMS == 256 { 8 } else { 2 };
    const OFFSET: u8 = bounds(T::LEVELS).0.unsigned_abs();
    const LEVELS: Option<[u8; LEVELS_MAX]> = table(T::LEVELS);
    const CODE_MAX: u8 = bounds(T::LEVELS).1.abs_diff(bounds(T::LEVELS).0);

    #[inline(always)]
    fn dwords(&self, sub_block_idx: usize) -> [u32; DWORDS] {
        let numbers = const { &numbers(T::LEVELS) };
        let codes = self.codes(sub_block_idx);
        std::array::from_fn(|j| {
            let number = |i: usize| numbers[usize::from(codes[4 * j + i] as u8)];
            u32::from_le_bytes([number(0), number(1), number(2), number(3)])
        })
    }

    fn scales(&self, header: &mut [u8], sub_block_idx: usize, lane: usize) {
        let unit = self.unit();
        let half_float = lane * 2;
        let mut multiples = [[0; 2]; 8];
        let multiples = &mut multiples[..<T as Stepped>::ELEMS / BLOCK];
        for (s, multiples) in multiples.iter_mut().enumerate() {
            *multiples = self.multiples(s);
        }
        // None of these conversions rounds: a unit is a number of the kind that is stored.
        match <T as Levels>::SCALES {
            Scales::Step => put(
                header,
                sub_block_idx * 32 + half_float,
                f16::from_f32(unit).to_bits(),
            ),
            Scales::BrainStep => put(
                header,
                sub_block_idx * 32 + half_float,
                bf16::from_f32(unit).to_bits(),
            ),
            Scales::HalfSteps => {
                for (h, multiple) in multiples.iter().flatten().enumerate() {
                    let step = f16::from_f32(unit * *multiple as f32);
                    put(
                        header,
                        sub_block_idx * 64 + h * 32 + half_float,
                        step.to_bits(),
                    );
                }
            }
            Scales::Multiples => {
                put(header, lane * 4, unit);
                for (s, [multiple, _]) in multiples.iter().enumerate() {
                    header[64 + s * GROUP_ROWS + lane] = *multiple as i8 as u8;
                }
            }
            _ => {
                put(header, lane * 4, unit);
                for (h, multiple) in multiples.iter().flatten().enumerate() {
                    header[64 + h * GROUP_ROWS + lane] = *multiple as i8 as u8;
                }
            }
        }
    }
}

/// The least and the greatest level.
const fn bounds(levels: &[i8]) -> (i8, i8) {
    let mut bounds = (levels[0], levels[0]);
    let mut i = 1;
    while i < levels.len() {
        if levels[i] < bounds.0 {
            bounds.0 = levels[i];
        }
        if levels[i] > bounds.1 {
            bounds.1 = levels[i];
        }
        i += 1;
    }
    bounds
}

/// The levels with the offset that makes them unsigned; `None` if they are their own numbers.
const fn table(levels: &[i8]) -> Option<[u8; LEVELS_MAX]> {
    let mut table = [0; LEVELS_MAX];
    let mut is_identity = true;
    let mut i = 0;
    while i < levels.len() {
        table[i] = levels[i].abs_diff(bounds(levels).0);
        is_identity &= table[i] as usize == i;
        i += 1;
    }
    if is_identity { None } else { Some(table) }
}

/// The number of each level, by the bits of the level.
const fn numbers(levels: &[i8]) -> [u8; 256] {
    let mut numbers = [0; 256];
    let mut i = 0;
    while i < levels.len() {
        numbers[levels[i] as u8 as usize] = i as u8;
        i += 1;
    }
    numbers
}

/// Magnitudes out of the lists of the types, with either sign.
const IQ1: &[i8] = &[-9, -7, -1, 1, 7, 9];
const IQ2: &[i8] = &[8, 25, 43, -8, -25, -43];
const IQ3_XXS: &[i8] = &[
    4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62,
];
const IQ3_S: &[i8] = &[1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15];
const TERNARY: &[i8] = &[-1, 0, 1];
/// The two bits of a code can say one more.
const TERNARY_IN_TWO_BITS: &[i8] = &[-1, 0, 1, 2];
const THREE_BITS: &[i8] = &[-4, -3, -2, -1, 0, 1, 2, 3];

macro_rules! levels {
    ($($block:ty: $levels:expr, $codes:ident, $scales:ident;)*) => { $(
        impl Levels for $block {
            const LEVELS: &'static [i8] = $levels;
            const CODES: Codes = Codes::$codes;
            const SCALES: Scales = Scales::$scales;
        }
    )* };
}

levels! {
    Q3K: THREE_BITS, ThreeBits, HalfMultiples;
    Iq4Nl: &iq4_nl::LEVELS, Nibbles, Step;
    Iq4Xs: &iq4_nl::LEVELS, Nibbles, Multiples;
    Mxfp4: &mxfp4::LEVELS, Nibbles, BrainStep;
    Nvfp4: &mxfp4::LEVELS, Nibbles, HalfSteps;
    Iq2Xxs: IQ2, ThreeBits, Multiples;
    Iq2Xs: IQ2, ThreeBits, HalfMultiples;
    Iq2S: IQ2, ThreeBits, HalfMultiples;
    Iq3Xxs: IQ3_XXS, Nibbles, Multiples;
    Iq3S: IQ3_S, Nibbles, Multiples;
    Iq1S: IQ1, ThreeBits, Multiples;
    Iq1M: IQ1, ThreeBits, HalfMultiples;
    Tq1_0: TERNARY, TwoBits, Multiples;
    Tq2_0: TERNARY_IN_TWO_BITS, TwoBits, Multiples;
}
