//! Q6_K: 256 six-bit codes; each 16 have a signed byte as scale, a multiple of
//! one number of the whole block. value = (d * scale) * (code - 32).

use bytemuck::{Pod, Zeroable};

use super::{code, largest_signed};
use crate::activation::{ActivationBlock, code_dot};
use crate::block::{Block, IntegerBlock, QuantType, describe_integer};
use crate::half_bits::Half;

/// 256 values in 210 bytes.
///
/// The block is two halves of 128 values. In a half, run r (0 to 3) of 32 values
/// has its low nibbles in 32 bytes of `ql` (those of runs 0 and 2 are the low and
/// high nibbles of the first 32, those of runs 1 and 3 of the second 32), and its
/// upper two bits at bit 2 * r of the 32 bytes of `qh`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Q6K {
    /// The lower four bits.
    pub ql: [u8; 128],
    /// The upper two bits.
    pub qh: [u8; 64],
    /// The scale of each 16 values, in order.
    pub scales: [i8; 16],
    /// The unit of the scales.
    pub d: Half,
}

/// The table row.
pub const TYPE: QuantType = describe_integer::<Q6K>();
const _: () = assert!(size_of::<Q6K>() == 210);

/// Where a sub-block of 32 has its bits: the start in `ql` and the shift there,
/// the start in `qh` and the shift there.
fn place(sub_block_idx: usize) -> (usize, usize, usize, usize) {
    let (half, run) = (sub_block_idx / 4, sub_block_idx % 4);
    (half * 64 + run % 2 * 32, run / 2 * 4, half * 32, run * 2)
}

impl Q6K {
    /// The codes of one sub-block of 32 (two scales), -32 to 31.
    pub fn codes(&self, sub_block_idx: usize) -> [i8; 32] {
        let (low_at, low_shift, high_at, high_shift) = place(sub_block_idx);
        std::array::from_fn(|i| {
            let low = (self.ql[low_at + i] >> low_shift) & 15;
            let high = (self.qh[high_at + i] >> high_shift) & 3;
            (low | (high << 4)) as i8 - 32
        })
    }
}

impl Block for Q6K {
    const ID: u32 = 14;
    const NAME: &'static str = "Q6_K";
    const ELEMS: usize = 256;

    fn dequantize(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (s, out) in out.chunks_exact_mut(32).enumerate() {
            for (i, (value, code)) in out.iter_mut().zip(self.codes(s)).enumerate() {
                let step = d * f32::from(self.scales[s * 2 + i / 16]);
                *value = step * f32::from(code);
            }
        }
    }

    fn quantize(values: &[f32]) -> Self {
        let mut steps = [0.0; 16];
        for (step, values) in steps.iter_mut().zip(values.chunks_exact(16)) {
            *step = largest_signed(values).abs() / 31.0;
        }
        let d = Half::from_f32(largest_signed(&steps) / 127.0);
        let scales = steps.map(|step| code(step, d.to_f32(), 0.0, 127.0));
        let mut block = Self {
            ql: [0; 128],
            qh: [0; 64],
            scales,
            d,
        };
        for (i, value) in values.iter().enumerate() {
            let step = d.to_f32() * f32::from(scales[i / 16]);
            let code = (code(*value, step, -32.0, 31.0) + 32) as u8;
            let (low_at, low_shift, high_at, high_shift) = place(i / 32);
            block.ql[low_at + i % 32] |= (code & 15) << low_shift;
            block.qh[high_at + i % 32] |= (code >> 4) << high_shift;
        }
        block
    }
}

impl IntegerBlock for Q6K {
    /// d * sum(act_scale * (scale_0 * products_0 + scale_1 * products_1)), the sum
    /// over the eight sub-blocks of 32 in order; what is in the inner brackets is
    /// an exact integer (below 2^24, so it is exact in `f32` too).
    fn dot(&self, activations: &[ActivationBlock]) -> f32 {
        let mut sum = 0.0;
        for (s, a) in activations.iter().enumerate() {
            let codes = self.codes(s);
            let first = code_dot(&codes[..16], &a.codes[..16]);
            let second = code_dot(&codes[16..], &a.codes[16..]);
            let scaled =
                i32::from(self.scales[s * 2]) * first + i32::from(self.scales[s * 2 + 1]) * second;
            sum += a.scale * scaled as f32;
        }
        self.d.to_f32() * sum
    }
}
