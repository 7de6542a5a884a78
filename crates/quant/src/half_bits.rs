//! A half-precision number as it lies in a file: two bytes at any address.

use bytemuck::{Pod, Zeroable};
use half::f16;

/// A little-endian IEEE half-precision number without alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Half(pub [u8; 2]);

impl Half {
    /// The nearest half-precision number.
    pub fn from_f32(value: f32) -> Self {
        Self(f16::from_f32(value).to_le_bytes())
    }

    /// The bits as a number.
    pub fn bits(self) -> u16 {
        u16::from_le_bytes(self.0)
    }

    /// The same number in single precision.
    pub fn to_f32(self) -> f32 {
        f16::from_le_bytes(self.0).to_f32()
    }
}
