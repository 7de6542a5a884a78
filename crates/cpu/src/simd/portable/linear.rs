//! Products with a weight matrix.

use half::{bf16, f16};

use super::super::format::{BLOCK, Codes, GROUP_ROWS, Scales};
use super::super::interleave::Interleave;
use super::super::kernels::{Linear, LinearTask};
use super::super::number::Number;

/// Activation rows for which the weights are unpacked once.
const ROWS: usize = 8;

/// Dwords of a block.
const DWORDS: usize = BLOCK / 4;

/// The codes and scales of one block of a group, unpacked.
struct Block {
    /// By dword, lane, byte.
    codes: [[[u8; 4]; GROUP_ROWS]; DWORDS],
    /// What the sums of the first and of the second 16 elements are multiplied with.
    factors: [[i32; GROUP_ROWS]; 2],
    /// What they are multiplied with then; the same for both, but where halves have steps that
    /// are no multiples of one.
    steps: [[f32; GROUP_ROWS]; 2],
    /// How often the base is counted in the first and in the second 16 elements.
    shifts: [[i32; GROUP_ROWS]; 2],
    /// What the weighted sum of the activations is multiplied with.
    base: [f32; GROUP_ROWS],
}

/// The family of whatever the compiler makes.
pub(super) struct Portable;

impl Linear for Portable {
    unsafe fn floats<N: Number>(task: &LinearTask) {
        for group in task.groups.clone() {
            let bytes = task.cols * GROUP_ROWS * N::BYTES;
            // SAFETY: the group lies in the matrix, which outlives the task.
            let weights = unsafe {
                std::slice::from_raw_parts(task.weights.add(group * task.group_bytes), bytes)
            };
            for row in task.rows.clone() {
                // SAFETY: the row lies in the activations, which outlive the task.
                let acts = unsafe {
                    std::slice::from_raw_parts(task.floats.add(row * task.cols), task.cols)
                };
                let mut sums = [0.0f32; GROUP_ROWS];
                for (weights, a) in weights.chunks_exact(GROUP_ROWS * N::BYTES).zip(acts) {
                    for (sum, w) in sums.iter_mut().zip(weights.chunks_exact(N::BYTES)) {
                        *sum += N::value(w) * a;
                    }
                }
                // SAFETY: passed on from the caller.
                unsafe { store(task, group, row, &sums) }
            }
        }
    }

    unsafe fn integers<B: Interleave>(task: &LinearTask) {
        for group in task.groups.clone() {
            // SAFETY: the group lies in the matrix, which outlives the task.
            let weights = unsafe {
                std::slice::from_raw_parts(
                    task.weights.add(group * task.group_bytes),
                    task.group_bytes,
                )
            };
            let mut first = task.rows.start;
            while first < task.rows.end {
                let count = (task.rows.end - first).min(ROWS);
                // SAFETY: passed on from the caller.
                unsafe { group_rows::<B>(task, weights, group, first..first + count) };
                first += count;
            }
        }
    }
}

/// Puts the sums of a group and a row where they belong.
///
/// # Safety
/// See [`super::super::kernels::LinearFn`].
unsafe fn store(task: &LinearTask, group: usize, row: usize, sums: &[f32; GROUP_ROWS]) {
    let place = row * task.width + group * GROUP_ROWS;
    let lanes = task.lanes(group);
    // SAFETY: the tile's piece of the output; `lanes` keeps within the row.
    let out = unsafe { std::slice::from_raw_parts_mut(task.out.add(place), lanes) };
    out.copy_from_slice(&sums[..lanes]);
}

/// # Safety
/// See [`super::super::kernels::LinearFn`].
unsafe fn group_rows<B: Interleave>(
    task: &LinearTask,
    weights: &[u8],
    group: usize,
    rows: std::ops::Range<usize>,
) {
    let mut sums = [[0.0f32; GROUP_ROWS]; ROWS];
    for block_idx in 0..task.cols / BLOCK {
        let unit_idx = block_idx / B::UNIT_BLOCKS;
        let unit = &weights[unit_idx * B::UNIT_BYTES..][..B::UNIT_BYTES];
        let block = unpack::<B>(unit, block_idx % B::UNIT_BLOCKS);
        for (row, sums) in rows.clone().zip(&mut sums) {
            let panel = &task.panel;
            // SAFETY: the panel holds the task's rows and columns.
            let (codes, scale, neg_sums, weighted) = unsafe {
                (
                    &*panel
                        .codes
                        .add(row * panel.codes_stride + block_idx * BLOCK)
                        .cast::<[[i8; 4]; DWORDS]>(),
                    *panel.scales.add(row * panel.scales_stride + block_idx),
                    *panel
                        .neg_sums
                        .add(row * panel.sums_stride + 2 * block_idx)
                        .cast::<[i32; 2]>(),
                    *panel
                        .weighted_sums
                        .add(row * panel.scales_stride + block_idx),
                )
            };
            let start = neg_sums.map(|s| s * i32::from(B::OFFSET));
            let products = multiply(&block, codes, start);
            for (lane, sum) in sums.iter_mut().enumerate() {
                let [first, second] = [0, 1].map(|h| products[h][lane] * block.factors[h][lane]);
                let [step, other] = [0, 1].map(|h| block.steps[h][lane] * scale);
                if B::SCALES == Scales::HalfSteps {
                    *sum += first as f32 * step + second as f32 * other;
                } else {
                    *sum += (first + second) as f32 * step;
                }
                if B::SCALES == Scales::FourBit {
                    let [first, second] = [0, 1].map(|h| neg_sums[h] * block.shifts[h][lane]);
                    *sum -= block.base[lane] * ((first + second) as f32 * scale);
                } else {
                    *sum += block.base[lane] * weighted;
                }
            }
        }
    }
    for (row, sums) in rows.zip(&sums) {
        // SAFETY: passed on from the caller.
        unsafe { store(task, group, row, sums) }
    }
}

