//! The float types of weights.

use half::{bf16, f16};

#[cfg(target_arch = "x86_64")]
use super::wide::Lanes;

/// A float type.
pub(super) trait Number {
    const BYTES: usize;

    /// What `BYTES` bytes stand for.
    fn value(bytes: &[u8]) -> f32;

    /// A register of them, as float32.
    ///
    /// # Safety
    /// They must be there; see [`Lanes`].
    #[cfg(target_arch = "x86_64")]
    unsafe fn load<L: Lanes>(at: *const u8) -> L::Floats;
}

/// IEEE single precision.
pub(super) struct Single;
/// IEEE half precision.
pub(super) struct Half;
/// The upper half of single precision.
pub(super) struct Brain;

impl Number for Single {
    const BYTES: usize = 4;

    fn value(bytes: &[u8]) -> f32 {
        f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load<L: Lanes>(at: *const u8) -> L::Floats {
        // SAFETY: the caller's promise.
        unsafe { L::load(at.cast()) }
    }
}

impl Number for Half {
    const BYTES: usize = 2;

    fn value(bytes: &[u8]) -> f32 {
        f16::from_le_bytes([bytes[0], bytes[1]]).to_f32()
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load<L: Lanes>(at: *const u8) -> L::Floats {
        // SAFETY: the caller's promise.
        unsafe { L::halves(at) }
    }
}

impl Number for Brain {
    const BYTES: usize = 2;

    fn value(bytes: &[u8]) -> f32 {
        bf16::from_le_bytes([bytes[0], bytes[1]]).to_f32()
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load<L: Lanes>(at: *const u8) -> L::Floats {
        // SAFETY: the caller's promise.
        unsafe { L::brains(at) }
    }
}
