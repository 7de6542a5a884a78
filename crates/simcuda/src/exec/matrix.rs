//! `ldmatrix` and `mma`: fragments as the PTX ISA lays them over lanes.

use crate::fault::Access;

use super::access::Spot;
use super::block::Block;
use super::code::{Address, Elements, Extend, Multiply, Order};
use super::lanes::{LANES, W, bf16_value, f16_value};
use super::warp::{Lane, Warp};

/// Rows of the product.
const M: usize = 16;

/// Its columns.
const N: usize = 8;

/// The greatest depth.
const K_MAX: usize = 32;

/// Bytes of a row of an 8x8 matrix of 16-bit elements.
const ROW_BYTES: u32 = 16;

impl Warp {
    pub(super) fn load_matrix(
        &mut self,
        at: &Address,
        order: Order,
        to: &[u32],
        block: &mut Block<'_>,
    ) -> Lane<()> {
        // A destination may be the register of the address.
        let addresses: [u64; LANES] = std::array::from_fn(|lane| self.address(at, lane));
        for (matrix, reg) in to.iter().enumerate() {
            let mut rows = [[0u16; 8]; 8];
            for (row, elements) in rows.iter_mut().enumerate() {
                let lane = matrix * 8 + row;
                let address = addresses[lane];
                let access = (ROW_BYTES, Access::Read);
                let spot = self.locate(at.space, address, access, lane, (&mut *block, 0));
                let Spot::Shared(from) = spot.map_err(|kind| (kind, lane as u32))? else {
                    let kind = crate::fault::FaultKind::Operand {
                        what: "the address of a matrix outside shared memory",
                        found: address,
                    };
                    return Err((kind, lane as u32));
                };
                for (column, element) in elements.iter_mut().enumerate() {
                    let at = from + 2 * column;
                    *element = u16::from_le_bytes([block.shared[at], block.shared[at + 1]]);
                }
            }
            self.w[*reg as usize] = std::array::from_fn(|lane| {
                let (row, column) = (lane / 4, 2 * (lane % 4));
                let [low, high] = match order {
                    Order::Rows => [rows[row][column], rows[row][column + 1]],
                    Order::Columns => [rows[column][row], rows[column + 1][row]],
                };
                u32::from(low) | (u32::from(high) << 16)
            });
        }
        Ok(())
    }

    pub(super) fn multiply(&mut self, one: &Multiply) {
        match one.elements {
            Elements::F16 => self.multiply_floats(one, f16_value),
            Elements::Bf16 => self.multiply_floats(one, bf16_value),
            Elements::Bytes { a, b } => self.multiply_bytes(one, a, b),
        }
    }

    /// Products and their sum are exact to a double's last bit, and rounded once. Tensor cores cut
    /// bits off on the way: results differ in the last places.
    fn multiply_floats(&mut self, one: &Multiply, value: impl Fn(u32) -> f32) {
        let halves = |word: u32| [word & 0xffff, word >> 16].map(&value);
        let mut a = [[0f32; M]; K_MAX];
        for (index, reg) in one.a.iter().enumerate() {
            for (lane, word) in self.w[*reg as usize].iter().enumerate() {
                let row = lane / 4 + 8 * (index % 2);
                let k = 2 * (lane % 4) + 8 * (index / 2);
                [a[k][row], a[k + 1][row]] = halves(*word);
            }
        }
        let mut b = [[0f32; N]; K_MAX];
        for (index, reg) in one.b.iter().enumerate() {
            for (lane, word) in self.w[*reg as usize].iter().enumerate() {
                let k = 2 * (lane % 4) + 8 * index;
                [b[k][lane / 4], b[k + 1][lane / 4]] = halves(*word);
            }
        }
        let mut sum = self
            .accumulators(one.c)
            .map(|row| row.map(|bits| f64::from(f32::from_bits(bits))));
        for (a, b) in a.iter().zip(&b).take(one.k) {
            let b = b.map(f64::from);
            for (sum, a) in sum.iter_mut().zip(a) {
                for (sum, b) in sum.iter_mut().zip(&b) {
                    *sum += f64::from(*a) * b;
                }
            }
        }
        let bits = |value: f64| {
            let value = value as f32;
            if value.is_nan() {
                0x7fff_ffff
            } else {
                value.to_bits()
            }
        };
        self.put_accumulators(one.d, &sum.map(|row| row.map(bits)));
    }

    fn multiply_bytes(&mut self, one: &Multiply, of_a: Extend, of_b: Extend) {
        let bytes = |word: u32, extend: Extend| {
            word.to_le_bytes().map(|byte| match extend {
                Extend::Sign => i32::from(byte as i8),
                Extend::Zero => i32::from(byte),
            })
        };
        let mut a = [[0i32; M]; K_MAX];
        for (index, reg) in one.a.iter().enumerate() {
            for (lane, word) in self.w[*reg as usize].iter().enumerate() {
                let row = lane / 4 + 8 * (index % 2);
                let k = 4 * (lane % 4) + 16 * (index / 2);
                for (more, value) in bytes(*word, of_a).into_iter().enumerate() {
                    a[k + more][row] = value;
                }
            }
        }
        let mut b = [[0i32; N]; K_MAX];
        for (index, reg) in one.b.iter().enumerate() {
            for (lane, word) in self.w[*reg as usize].iter().enumerate() {
                let k = 4 * (lane % 4) + 16 * index;
                for (more, value) in bytes(*word, of_b).into_iter().enumerate() {
                    b[k + more][lane / 4] = value;
                }
            }
        }
        let mut sum = self.accumulators(one.c);
        for (a, b) in a.iter().zip(&b).take(one.k) {
            for (sum, a) in sum.iter_mut().zip(a) {
                for (sum, b) in sum.iter_mut().zip(b) {
                    *sum = sum.wrapping_add(a.wrapping_mul(*b) as u32);
                }
            }
        }
        self.put_accumulators(one.d, &sum);
    }

    fn accumulators(&self, c: [u32; 4]) -> [[u32; N]; M] {
        let mut all = [[0; N]; M];
        for (index, reg) in c.iter().enumerate() {
            for (lane, bits) in self.w[*reg as usize].iter().enumerate() {
                let (row, column) = place(index, lane);
                all[row][column] = *bits;
            }
        }
        all
    }

    fn put_accumulators(&mut self, d: [u32; 4], all: &[[u32; N]; M]) {
        for (index, reg) in d.iter().enumerate() {
            let out: W = std::array::from_fn(|lane| {
                let (row, column) = place(index, lane);
                all[row][column]
            });
            self.w[*reg as usize] = out;
        }
    }
}

/// Which element of the product a lane has in one of its four registers.
fn place(index: usize, lane: usize) -> (usize, usize) {
    (lane / 4 + 8 * (index / 2), 2 * (lane % 4) + index % 2)
}
