//! Operations on rows of floats.

use candor_backend::KvType;
use half::f16;

use super::super::attention::{KV_PAGE, key_place, page_numbers};
use super::super::coded::{CodedHead, append_coded};
use super::super::delta::DeltaStep;
use super::super::kernels::Kernels;
use super::super::panel::Panel;
use super::super::portable;
use super::numbers;

/// Elements of a row: blocks of 32, and with the odd ones a tail in every register width.
const COLS: usize = 224;

/// How far results of one or two roundings more may be from the truth, relative.
const ROW_TOLERANCE: f32 = 1e-6;

/// The operations that give wrong results on rows of `224 + odd` elements.
pub(in crate::simd) fn row_misses(kernels: &Kernels, odd: usize) -> Vec<&'static str> {
    let row: Vec<f32> = numbers(COLS + odd, 5).iter().map(|v| v * 20.0).collect();
    let other = numbers(COLS + odd, 6);
    let checks: [(&'static str, bool); 7] = [
        ("the rounding to 8 bits", quantize_is_right(kernels)),
        ("the norm", norm_is_right(kernels, &row, &other)),
        ("the gate", gate_is_right(kernels, &row, &other)),
        ("the sum", sum_is_right(kernels, &row, &other)),
        ("half precision", half_is_right(kernels, &row)),
        ("the delta rule", delta_is_right(kernels, 8 + odd)),
        (
            "keys and values in 8 bits",
            unfold_is_right(kernels, 40 + odd),
        ),
    ];
    checks
        .into_iter()
        .filter(|(_, right)| !right)
        .map(|(name, _)| name)
        .collect()
}

/// Codes, scales and sums equal those of `candor_quant` bit for bit.
fn quantize_is_right(kernels: &Kernels) -> bool {
    let mut values = numbers(COLS, 7);
    // Ties, nothing at all, too little to have an inverse, and what is no number.
    values[..4].copy_from_slice(&[127.0, 2.5, 3.5, -0.5]);
    values[32..64].fill(0.0);
    values[64..96].fill(1e-38);
    values[100] = f32::NAN;
    values[130] = f32::NEG_INFINITY;
    let quantized = |quantize: &dyn Fn(&mut Panel)| {
        let mut panel = Panel::new(1, COLS);
        quantize(&mut panel);
        panel
    };
    let got = quantized(&|p| {
        p.parts(1)
            .for_each(|mut p| kernels.quantize(&values, &mut p))
    });
    let truth = quantized(&|p| {
        p.parts(1)
            .for_each(|mut p| portable::KERNELS.quantize(&values, &mut p));
    });
    got.same_bits(&truth)
}

fn norm_is_right(kernels: &Kernels, row: &[f32], weight: &[f32]) -> bool {
    let mut out = vec![f32::NAN; row.len()];
    kernels.rms_norm(row, weight, 1e-5, &mut out);
    let squares: f64 = row.iter().map(|v| f64::from(*v).powi(2)).sum();
    let factor = 1.0 / (squares / row.len() as f64 + 1e-5).sqrt();
    let truth = row.iter().map(|v| (f64::from(*v) * factor) as f32);
    out.iter()
        .zip(truth.zip(weight))
        .all(|(o, (t, w))| near(*o, t * w))
}

fn gate_is_right(kernels: &Kernels, gate: &[f32], up: &[f32]) -> bool {
    let mut out = gate.to_vec();
    kernels.silu_mul(&mut out, up);
    out.iter().zip(gate.iter().zip(up)).all(|(o, (g, u))| {
        let wide = f64::from(*g);
        near(*o, (wide / (1.0 + (-wide).exp()) * f64::from(*u)) as f32)
    })
}

fn sum_is_right(kernels: &Kernels, row: &[f32], addend: &[f32]) -> bool {
    let mut out = row.to_vec();
    kernels.add(&mut out, addend);
    out.iter()
        .zip(row.iter().zip(addend))
        .all(|(o, (r, a))| *o == r + a)
}

fn half_is_right(kernels: &Kernels, row: &[f32]) -> bool {
    let mut out = vec![0; row.len()];
    kernels.half_bits(row, &mut out);
    out.iter()
        .zip(row)
        .all(|(o, r)| *o == f16::from_f32(*r).to_bits())
}

/// The same bits from every table, in columns of every width.
fn delta_is_right(kernels: &Kernels, odd: usize) -> bool {
    let (keys, values) = (7, 64 + odd);
    let (vectors, value) = (numbers(2 * keys, 8), numbers(values, 9));
    let told = |kernels: &Kernels| {
        let (mut state, mut out) = (numbers(keys * values, 10), vec![f32::NAN; values]);
        kernels.delta(DeltaStep {
            state: &mut state,
            query: &vectors[..keys],
            key: &vectors[keys..],
            value: &value,
            decay: 0.75,
            beta: 0.5,
            scale: 0.25,
            out: &mut out,
        });
        (state, out)
    };
    told(kernels) == told(&portable::KERNELS)
}

/// The same bits from every table, of heads with a tail.
fn unfold_is_right(kernels: &Kernels, head_dim: usize) -> bool {
    let positions = 19;
    let bytes = KV_PAGE * KvType::Q8_0.head_bytes(head_dim);
    let (mut keys, mut values) = (vec![0; bytes], vec![0; bytes]);
    let rows = numbers(2 * positions * head_dim, 11);
    for (position, row) in rows.chunks_exact(2 * head_dim).enumerate() {
        let (key, value) = row.split_at(head_dim);
        append_coded(position, key, value, (&mut keys, &mut values));
    }
    let page = CodedHead {
        keys: &keys,
        values: &values,
    };
    let unfolded = |kernels: &Kernels| {
        let mut keys = vec![0; page_numbers(head_dim)];
        let mut values = keys.clone();
        kernels.unfold(page, (head_dim, positions), &mut keys, &mut values);
        // Positions are unfolded sixteen at a time by some, one by one by others.
        let key = |i: usize| keys[key_place(head_dim, i / head_dim, i % head_dim)];
        let seen = positions * head_dim;
        let keys: Vec<u16> = (0..seen).map(key).collect();
        (keys, values[..seen].to_vec())
    };
    unfolded(kernels) == unfolded(&portable::KERNELS)
}

fn near(got: f32, truth: f32) -> bool {
    (got - truth).abs() <= ROW_TOLERANCE * truth.abs()
}
