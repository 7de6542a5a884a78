//! Keys and values in 8 bits: written row by row, and unfolded to the half-precision pages that
//! the attention kernels read.
//!
//! Each head of a row is cut into blocks of 32 (the last may be shorter) of codes from -127 to 127
//! with a half-precision scale. The codes lie where the numbers of a half-precision page lie, and
//! the scales behind them in the same order, so that unfolding walks both from front to back.
//! What is unfolded depends on the row alone, and so does what is computed from it.

use half::f16;

use super::attention::{KEY_LANES, KV_PAGE, key_place, page_numbers};
use super::kernels::Kernels;

/// Elements that share a scale.
const BLOCK: usize = candor_backend::KvType::BLOCK;

/// The largest code. The other sign reaches no further, so that the step is the same on both sides.
const CODE_MAX: f32 = 127.0;

/// Numbers that are turned into half precision in one call.
const AT_ONCE: usize = BLOCK * KEY_LANES;

/// A page of one key head in 8 bits.
#[derive(Clone, Copy)]
pub(crate) struct CodedHead<'a> {
    /// Written by [`append_coded`].
    pub(crate) keys: &'a [u8],
    /// Written by [`append_coded`].
    pub(crate) values: &'a [u8],
}

/// Puts the key and the value of one position into the pages of their head.
pub(crate) fn append_coded(
    position: usize,
    key: &[f32],
    value: &[f32],
    (keys, values): (&mut [u8], &mut [u8]),
) {
    let (head_dim, in_page) = (key.len(), position % KV_PAGE);
    let blocks = head_dim.div_ceil(BLOCK);
    let place = |element| key_place(head_dim, in_page, element);
    let scale_place = |block| key_place(blocks, in_page, block);
    encode(key, keys, place, scale_place);
    let place = |element| in_page * head_dim + element;
    encode(value, values, place, |block| in_page * blocks + block);
}

/// Rounds a head of a row; the places are those of its elements and of its scales.
fn encode(
    row: &[f32],
    page: &mut [u8],
    place: impl Fn(usize) -> usize,
    scale_place: impl Fn(usize) -> usize,
) {
    let (codes, scales) = page.split_at_mut(page_numbers(row.len()));
    for (block_idx, block) in row.chunks(BLOCK).enumerate() {
        let largest = block.iter().fold(0.0f32, |largest, v| largest.max(v.abs()));
        // What is no number makes the whole block none, instead of vanishing in its codes.
        let scale = match block.iter().all(|v| v.is_finite()) {
            true => f16::from_f32(largest / CODE_MAX),
            false => f16::NAN,
        };
        let at = 2 * scale_place(block_idx);
        scales[at..at + 2].copy_from_slice(&scale.to_le_bytes());
        let step = scale.to_f32();
        for (i, v) in block.iter().enumerate() {
            // A scale that was rounded to nothing leaves nothing: the quotient is then no number,
            // or infinite, and stays within the codes.
            let code = (v / step).round().clamp(-CODE_MAX, CODE_MAX) as i8;
            codes[place(block_idx * BLOCK + i)] = code.cast_unsigned();
        }
    }
}

impl Kernels {
    /// Unfolds the first `positions` of a page of heads of `head_dim` to what
    /// [`Kernels::attend`] reads. What the rest of `keys` and `values` holds then is not said.
    pub(crate) fn unfold(
        &self,
        page: &CodedHead<'_>,
        (head_dim, positions): (usize, usize),
        keys: &mut [u16],
        values: &mut [u16],
    ) {
        assert!(positions <= KV_PAGE && keys.len() == page_numbers(head_dim));
        let groups = positions.div_ceil(KEY_LANES);
        let (codes, scales) = page.keys.split_at(page_numbers(head_dim));
        let blocks = head_dim.div_ceil(BLOCK);
        let group_scales = scales.chunks_exact(2 * KEY_LANES * blocks);
        let group_codes = codes.chunks_exact(KEY_LANES * head_dim);
        let group_keys = keys.chunks_exact_mut(KEY_LANES * head_dim);
        for ((codes, scales), keys) in group_codes.zip(group_scales).zip(group_keys).take(groups) {
            let scales = scales.as_chunks::<{ 2 * KEY_LANES }>().0;
            let codes = codes.chunks(AT_ONCE).zip(keys.chunks_mut(AT_ONCE));
            for ((codes, keys), scales) in codes.zip(scales) {
                self.unfold_keys(codes, scales, keys);
            }
        }
        let (codes, scales) = page.values.split_at(page_numbers(head_dim));
        let rows = codes
            .chunks_exact(head_dim)
            .zip(scales.chunks_exact(2 * blocks));
        for ((codes, scales), values) in rows.zip(values.chunks_exact_mut(head_dim)).take(positions)
        {
            self.unfold_row(codes, scales, values);
        }
    }

    /// A block of elements of 16 keys; each has its scale.
    fn unfold_keys(&self, codes: &[u8], scales: &[u8; 2 * KEY_LANES], keys: &mut [u16]) {
        let scales: [f32; KEY_LANES] = std::array::from_fn(|i| half(scales, i));
        let mut floats = [0.0f32; AT_ONCE];
        let lanes = floats.as_chunks_mut::<KEY_LANES>().0;
        for (codes, floats) in codes.as_chunks::<KEY_LANES>().0.iter().zip(lanes) {
            for ((code, scale), float) in codes.iter().zip(&scales).zip(floats) {
                *float = f32::from(code.cast_signed()) * scale;
            }
        }
        self.half_bits(&floats[..codes.len()], keys);
    }

