//! What the types with codebooks have in common: vectors, signs, and a plain search.

use super::{code, largest_signed};
use crate::half_bits::Half;

/// Eight signs from their seven stored bits: the number of negative ones is even.
pub(super) fn even_signs(bits: u32) -> u8 {
    let seven = (bits & 127) as u8;
    seven | ((seven.count_ones() as u8 & 1) << 7)
}

/// Codes of 32 values: `vector` i of N magnitudes, with the signs of each eight.
pub(super) fn signed<const N: usize>(
    vector: impl Fn(usize) -> &'static [i8; N],
    signs: impl Fn(usize) -> u8,
) -> [i8; 32] {
    let mut codes = [0; 32];
    for (v, codes) in codes.chunks_exact_mut(N).enumerate() {
        let signs = signs(v * N / 8) >> (v * N % 8);
        for (i, (code, magnitude)) in codes.iter_mut().zip(vector(v)).enumerate() {
            let is_negative = (signs >> i) & 1 == 1;
            *code = if is_negative { -magnitude } else { *magnitude };
        }
    }
    codes
}

/// The vector nearest to some values in units of `step`.
pub(super) fn nearest<const N: usize>(grid: &[[i8; N]], values: [f32; N], step: f32) -> usize {
    if step == 0.0 {
        return 0;
    }
    let wanted = values.map(|value| value / step);
    let distance = |vector: &[i8; N]| -> f32 {
        let pairs = vector.iter().zip(wanted);
        pairs.map(|(v, w)| (f32::from(*v) - w).powi(2)).sum()
    };
    let mut best = (0, f32::INFINITY);
    for (i, vector) in grid.iter().enumerate() {
        let found = distance(vector);
        if found < best.1 {
            best = (i, found);
        }
    }
    best.0
}

/// Which of eight values are negative, a bit each.
pub(super) fn signs_of(values: &[f32]) -> u8 {
    let bits = values.iter().enumerate();
    bits.fold(0, |all, (i, value)| all | (u8::from(*value < 0.0) << i))
}

/// [`signs_of`] with an even number of negative ones: if need be, the smallest value changes
/// its sign.
pub(super) fn even_signs_of(values: &[f32]) -> u8 {
    let signs = signs_of(values);
    if signs.count_ones().is_multiple_of(2) {
        return signs;
    }
    let smallest = values.iter().enumerate();
    let smallest = smallest.min_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
    signs ^ (1 << smallest.map_or(0, |(i, _)| i))
}

/// The steps of parts of a block: odd multiples of one number of the block. Step k is
/// `d * unit * (2 * k + 1)` for k up to `k_max`.
pub(super) struct Ladder {
    pub(super) unit: f32,
    pub(super) k_max: u8,
    /// The largest magnitude of a code.
    pub(super) level_max: f32,
}

/// Of the IQ1 types, without the shift of their codes: one unit, and two more for each scale.
pub(super) const IQ1_LADDER: Ladder = Ladder {
    unit: 1.0,
    k_max: 7,
    level_max: 1.0,
};

/// Of the IQ2 types: a quarter of half a unit, and a quarter of a unit more for each scale.
pub(super) const IQ2_LADDER: Ladder = Ladder {
    unit: 0.125,
    k_max: 15,
    level_max: 43.0,
};

/// 2 * k + 1.
pub(super) fn odd(k: impl Into<i32>) -> i32 {
    2 * k.into() + 1
}

/// What the scales of two parts, a nibble each, make of the unit.
pub(super) fn odd_nibbles(scales: u8) -> [i32; 2] {
    [scales & 15, scales >> 4].map(odd)
}

impl Ladder {
    /// The number of a block with which the largest of its values becomes `level_max`.
    pub(super) fn d(&self, values: &[f32]) -> Half {
        let most = self.unit * odd(self.k_max) as f32;
        Half::from_f32(largest_signed(values).abs() / (self.level_max * most))
    }

    /// The k with which the largest of these values becomes about `level_max`.
    pub(super) fn multiple(&self, values: &[f32], d: Half) -> u8 {
        let step = largest_signed(values).abs() / self.level_max;
        let unit = d.to_f32() * self.unit;
        code(step - unit, 2.0 * unit, 0.0, f32::from(self.k_max)) as u8
    }

    /// Step k.
    pub(super) fn step(&self, d: Half, k: u8) -> f32 {
        d.to_f32() * (self.unit * odd(k) as f32)
    }
}
