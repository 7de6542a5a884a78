//! The registers of an instruction family, as the shared kernels use them.

use super::super::interleave::Interleave;
use super::linear::{Acts, Part};

/// An instruction family with registers of [`Lanes::COUNT`] numbers of four bytes.
///
/// # Safety
/// Every function needs a machine that has the instructions, and is to be inlined into one of the
/// functions of [`entries`](super::entries), which are compiled for them. A pointer must be to as
/// many numbers as are read or written: those of a register where nothing else is said.
pub(in crate::simd) trait Lanes: Copy {
    /// Lanes of a register: 16, or a part of it.
    const COUNT: usize;
    /// Sums that are kept in registers at once, beside what is added to them.
    const SUMS: usize;

    type Floats: Copy;
    type Ints: Copy;

    /// One number in each lane.
    unsafe fn splat(x: f32) -> Self::Floats;
    unsafe fn load(at: *const f32) -> Self::Floats;
    /// The first `n` lanes from memory, the others zero.
    unsafe fn load_first(at: *const f32, n: usize) -> Self::Floats;
    unsafe fn store(at: *mut f32, x: Self::Floats);
    /// Stores the first `n` lanes.
    unsafe fn store_first(at: *mut f32, x: Self::Floats, n: usize);
    /// Half floats.
    unsafe fn halves(at: *const u8) -> Self::Floats;
    /// Upper halves of floats.
    unsafe fn brains(at: *const u8) -> Self::Floats;
    /// Unsigned bytes.
    unsafe fn bytes(at: *const u8) -> Self::Floats;
    /// Signed bytes.
    unsafe fn signed_bytes(at: *const u8) -> Self::Floats;
    /// The low four bits of bytes.
    unsafe fn low_nibbles(at: *const u8) -> Self::Floats;
    /// The high four bits of bytes.
    unsafe fn high_nibbles(at: *const u8) -> Self::Floats;
    /// Stores the nearest half floats.
    unsafe fn store_halves(at: *mut u16, x: Self::Floats);

    unsafe fn add(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    unsafe fn sub(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    unsafe fn div(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// The lesser; `b` where one is no number.
    unsafe fn min(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// The greater; `b` where one is no number.
    unsafe fn max(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// a · b + c, rounded once.
    unsafe fn mul_add(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    /// c - a · b, rounded once.
    unsafe fn neg_mul_add(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    unsafe fn abs(x: Self::Floats) -> Self::Floats;
    /// The nearest whole numbers, ties to even.
    unsafe fn round(x: Self::Floats) -> Self::Floats;
    /// x · 2^n for whole n from -126 to 128.
    unsafe fn scale(x: Self::Floats, n: Self::Floats) -> Self::Floats;
    /// Zero where x ≤ limit, else `other`, also where x is no number.
    unsafe fn zero_up_to(x: Self::Floats, limit: f32, other: Self::Floats) -> Self::Floats;
    /// Whether every lane is below infinity; what is no number is not.
    unsafe fn all_finite(magnitudes: Self::Floats) -> bool;
    /// The first lane.
    unsafe fn first(x: Self::Floats) -> f32;
    /// The sum of the lanes, in an order of the family's own.
    unsafe fn total(x: Self::Floats) -> f32;
    /// The greatest lane.
    unsafe fn greatest(x: Self::Floats) -> f32;

    /// One number in each lane.
    unsafe fn splat_ints(x: i32) -> Self::Ints;
    /// One byte in each byte.
    unsafe fn splat_bytes(x: u8) -> Self::Ints;
    unsafe fn load_ints(at: *const u8) -> Self::Ints;
    unsafe fn and(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    unsafe fn or(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// Each 16 bits shifted up by `n`.
    unsafe fn shift_up(x: Self::Ints, n: usize) -> Self::Ints;
    /// Each 16 bits shifted down by `n`.
    unsafe fn shift_down(x: Self::Ints, n: usize) -> Self::Ints;
    /// In each byte, the entry of `table` that it says; it is below 16.
    unsafe fn look_up(table: &[u8; 16], bytes: Self::Ints) -> Self::Ints;
    /// The nearest whole numbers, ties to even.
    unsafe fn to_ints(x: Self::Floats) -> Self::Ints;
    unsafe fn to_floats(x: Self::Ints) -> Self::Floats;
    /// The sum of the lanes.
    unsafe fn total_ints(x: Self::Ints) -> i32;
    /// Stores the low byte of each lane.
    unsafe fn store_bytes(at: *mut i8, x: Self::Ints);

    /// The products of the codes of one block, or of half of it, with those of the activations,
    /// summed exactly by register and row. `codes` is where each register's lanes of the block
    /// begin.
    unsafe fn products<B: Interleave, const C: usize, const R: usize>(
        codes: [*const u8; C],
        acts: &Acts<R>,
        part: Part,
    ) -> [[Self::Ints; R]; C];
}

/// Functions of [`Lanes`] that are one expression.
macro_rules! lanes {
    ($(fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? { $body:expr })*) => { $(
        #[inline(always)]
        unsafe fn $name($($arg: $type),*) $(-> $result)? {
            // SAFETY: the caller has the instructions, and the memory that pointers stand for.
            unsafe { $body }
        }
    )* };
}
pub(in crate::simd) use lanes;
