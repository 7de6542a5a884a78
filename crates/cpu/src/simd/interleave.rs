//! From a row of the file to a lane of a group; see [`super::format`] for the result.

use bytemuck::Pod;
use candor_quant::types::{q4_0, q4_1, q4_k, q5_0, q5_1, q5_k, q6_k, q8_0};
use candor_quant::{Half, IntegerBlock};

use super::buffer::LINE_BYTES;
use super::format::{BLOCK, Codes, GROUP_ROWS, Scales, block_bytes, header_bytes};

/// Interleaves one row of the file into a lane of a zeroed group.
pub(super) type PackFn = fn(row: &[u8], group: &mut [u8], lane: usize);

/// A block of a file that can be interleaved.
pub(super) trait Interleave: IntegerBlock {
    const CODES: Codes;
    const SCALES: Scales;
    /// Blocks of 32 elements in a unit.
    const UNIT_BLOCKS: usize;
    /// What makes the codes unsigned.
    const OFFSET: u8;
    /// Bytes of the scales in front of a unit.
    const HEADER_BYTES: usize = header_bytes(Self::SCALES, Self::UNIT_BLOCKS);
    /// Bytes of the codes of a block.
    const BLOCK_BYTES: usize = block_bytes(Self::CODES);
    /// Bytes of a unit.
    const UNIT_BYTES: usize = Self::HEADER_BYTES + Self::UNIT_BLOCKS * Self::BLOCK_BYTES;

    /// The signed codes of one sub-block of 32.
    fn codes(&self, sub_block_idx: usize) -> [i8; BLOCK];

    /// Puts the scales into the lane of a unit's header. `sub_block_idx` says where in the unit
    /// this block begins.
    fn scales(&self, header: &mut [u8], sub_block_idx: usize, lane: usize);
}

/// [`PackFn`] of the float types.
pub(super) fn pack_floats<const BYTES: usize>(row: &[u8], group: &mut [u8], lane: usize) {
    let places = group.chunks_exact_mut(GROUP_ROWS * BYTES);
    for (number, place) in row.chunks_exact(BYTES).zip(places) {
        place[lane * BYTES..][..BYTES].copy_from_slice(number);
    }
}

/// [`PackFn`] of the types of small integers.
pub(super) fn pack_units<B: Interleave>(row: &[u8], group: &mut [u8], lane: usize) {
    let blocks: &[B] = bytemuck::cast_slice(row);
    let sub_blocks = B::ELEMS / BLOCK;
    let units = group.chunks_exact_mut(B::UNIT_BYTES);
    for (blocks, unit) in blocks.chunks(B::UNIT_BLOCKS / sub_blocks).zip(units) {
        let (header, codes) = unit.split_at_mut(B::HEADER_BYTES);
        for (block_idx, block) in blocks.iter().enumerate() {
            block.scales(header, block_idx * sub_blocks, lane);
            for s in 0..sub_blocks {
                let place = (block_idx * sub_blocks + s) * B::BLOCK_BYTES;
                let place = &mut codes[place..][..B::BLOCK_BYTES];
                write_codes::<B>(&block.codes(s), place, lane);
            }
        }
    }
}

/// The codes of 32 elements into their lane of a block.
fn write_codes<B: Interleave>(codes: &[i8; BLOCK], place: &mut [u8], lane: usize) {
    let codes = codes.map(|c| (c as u8).wrapping_add(B::OFFSET));
    let mut dword = |line: usize, bytes: [u8; 4]| {
        place[line * LINE_BYTES + lane * 4..][..4].copy_from_slice(&bytes);
    };
    if B::CODES == Codes::Bytes {
        for (j, four) in codes.chunks_exact(4).enumerate() {
            dword(j, [four[0], four[1], four[2], four[3]]);
        }
        return;
    }
    for j in 0..4 {
        dword(
            j,
            std::array::from_fn(|b| (codes[4 * j + b] & 15) | (codes[16 + 4 * j + b] << 4)),
        );
    }
    match B::CODES {
        Codes::FiveBits => dword(
            4,
            std::array::from_fn(|b| (0..8).fold(0, |h, j| h | (codes[4 * j + b] >> 4 & 1) << j)),
        ),
        Codes::SixBits => {
            for half in 0..2 {
                let high = |b: usize| {
                    (0..4).fold(0, |h, j| {
                        h | (codes[16 * half + 4 * j + b] >> 4 & 3) << (2 * j)
                    })
                };
                dword(4 + half, std::array::from_fn(high));
            }
        }
        Codes::Nibbles | Codes::Bytes => {}
    }
}

