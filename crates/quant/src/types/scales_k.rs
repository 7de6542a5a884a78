//! The twelve bytes in which Q4_K and Q5_K keep eight scales and eight offsets of
//! six bits each.
//!
//! The low six bits of bytes 0 to 3 are scales 0 to 3, those of bytes 4 to 7 are
//! offsets 0 to 3. Bytes 8 to 11 hold the low nibbles of scales (low) and offsets
//! (high) 4 to 7, whose upper two bits fill the upper bits of bytes 0 to 7.

use crate::half_bits::Half;

use super::{code, range_with_zero};

/// Scale and offset of each sub-block of 32.
pub(super) fn unpack(bytes: &[u8; 12]) -> ([u8; 8], [u8; 8]) {
    let mut scales = [0; 8];
    let mut offsets = [0; 8];
    for j in 0..4 {
        scales[j] = bytes[j] & 63;
        offsets[j] = bytes[j + 4] & 63;
        scales[j + 4] = (bytes[j + 8] & 15) | ((bytes[j] >> 6) << 4);
        offsets[j + 4] = (bytes[j + 8] >> 4) | ((bytes[j + 4] >> 6) << 4);
    }
    (scales, offsets)
}

/// The reverse of [`unpack`].
pub(super) fn pack(scales: &[u8; 8], offsets: &[u8; 8]) -> [u8; 12] {
    let mut bytes = [0; 12];
    for j in 0..4 {
        bytes[j] = scales[j] | ((scales[j + 4] >> 4) << 6);
        bytes[j + 4] = offsets[j] | ((offsets[j + 4] >> 4) << 6);
        bytes[j + 8] = (scales[j + 4] & 15) | ((offsets[j + 4] & 15) << 4);
    }
    bytes
}

/// What Q4_K and Q5_K have in common when they pack.
pub(super) struct Packed {
    pub(super) d: Half,
    pub(super) dmin: Half,
    pub(super) scales: [u8; 12],
    pub(super) codes: [u8; 256],
}

/// Packs 256 values with codes from 0 to `code_max`.
pub(super) fn quantize(values: &[f32], code_max: f32) -> Packed {
    let mut steps = [0.0; 8];
    let mut lows = [0.0; 8];
    for (s, values) in values.chunks_exact(32).enumerate() {
        let (low, high) = range_with_zero(values);
        steps[s] = (high - low) / code_max;
        lows[s] = -low;
    }
    let (d, scales) = six_bits(&steps);
    let (dmin, offsets) = six_bits(&lows);
    let mut codes = [0; 256];
    for (i, (out, value)) in codes.iter_mut().zip(values).enumerate() {
        let step = d.to_f32() * f32::from(scales[i / 32]);
        let offset = dmin.to_f32() * f32::from(offsets[i / 32]);
        *out = code(value + offset, step, 0.0, code_max) as u8;
    }
    Packed {
        d,
        dmin,
        scales: pack(&scales, &offsets),
        codes,
    }
}

/// Non-negative numbers as six-bit multiples of one half-precision number.
fn six_bits(numbers: &[f32; 8]) -> (Half, [u8; 8]) {
    let unit = Half::from_f32(range_with_zero(numbers).1 / 63.0);
    (
        unit,
        numbers.map(|n| code(n, unit.to_f32(), 0.0, 63.0) as u8),
    )
}
