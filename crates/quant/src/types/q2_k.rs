//! Q2_K: 256 two-bit codes; each 16 have a four-bit scale and a four-bit offset, which are
//! multiples of two numbers of the whole block. value = (d * scale) * code - dmin * offset.

use bytemuck::{Pod, Zeroable};

use super::{code, range_with_zero};
use crate::activation::{ActivationBlock, code_dot};
use crate::block::{Block, IntegerBlock, QuantType, describe_integer};
use crate::half_bits::Half;

/// 256 values in 84 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Q2K {
    /// The scale (low nibble) and the offset (high nibble) of each 16 values, in order.
    pub scales: [u8; 16],
    /// Each 32 bytes hold four sub-blocks of 32, two bits each, the first in the lowest bits.
    pub qs: [u8; 64],
    /// The unit of the scales.
    pub d: Half,
    /// The unit of the offsets.
    pub dmin: Half,
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Q2K>();
const _: () = assert!(size_of::<Q2K>() == 84);

impl Q2K {
    /// The codes of one sub-block of 32 (two scales), 0 to 3.
    pub fn codes(&self, sub_block_idx: usize) -> [i8; 32] {
        let bytes = &self.qs[sub_block_idx / 4 * 32..][..32];
        let shift = sub_block_idx % 4 * 2;
        std::array::from_fn(|i| ((bytes[i] >> shift) & 3) as i8)
    }
}

impl Block for Q2K {
    const ID: u32 = 10;
    const NAME: &'static str = "Q2_K";
    const ELEMS: usize = 256;

    fn dequantize(&self, out: &mut [f32]) {
        let (d, dmin) = (self.d.to_f32(), self.dmin.to_f32());
        for (s, out) in out.chunks_exact_mut(32).enumerate() {
            for (i, (value, code)) in out.iter_mut().zip(self.codes(s)).enumerate() {
                let scale = self.scales[s * 2 + i / 16];
                let step = d * f32::from(scale & 15);
                *value = step * f32::from(code) - dmin * f32::from(scale >> 4);
            }
        }
    }

    fn quantize(values: &[f32]) -> Self {
        let mut steps = [0.0; 16];
        let mut lows = [0.0; 16];
        for (part, values) in values.chunks_exact(16).enumerate() {
            let (low, high) = range_with_zero(values);
            steps[part] = (high - low) / 3.0;
            lows[part] = -low;
        }
        let d = Half::from_f32(range_with_zero(&steps).1 / 15.0);
        let dmin = Half::from_f32(range_with_zero(&lows).1 / 15.0);
        let four_bits = |number: f32, unit: Half| code(number, unit.to_f32(), 0.0, 15.0) as u8;
        let mut block = Self {
            scales: [0; 16],
            qs: [0; 64],
            d,
            dmin,
        };
        for (part, scale) in block.scales.iter_mut().enumerate() {
            *scale = four_bits(steps[part], d) | (four_bits(lows[part], dmin) << 4);
        }
        for (i, value) in values.iter().enumerate() {
            let scale = block.scales[i / 16];
            let step = d.to_f32() * f32::from(scale & 15);
            let offset = dmin.to_f32() * f32::from(scale >> 4);
            let code = code(value + offset, step, 0.0, 3.0) as u8;
            block.qs[i / 128 * 32 + i % 32] |= code << (i / 32 % 4 * 2);
        }
        block
    }
}

impl IntegerBlock for Q2K {
    /// d * sum(act_scale * (scale_0 * products_0 + scale_1 * products_1)) - dmin *
    /// sum(act_scale * (offset_0 * act_sum_0 + offset_1 * act_sum_1)), both sums over the eight
    /// sub-blocks of 32 in order; what is in the inner brackets is an exact integer.
    fn dot(&self, activations: &[ActivationBlock]) -> f32 {
        let mut products = 0.0;
        let mut shifts = 0.0;
        for (s, a) in activations.iter().enumerate() {
            let codes = self.codes(s);
            let (mut scaled, mut shifted) = (0, 0);
            for (half, range) in [0..16, 16..32].into_iter().enumerate() {
                let scale = self.scales[s * 2 + half];
                let sum: i32 = a.codes[range.clone()].iter().map(|c| i32::from(*c)).sum();
                scaled += i32::from(scale & 15) * code_dot(&codes[range.clone()], &a.codes[range]);
                shifted += i32::from(scale >> 4) * sum;
            }
            products += a.scale * scaled as f32;
            shifts += a.scale * shifted as f32;
        }
        self.d.to_f32() * products - self.dmin.to_f32() * shifts
    }
}
