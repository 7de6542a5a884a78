//! How the weights of each storage type lie in memory once they are interleaved.
//!
//! A matrix is cut into groups of 16 output rows. Each row of a group has a lane, and everything
//! is stored lane beside lane, K (the input elements) in order, so that a vector register holds
//! the same elements of 16 rows and one row's sum never depends on what is computed beside it.
//! All instruction sets share this one form.
//!
//! Types of small integers: a group is a run of units, a unit is a header with the scales of its
//! blocks, then the codes of its blocks; a block is 32 elements. Codes are unsigned (`offset`
//! was added) and are stored as dwords of four elements a lane:
//!
//! * nibbles: 4 x 64 bytes; the low nibbles of dword j are elements 4j.., the high ones 16+4j..
//! * five bits: nibbles, then 64 bytes whose bit j belongs to dword j (elements 4j..)
//! * six bits: nibbles, then 2 x 64 bytes; bits 2*(j%4).. of the (j/4)th belong to dword j
//! * bytes: 8 x 64 bytes, dword j is elements 4j..
//! * two bits: 2 x 64 bytes; bits 2*(j%4).. of the (j/4)th belong to dword j
//! * three bits: two bits, then 64 bytes whose bit j belongs to dword j
//!
//! Types whose values are no even steps have codes that choose among up to sixteen levels; the
//! kernels look these up, and a level takes the place of its code in what follows.
//!
//! Float types: for each element, 16 numbers beside each other as they are in the file.

use candor_quant::QuantType;
use candor_quant::types;

use super::buffer::LINE_BYTES;
use super::interleave::{Interleave, PackFn, pack_floats, pack_units};
use super::number::{self, Number};

/// Output rows of a group: the lanes of a 512-bit register.
pub(crate) const GROUP_ROWS: usize = 16;

/// Elements that share an activation scale.
pub(crate) const BLOCK: usize = 32;

/// Levels that a code can choose among: as many as one instruction looks up.
pub(super) const LEVELS_MAX: usize = 16;

/// How codes are stored; see the head of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codes {
    TwoBits,
    ThreeBits,
    Nibbles,
    FiveBits,
    SixBits,
    Bytes,
}

/// How the header of a unit scales the codes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scales {
    /// Each block: 16 half floats d. value = d * (code - offset)
    Step,
    /// Each block: 16 half floats d, 16 half floats m. value = d * code + m
    StepBase,
    /// 16 half floats d, 16 dmin; each block 16 bytes s; then each block 16 bytes o.
    /// value = (d * s) * code - dmin * o
    SixBit,
    /// Each block: 16 bfloats d. value = d * (code - offset)
    BrainStep,
    /// Each half block: 16 half floats d. value = d * (code - offset)
    HalfSteps,
    /// 16 floats d; each block 16 signed bytes s. value = (d * s) * (code - offset)
    Multiples,
    /// 16 floats d; each half block 16 signed bytes s. value = (d * s) * (code - offset)
    HalfMultiples,
    /// 16 half floats d, 16 dmin; each half block 16 bytes, s in their low and o in their high
    /// nibbles. value = (d * s) * code - dmin * o
    FourBit,
}

/// The interleaved form of a storage type.
pub(crate) struct Format {
    /// Of the file.
    pub(super) quant: &'static QuantType,
    /// Elements of a unit.
    unit_elems: usize,
    unit_bytes: usize,
    /// Interleaves one row of the file into its lane of a zeroed group.
    pub(super) pack: PackFn,
}

impl Format {
    /// Bytes of a group of rows of `cols` elements.
    pub(crate) fn group_bytes(&self, cols: usize) -> usize {
        (cols.div_ceil(self.unit_elems) * self.unit_bytes).next_multiple_of(LINE_BYTES)
    }
}

/// Bytes of the scales in front of a unit.
pub(super) const fn header_bytes(scales: Scales, unit_blocks: usize) -> usize {
    match scales {
        Scales::Step | Scales::BrainStep => 32 * unit_blocks,
        Scales::StepBase | Scales::HalfSteps => 64 * unit_blocks,
        Scales::Multiples => 64 + 16 * unit_blocks,
        Scales::SixBit | Scales::HalfMultiples | Scales::FourBit => 64 + 2 * 16 * unit_blocks,
    }
}

