//! Q4_K as the tool encodes it. Found by trying: it gives the bytes of all its files.

/// Values of a block, and of each of its eight parts.
const ELEMS: usize = 256;
const PART: usize = 32;

/// The smallest step of a part: the smallest half float that is not subnormal.
const STEP_MIN: f32 = 1.0 / 16_384.0;

/// Blocks of whole rows.
pub(super) fn encode(values: &[f32]) -> Vec<u8> {
    values.chunks_exact(ELEMS).flat_map(block).collect()
}

/// A step and a base for each part, in 63rds of the largest ones, which divide before they are
/// rounded to half precision.
fn block(values: &[f32]) -> Vec<u8> {
    let parts: Vec<(f32, f32)> = values.chunks_exact(PART).map(step_and_base).collect();
    let largest = |of: fn(&(f32, f32)) -> f32| parts.iter().map(of).fold(0.0, f32::max) / 63.0;
    let (step, base) = (largest(|part| part.0), largest(|part| part.1));
    let code = |value: f32, unit: f32| match unit {
        0.0 => 0,
        unit => (value / unit).round().min(63.0) as u8,
    };
    let codes: Vec<[u8; 2]> = parts
        .iter()
        .map(|part| [code(part.0, step), code(part.1, base)])
        .collect();
    let half = &candor_quant::types::f16::TYPE;
    let mut block = vec![0; 4];
    (half.quantize)(&[step, base], &mut block);
    let six_bits = |at: usize, of: usize| (codes[at][of] & 63) | (codes[at + 4][of] >> 4 << 6);
    block.extend((0..4).map(|at| six_bits(at, 0)));
    block.extend((0..4).map(|at| six_bits(at, 1)));
    block.extend(codes[4..].iter().map(|[s, b]| (s & 15) | (b << 4)));
    let nibble = |at: usize| {
        let [s, b] = codes[at / PART].map(f32::from);
        let (step, base) = (step * s, base * b);
        match step {
            0.0 => 0,
            step => ((values[at] + base) / step).round().clamp(0.0, 15.0) as u8,
        }
    };
    for pair in (0..ELEMS).step_by(2 * PART) {
        block.extend((pair..pair + PART).map(|at| nibble(at) | (nibble(at + PART) << 4)));
    }
    block
}

/// Of fifteen steps from the smallest value to the largest; the base is what is taken off, and
/// cannot be below zero.
fn step_and_base(part: &[f32]) -> (f32, f32) {
    let smallest = part.iter().copied().fold(f32::INFINITY, f32::min);
    let largest = part.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    (
        ((largest - smallest) / 15.0).max(STEP_MIN),
        (-smallest).max(0.0),
    )
}
