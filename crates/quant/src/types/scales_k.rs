//! What Q4_K and Q5_K have in common: their heads, and four bits of their codes.
//!
//! Twelve bytes keep eight scales and eight offsets of six bits each.
//! The low six bits of bytes 0 to 3 are scales 0 to 3, those of bytes 4 to 7 are
//! offsets 0 to 3. Bytes 8 to 11 hold the low nibbles of scales (low) and offsets
//! (high) 4 to 7, whose upper two bits fill the upper bits of bytes 0 to 7.

use bytemuck::{Pod, Zeroable};

use super::{code, range_with_zero};
use crate::activation::{ActivationBlock, code_dot};
use crate::half_bits::Half;

/// How the codes of 256 values are scaled and moved, 32 at a time.
/// value = (d * scale) * code - dmin * offset.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Head {
    /// The unit of the scales.
    pub d: Half,
    /// The unit of the offsets.
    pub dmin: Half,
    /// Eight scales and eight offsets of six bits; see [`Head::scales_and_offsets`].
    pub scales: [u8; 12],
}

impl Head {
    /// Scale and offset of each sub-block of 32, 0 to 63.
    pub fn scales_and_offsets(&self) -> ([u8; 8], [u8; 8]) {
        unpack(&self.scales)
    }

    /// The values of a block whose sub-blocks have these codes.
    pub(super) fn dequantize(&self, codes: impl Fn(usize) -> [i8; 32], out: &mut [f32]) {
        let (d, dmin) = (self.d.to_f32(), self.dmin.to_f32());
        let (scales, offsets) = self.scales_and_offsets();
        for (s, out) in out.chunks_exact_mut(32).enumerate() {
            let step = d * f32::from(scales[s]);
            let offset = dmin * f32::from(offsets[s]);
            for (value, code) in out.iter_mut().zip(codes(s)) {
                *value = step * f32::from(code) - offset;
            }
        }
    }

    /// d * sum(act_scale * (scale * products)) - dmin * sum(act_scale * (offset * act_sum)),
    /// both sums over the eight sub-blocks in order; what is in the inner brackets
    /// is an exact integer (below 2^24, so it is exact in `f32` too).
    pub(super) fn dot(
        &self,
        codes: impl Fn(usize) -> [i8; 32],
        activations: &[ActivationBlock],
    ) -> f32 {
        let (scales, offsets) = self.scales_and_offsets();
        let mut products = 0.0;
        let mut shifts = 0.0;
        for (s, a) in activations.iter().enumerate() {
            let scaled = i32::from(scales[s]) * code_dot(&codes(s), &a.codes);
            products += a.scale * scaled as f32;
            shifts += a.scale * (i32::from(offsets[s]) * a.sum) as f32;
        }
        self.d.to_f32() * products - self.dmin.to_f32() * shifts
    }
}

/// The low four bits of a code: each 32 bytes hold a sub-block in the low nibbles and the next
/// one in the high ones.
pub(super) fn nibble(qs: &[u8; 128], sub_block_idx: usize, i: usize) -> u8 {
    (qs[sub_block_idx / 2 * 32 + i] >> (sub_block_idx % 2 * 4)) & 15
}

/// The reverse of [`nibble`] for all codes.
pub(super) fn nibbles(codes: &[u8; 256]) -> [u8; 128] {
    let mut qs = [0; 128];
    for (i, code) in codes.iter().enumerate() {
        qs[i / 64 * 32 + i % 32] |= (code & 15) << (i / 32 % 2 * 4);
    }
    qs
}

/// Scales and offsets from their bytes.
fn unpack(bytes: &[u8; 12]) -> ([u8; 8], [u8; 8]) {
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
fn pack(scales: &[u8; 8], offsets: &[u8; 8]) -> [u8; 12] {
    let mut bytes = [0; 12];
    for j in 0..4 {
        bytes[j] = scales[j] | ((scales[j + 4] >> 4) << 6);
        bytes[j + 4] = offsets[j] | ((offsets[j + 4] >> 4) << 6);
        bytes[j + 8] = (scales[j + 4] & 15) | ((offsets[j + 4] & 15) << 4);
    }
    bytes
}

/// Packs 256 values with codes from 0 to `code_max`.
pub(super) fn quantize(values: &[f32], code_max: f32) -> (Head, [u8; 256]) {
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
    let scales = pack(&scales, &offsets);
    (Head { d, dmin, scales }, codes)
}

/// Non-negative numbers as six-bit multiples of one half-precision number.
fn six_bits(numbers: &[f32; 8]) -> (Half, [u8; 8]) {
    let unit = Half::from_f32(range_with_zero(numbers).1 / 63.0);
    (
        unit,
        numbers.map(|n| code(n, unit.to_f32(), 0.0, 63.0) as u8),
    )
}