/// The sums of code products of the halves of all lanes, exact. `start` is what the offset of the
/// codes takes from them.
fn multiply(block: &Block, acts: &[[i8; 4]; DWORDS], start: [i32; 2]) -> [[i32; GROUP_ROWS]; 2] {
    let mut halves = start.map(|s| [s; GROUP_ROWS]);
    for (j, (codes, acts)) in block.codes.iter().zip(acts).enumerate() {
        let acts = acts.map(i32::from);
        for (sum, codes) in halves[j / (DWORDS / 2)].iter_mut().zip(codes) {
            for (c, a) in codes.iter().zip(acts) {
                *sum += i32::from(*c) * a;
            }
        }
    }
    halves
}

/// Takes a block of a unit apart; see [`super::super::format`].
fn unpack<B: Interleave>(unit: &[u8], block_idx: usize) -> Block {
    let mut block = Block {
        codes: [[[0; 4]; GROUP_ROWS]; DWORDS],
        factors: [[1; GROUP_ROWS]; 2],
        steps: [[0.0; GROUP_ROWS]; 2],
        shifts: [[1; GROUP_ROWS]; 2],
        base: [0.0; GROUP_ROWS],
    };
    for lane in 0..GROUP_ROWS {
        unpack_scales::<B>(unit, block_idx, lane, &mut block);
    }
    let codes = &unit[B::HEADER_BYTES + block_idx * B::BLOCK_BYTES..];
    for (j, dword) in block.codes.iter_mut().enumerate() {
        for (lane, bytes) in dword.iter_mut().enumerate() {
            for (b, code) in bytes.iter_mut().enumerate() {
                let found = unpack_code(B::CODES, codes, j, lane * 4 + b);
                *code = B::LEVELS.map_or(found, |levels| levels[usize::from(found)]);
            }
        }
    }
    block
}

/// What of a unit's header belongs to a block and a lane.
fn unpack_scales<B: Interleave>(unit: &[u8], block_idx: usize, lane: usize, block: &mut Block) {
    let pair = |at: usize| [unit[at + 2 * lane], unit[at + 2 * lane + 1]];
    let half = |at: usize| f16::from_le_bytes(pair(at)).to_f32();
    let float = f32::from_le_bytes(std::array::from_fn(|i| unit[4 * lane + i]));
    let byte = |at: usize| unit[64 + at * GROUP_ROWS + lane];
    let both = |at: usize| [byte(2 * at), byte(2 * at + 1)];
    let (mut factors, mut shifts) = ([1; 2], [1; 2]);
    let (steps, base) = match B::SCALES {
        Scales::Step => ([half(block_idx * 32); 2], 0.0),
        Scales::BrainStep => {
            let step = bf16::from_le_bytes(pair(block_idx * 32)).to_f32();
            ([step; 2], 0.0)
        }
        Scales::StepBase => ([half(block_idx * 64); 2], half(block_idx * 64 + 32)),
        Scales::HalfSteps => ([half(block_idx * 64), half(block_idx * 64 + 32)], 0.0),
        Scales::SixBit => {
            factors = [i32::from(byte(block_idx)); 2];
            let offset = f32::from(byte(B::UNIT_BLOCKS + block_idx));
            ([half(0); 2], -half(32) * offset)
        }
        Scales::Multiples => {
            factors = [i32::from(byte(block_idx) as i8); 2];
            ([float; 2], 0.0)
        }
        Scales::HalfMultiples => {
            factors = both(block_idx).map(|b| i32::from(b as i8));
            ([float; 2], 0.0)
        }
        Scales::FourBit => {
            factors = both(block_idx).map(|b| i32::from(b & 15));
            shifts = both(block_idx).map(|b| i32::from(b >> 4));
            ([half(0); 2], -half(32))
        }
    };
    for h in 0..2 {
        block.factors[h][lane] = factors[h];
        block.shifts[h][lane] = shifts[h];
        block.steps[h][lane] = steps[h];
    }
    block.base[lane] = base;
}

/// The code of dword `j` at a place of a line.
fn unpack_code(codes: Codes, block: &[u8], j: usize, at: usize) -> u8 {
    let line = |l: usize| block[l * 64 + at];
    let nibble = || line(j % 4) >> (j / 4 * 4) & 15;
    let pair = || line(j / 4) >> (j % 4 * 2) & 3;
    match codes {
        Codes::Bytes => line(j),
        Codes::Nibbles => nibble(),
        Codes::FiveBits => nibble() | (line(4) >> j & 1) << 4,
        Codes::SixBits => nibble() | (line(4 + j / 4) >> (j % 4 * 2) & 3) << 4,
        Codes::TwoBits => pair(),
        Codes::ThreeBits => pair() | (line(2) >> j & 1) << 2,
    }
}