/// Whether the halves of a block are scaled apart.
pub(super) const fn halves_differ(scales: Scales) -> bool {
    matches!(
        scales,
        Scales::HalfSteps | Scales::HalfMultiples | Scales::FourBit
    )
}

/// Bytes of the codes of a block.
pub(super) const fn block_bytes(codes: Codes) -> usize {
    match codes {
        Codes::TwoBits => 2 * LINE_BYTES,
        Codes::ThreeBits => 3 * LINE_BYTES,
        Codes::Nibbles => 4 * LINE_BYTES,
        Codes::FiveBits => 5 * LINE_BYTES,
        Codes::SixBits => 6 * LINE_BYTES,
        Codes::Bytes => 8 * LINE_BYTES,
    }
}

/// The greatest code of that width.
pub(super) const fn code_max(codes: Codes) -> u8 {
    match codes {
        Codes::TwoBits => 3,
        Codes::ThreeBits => 7,
        Codes::Nibbles => 15,
        Codes::FiveBits => 31,
        Codes::SixBits => 63,
        Codes::Bytes => 255,
    }
}

/// An array with one entry for each type that the kernels take: what one macro makes of a float
/// type's file and number, the other of another type's file and block.
macro_rules! each_type {
    ($floats:ident, $integers:ident) => {
        [
            $floats!(f32, Single),
            $floats!(f16, Half),
            $floats!(bf16, Brain),
            $integers!(q4_0, Q4_0),
            $integers!(q4_1, Q4_1),
            $integers!(q5_0, Q5_0),
            $integers!(q5_1, Q5_1),
            $integers!(q8_0, Q8_0),
            $integers!(q4_k, Q4K),
            $integers!(q5_k, Q5K),
            $integers!(q6_k, Q6K),
            $integers!(q2_k, Q2K),
            $integers!(q3_k, Q3K),
            $integers!(iq4_nl, Iq4Nl),
            $integers!(iq4_xs, Iq4Xs),
            $integers!(mxfp4, Mxfp4),
            $integers!(nvfp4, Nvfp4),
            $integers!(iq2_xxs, Iq2Xxs),
            $integers!(iq2_xs, Iq2Xs),
            $integers!(iq2_s, Iq2S),
            $integers!(iq3_xxs, Iq3Xxs),
            $integers!(iq3_s, Iq3S),
            $integers!(iq1_s, Iq1S),
            $integers!(iq1_m, Iq1M),
            $integers!(tq1_0, Tq1_0),
            $integers!(tq2_0, Tq2_0),
        ]
    };
}
pub(super) use each_type;

macro_rules! float_format {
    ($file:ident, $number:ident) => {
        floats::<number::$number>(&types::$file::TYPE)
    };
}

macro_rules! integer_format {
    ($file:ident, $block:ident) => {
        integers::<types::$file::$block>(&types::$file::TYPE)
    };
}

/// The form of each type that the kernels take.
pub(crate) static FORMATS: [Format; 26] = each_type!(float_format, integer_format);

/// The storage types for which there are kernels. Others are multiplied as on the exact path.
pub fn packed_types() -> impl Iterator<Item = &'static QuantType> {
    FORMATS.iter().map(|format| format.quant)
}

/// The place of a type in [`FORMATS`].
pub(crate) fn format_idx(quant: &QuantType) -> Option<usize> {
    FORMATS.iter().position(|f| f.quant.id == quant.id)
}

const fn floats<N: Number>(quant: &'static QuantType) -> Format {
    Format {
        quant,
        unit_elems: 1,
        unit_bytes: GROUP_ROWS * N::BYTES,
        pack: pack_floats::<N>,
    }
}

const fn integers<B: Interleave>(quant: &'static QuantType) -> Format {
    Format {
        quant,
        unit_elems: B::UNIT_BLOCKS * BLOCK,
        unit_bytes: B::UNIT_BYTES,
        pack: pack_units::<B>,
    }
}