fn put<T: Pod>(header: &mut [u8], at: usize, value: T) {
    let bytes = bytemuck::bytes_of(&value);
    header[at..][..bytes.len()].copy_from_slice(bytes);
}

/// Types with one scale, and maybe a base, for each block of 32.
macro_rules! interleave_plain {
    ($block:ty, $codes:expr, $offset:expr, $of:expr) => {
        impl Interleave for $block {
            const CODES: Codes = $codes;
            const SCALES: Scales = Scales::Step;
            const UNIT_BLOCKS: usize = 2;
            const OFFSET: u8 = $offset;
            fn codes(&self, _: usize) -> [i8; BLOCK] {
                $of(self)
            }
            fn scales(&self, header: &mut [u8], sub_block_idx: usize, lane: usize) {
                put(header, sub_block_idx * 32 + lane * 2, self.d);
            }
        }
    };
    ($block:ty, $codes:expr) => {
        impl Interleave for $block {
            const CODES: Codes = $codes;
            const SCALES: Scales = Scales::StepBase;
            const UNIT_BLOCKS: usize = 1;
            const OFFSET: u8 = 0;
            fn codes(&self, _: usize) -> [i8; BLOCK] {
                <$block>::codes(self)
            }
            fn scales(&self, header: &mut [u8], _: usize, lane: usize) {
                put(header, lane * 2, self.d);
                put(header, 32 + lane * 2, self.m);
            }
        }
    };
}

interleave_plain!(q4_0::Q4_0, Codes::Nibbles, 8, q4_0::Q4_0::codes);
interleave_plain!(q5_0::Q5_0, Codes::FiveBits, 16, q5_0::Q5_0::codes);
interleave_plain!(q8_0::Q8_0, Codes::Bytes, 128, |block: &q8_0::Q8_0| block.qs);
interleave_plain!(q4_1::Q4_1, Codes::Nibbles);
interleave_plain!(q5_1::Q5_1, Codes::FiveBits);

/// Types of 256 elements with six-bit scales and offsets.
macro_rules! interleave_six_bit {
    ($block:ty, $codes:expr) => {
        impl Interleave for $block {
            const CODES: Codes = $codes;
            const SCALES: Scales = Scales::SixBit;
            const UNIT_BLOCKS: usize = 8;
            const OFFSET: u8 = 0;
            fn codes(&self, sub_block_idx: usize) -> [i8; BLOCK] {
                <$block>::codes(self, sub_block_idx)
            }
            fn scales(&self, header: &mut [u8], _: usize, lane: usize) {
                put::<Half>(header, lane * 2, self.d);
                put::<Half>(header, 32 + lane * 2, self.dmin);
                let (scales, offsets) = self.scales_and_offsets();
                for s in 0..8 {
                    header[64 + s * GROUP_ROWS + lane] = scales[s];
                    header[64 + (8 + s) * GROUP_ROWS + lane] = offsets[s];
                }
            }
        }
    };
}

interleave_six_bit!(q4_k::Q4K, Codes::Nibbles);
interleave_six_bit!(q5_k::Q5K, Codes::FiveBits);

impl Interleave for q6_k::Q6K {
    const CODES: Codes = Codes::SixBits;
    const SCALES: Scales = Scales::Halves;
    const UNIT_BLOCKS: usize = 8;
    const OFFSET: u8 = 32;

    fn codes(&self, sub_block_idx: usize) -> [i8; BLOCK] {
        q6_k::Q6K::codes(self, sub_block_idx)
    }

    fn scales(&self, header: &mut [u8], _: usize, lane: usize) {
        put::<Half>(header, lane * 2, self.d);
        for (h, scale) in self.scales.iter().enumerate() {
            header[64 + h * GROUP_ROWS + lane] = *scale as u8;
        }
    }
}