    /// A value, block by block.
    fn unfold_row(&self, codes: &[u8], scales: &[u8], values: &mut [u16]) {
        let mut floats = [0.0f32; AT_ONCE];
        let per_call = AT_ONCE / BLOCK;
        let parts = codes.chunks(AT_ONCE).zip(values.chunks_mut(AT_ONCE));
        for ((codes, values), scales) in parts.zip(scales.chunks(2 * per_call)) {
            let blocks = codes.chunks(BLOCK).zip(floats.chunks_mut(BLOCK));
            for (block_idx, (codes, floats)) in blocks.enumerate() {
                let scale = half(scales, block_idx);
                for (code, float) in codes.iter().zip(floats) {
                    *float = f32::from(code.cast_signed()) * scale;
                }
            }
            self.half_bits(&floats[..codes.len()], values);
        }
    }
}

/// A scale.
fn half(bytes: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]).to_f32()
}

#[cfg(test)]
mod tests {
    use super::super::check::numbers;
    use super::super::kernels::tables;
    use super::*;

    /// The page of some rows, unfolded, against the rows themselves.
    fn check(kernels: &Kernels, head_dim: usize, positions: usize) {
        let rows = |seed| -> Vec<f32> {
            let rows = numbers(positions * head_dim, seed);
            rows.iter().map(|v| v * 20.0).collect()
        };
        let (key_rows, value_rows) = (rows(31), rows(32));
        let bytes = KV_PAGE * candor_backend::KvType::Q8_0.head_bytes(head_dim);
        let (mut keys, mut values) = (vec![0; bytes], vec![0; bytes]);
        for position in 0..positions {
            let row = position * head_dim..(position + 1) * head_dim;
            let pages = (&mut keys[..], &mut values[..]);
            append_coded(position, &key_rows[row.clone()], &value_rows[row], pages);
        }
        let page = CodedHead {
            keys: &keys,
            values: &values,
        };
        let mut unfolded = [
            vec![0; page_numbers(head_dim)],
            vec![0; page_numbers(head_dim)],
        ];
        let [keys, values] = &mut unfolded;
        kernels.unfold(&page, (head_dim, positions), keys, values);
        let near = |row: &[f32], found: &dyn Fn(usize) -> u16, what: &str| {
            for (block_idx, block) in row.chunks(BLOCK).enumerate() {
                let largest = block.iter().fold(0.0f32, |a, b| a.max(b.abs()));
                // Half a step, and the rounding of the scale and of the number.
                let limit = largest / CODE_MAX * 0.5 + largest * 2.0 / 1024.0;
                for (i, v) in block.iter().enumerate() {
                    let found = f16::from_bits(found(block_idx * BLOCK + i)).to_f32();
                    assert!((found - v).abs() <= limit, "{what} {head_dim}: {found} {v}");
                }
            }
        };
        for position in 0..positions {
            let row = position * head_dim..(position + 1) * head_dim;
            let key = |d| unfolded[0][key_place(head_dim, position, d)];
            near(&key_rows[row.clone()], &key, "key");
            let value = |d| unfolded[1][position * head_dim + d];
            near(&value_rows[row], &value, "value");
        }
    }

    #[test]
    fn what_is_unfolded_is_within_half_a_step() {
        for (kernels, _) in tables().filter(|(_, present)| *present) {
            for (head_dim, positions) in [(32, 256), (64, 17), (40, 33), (8, 5), (1040, 20)] {
                check(kernels, head_dim, positions);
            }
        }
    }

    #[test]
    fn what_is_no_number_stays_none_and_nothing_stays_nothing() {
        let head_dim = 64;
        let bytes = KV_PAGE * candor_backend::KvType::Q8_0.head_bytes(head_dim);
        for (bad, shown) in [
            (f32::NAN, [f32::NAN, 0.0]),
            (f32::INFINITY, [f32::NAN, 0.0]),
            (0.0, [0.0, 0.0]),
            (1e-30, [0.0, 0.0]),
        ] {
            let mut row = vec![0.0; head_dim];
            row[3] = bad;
            let (mut keys, mut values) = (vec![0; bytes], vec![0; bytes]);
            append_coded(0, &row, &row, (&mut keys, &mut values));
            let page = CodedHead {
                keys: &keys,
                values: &values,
            };
            let (mut keys, mut values) = (
                vec![0; page_numbers(head_dim)],
                vec![0; page_numbers(head_dim)],
            );
            let kernels = tables().last().expect("the portable ones").0;
            kernels.unfold(&page, (head_dim, 1), &mut keys, &mut values);
            let found = [values[3], values[40]].map(|bits| f16::from_bits(bits).to_f32());
            for (found, shown) in found.iter().zip(shown) {
                let same = found.to_bits() == shown.to_bits() || found.is_nan() && shown.is_nan();
                assert!(same, "{bad}: {found} {shown}");
            }
        }
    }
}
