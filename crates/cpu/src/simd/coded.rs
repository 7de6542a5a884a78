//! Keys and values in 8 bits: written row by row, and unfolded to the half-precision pages that
//! the attention kernels read.
//!
//! Each head of a row is cut into blocks of 32 (the last may be shorter) of codes from -127 to 127
//! with a half-precision scale. The codes lie where the numbers of a half-precision page lie, and
//! the scales behind them in the same order, so that unfolding walks both from front to back.
//! What is unfolded depends on the row alone, and so does what is computed from it.

use candor_backend::KvType;
use half::f16;

use super::attention::{KV_PAGE, key_place, page_numbers};
use super::kernels::Kernels;

/// Elements that share a scale.
pub(super) const BLOCK: usize = KvType::BLOCK;

/// The largest code. The other sign reaches no further, so that the step is the same on both sides.
const CODE_MAX: f32 = 127.0;

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

/// What is to be unfolded, and where to.
pub(super) struct Unfold<'a> {
    pub(super) page: CodedHead<'a>,
    pub(super) head_dim: usize,
    /// How many, from the first of the page on.
    pub(super) positions: usize,
    pub(super) keys: &'a mut [u16],
    pub(super) values: &'a mut [u16],
}

impl Kernels {
    /// Unfolds the first `positions` of a page of heads of `head_dim` to what
    /// [`Kernels::attend`] reads. What the rest of `keys` and `values` holds then is not said.
    ///
    /// Panics if the shapes do not belong together.
    pub(crate) fn unfold(
        &self,
        page: CodedHead<'_>,
        (head_dim, positions): (usize, usize),
        keys: &mut [u16],
        values: &mut [u16],
    ) {
        let (numbers, bytes) = (page_numbers(head_dim), KvType::Q8_0.head_bytes(head_dim));
        assert!(positions <= KV_PAGE, "positions of a page");
        assert!(page.keys.len() == KV_PAGE * bytes && page.values.len() == KV_PAGE * bytes);
        assert!(keys.len() == numbers && values.len() == numbers);
        let mut task = Unfold {
            page,
            head_dim,
            positions,
            keys,
            values,
        };
        // SAFETY: the machine has the instructions; the shapes were compared.
        unsafe { (self.unfold)(&mut task) }
    }
}

/// # Safety
/// None is needed; it is as unsafe as the others of the table.
pub(super) unsafe fn portable(task: &mut Unfold<'_>) {
    let (n, blocks) = (task.head_dim, task.head_dim.div_ceil(BLOCK));
    let number = |page: &[u8], place: usize, scale_place: usize| {
        let at = page_numbers(n) + 2 * scale_place;
        let scale = f16::from_le_bytes([page[at], page[at + 1]]).to_f32();
        f16::from_f32(f32::from(page[place].cast_signed()) * scale).to_bits()
    };
    for position in 0..task.positions {
        for element in 0..n {
            let (block, key) = (element / BLOCK, key_place(n, position, element));
            let scale = key_place(blocks, position, block);
            task.keys[key] = number(task.page.keys, key, scale);
            let (value, scale) = (position * n + element, position * blocks + block);
            task.values[value] = number(task.page.values, value, scale);
        }
    }
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
        let bytes = KV_PAGE * KvType::Q8_0.head_bytes(head_dim);
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
        kernels.unfold(page, (head_dim, positions), keys, values);
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
        let bytes = KV_PAGE * KvType::Q8_0.head_bytes(head_dim);
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
            kernels.unfold(page, (head_dim, 1), &mut keys, &mut values);
            let found = [values[3], values[40]].map(|bits| f16::from_bits(bits).to_f32());
            for (found, shown) in found.iter().zip(shown) {
                let same = found.to_bits() == shown.to_bits() || found.is_nan() && shown.is_nan();
                assert!(same, "{bad}: {found} {shown}");
            }
        }
    }
}
