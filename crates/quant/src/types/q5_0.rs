//! Q5_0: 32 five-bit codes with one scale. value = d * (code - 16).

use bytemuck::{Pod, Zeroable};

use super::{code, largest_signed};
use crate::activation::{ActivationBlock, code_dot};
use crate::block::{Block, IntegerBlock, QuantType, describe_integer};
use crate::half_bits::Half;

/// 32 values in 22 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Q5_0 {
    /// The value of one step.
    pub d: Half,
    /// The fifth bits: bit i of this little-endian number belongs to value i.
    pub qh: [u8; 4],
    /// Byte i holds value i in its low nibble and value i + 16 in its high one.
    pub qs: [u8; 16],
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Q5_0>();
const _: () = assert!(size_of::<Q5_0>() == 22);

impl Q5_0 {
    /// The codes in order, -16 to 15.
    pub fn codes(&self) -> [i8; 32] {
        unpack(&self.qs, self.qh).map(|code| code - 16)
    }
}

impl Block for Q5_0 {
    const ID: u32 = 6;
    const NAME: &'static str = "Q5_0";
    const ELEMS: usize = 32;

    fn dequantize(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (value, code) in out.iter_mut().zip(self.codes()) {
            *value = d * f32::from(code);
        }
    }

    fn quantize(values: &[f32]) -> Self {
        // The value of largest magnitude gets the code -16, of which there is no positive twin.
        let d = largest_signed(values) / -16.0;
        let codes = std::array::from_fn(|i| (code(values[i], d, -16.0, 15.0) + 16) as u8);
        let (qs, qh) = pack(&codes);
        Self {
            d: Half::from_f32(d),
            qh,
            qs,
        }
    }
}

impl IntegerBlock for Q5_0 {
    /// (d * scale) * sum of code products.
    fn dot(&self, activations: &[ActivationBlock]) -> f32 {
        let a = &activations[0];
        (self.d.to_f32() * a.scale) * code_dot(&self.codes(), &a.codes) as f32
    }
}

/// The codes 0 to 31 out of nibbles and fifth bits.
pub(super) fn unpack(qs: &[u8; 16], qh: [u8; 4]) -> [i8; 32] {
    let high = u32::from_le_bytes(qh);
    std::array::from_fn(|i| {
        let byte = qs[i % 16];
        let nibble = if i < 16 { byte & 15 } else { byte >> 4 };
        (nibble | (((high >> i) & 1) as u8) << 4) as i8
    })
}

/// The reverse of [`unpack`].
pub(super) fn pack(codes: &[u8; 32]) -> ([u8; 16], [u8; 4]) {
    let mut high = 0u32;
    let mut qs = [0; 16];
    for (i, code) in codes.iter().enumerate() {
        high |= u32::from(code >> 4) << i;
        qs[i % 16] |= if i < 16 { code & 15 } else { (code & 15) << 4 };
    }
    (qs, high.to_le_bytes())
}
