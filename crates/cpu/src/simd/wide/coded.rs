//! Keys and values from 8 bits to half precision.

use half::f16;

use super::super::attention::{KEY_LANES, page_numbers};
use super::super::coded::{BLOCK, Unfold};
use super::lanes::Lanes;

/// See [`super::super::coded`].
///
/// # Safety
/// See [`Lanes`]; the shapes of the task have to belong together.
#[inline(always)]
pub(in crate::simd) unsafe fn unfold<L: Lanes>(task: &mut Unfold<'_>) {
    // SAFETY: passed on from the caller.
    unsafe {
        keys::<L>(task);
        values::<L>(task);
    }
}

/// Sixteen keys at a time, each with its scale in a lane.
#[inline(always)]
unsafe fn keys<L: Lanes>(task: &mut Unfold<'_>) {
    let (n, blocks) = (task.head_dim, task.head_dim.div_ceil(BLOCK));
    let (codes, scales) = task.page.keys.split_at(page_numbers(n));
    let out = task.keys.as_mut_ptr();
    for group in 0..task.positions.div_ceil(KEY_LANES) {
        for block in 0..blocks {
            let elements = block * BLOCK..(block * BLOCK + BLOCK).min(n);
            for lane in (0..KEY_LANES).step_by(L::COUNT) {
                let place = (group * blocks + block) * KEY_LANES + lane;
                // SAFETY: a page has codes and scales for all of its groups.
                unsafe {
                    let scale = L::halves(scales.as_ptr().add(2 * place));
                    for element in elements.clone() {
                        let at = (group * n + element) * KEY_LANES + lane;
                        let number = L::mul(L::signed_bytes(codes.as_ptr().add(at)), scale);
                        L::store_halves(out.add(at), number);
                    }
                }
            }
        }
    }
}

/// Value after value, block by block.
#[inline(always)]
unsafe fn values<L: Lanes>(task: &mut Unfold<'_>) {
    let (n, blocks) = (task.head_dim, task.head_dim.div_ceil(BLOCK));
    let (codes, halves) = task.page.values.split_at(page_numbers(n));
    let mut scales = [0.0f32; KEY_LANES];
    for number in 0..task.positions * blocks {
        if number.is_multiple_of(KEY_LANES) {
            for lane in (0..KEY_LANES).step_by(L::COUNT) {
                // SAFETY: a page has a multiple of sixteen scales.
                unsafe {
                    let half = L::halves(halves.as_ptr().add(2 * (number + lane)));
                    L::store(scales.as_mut_ptr().add(lane), half);
                }
            }
        }
        let scale = scales[number % KEY_LANES];
        let element = number % blocks * BLOCK;
        let place = number / blocks * n + element..number / blocks * n + (element + BLOCK).min(n);
        let (codes, out) = (&codes[place.clone()], &mut task.values[place]);
        let whole = codes.len() / L::COUNT * L::COUNT;
        for at in (0..whole).step_by(L::COUNT) {
            // SAFETY: whole registers of both slices.
            unsafe {
                let number = L::mul(L::signed_bytes(codes.as_ptr().add(at)), L::splat(scale));
                L::store_halves(out.as_mut_ptr().add(at), number);
            }
        }
        for (code, out) in codes[whole..].iter().zip(&mut out[whole..]) {
            *out = f16::from_f32(f32::from(code.cast_signed()) * scale).to_bits();
        }
    }
}
