//! Every table that this machine can run, against the scalar truth.

use candor_quant::QuantType;
use half::f16;

use super::check::{AttentionCase, Case, first_miss, numbers, row_misses};
use super::format::FORMATS;
use super::kernels::{Isa, Kernels, choose, tables};
use super::{Panel, portable};

/// Runs `check` for each table of this machine, and says which were left out.
fn each_table(check: impl Fn(&'static Kernels)) {
    for (kernels, present) in tables() {
        if present {
            check(kernels);
        } else {
            eprintln!("NOT RUN: this machine has no {} instructions", kernels.name);
        }
    }
}

#[test]
fn every_table_passes_the_check_of_the_start() {
    each_table(|kernels| assert_eq!(first_miss(kernels), None, "{}", kernels.name));
}

#[test]
fn a_wrong_kernel_is_found_and_named() {
    let spoilt = Kernels {
        add: |_, _| (),
        ..portable::KERNELS
    };
    assert_eq!(first_miss(&spoilt).as_deref(), Some("the sum"));
    let mut spoilt = portable::KERNELS;
    spoilt.linear.swap(3, 4);
    assert_eq!(
        first_miss(&spoilt).as_deref(),
        Some("the product with Q4_0 weights")
    );
}

#[test]
fn the_wanted_table_is_chosen() {
    for (kernels, present) in tables() {
        let chosen = choose(Some(kernels.isa));
        assert_eq!(chosen.kernels.isa == kernels.isa, present);
        assert_eq!(chosen.reason.is_none(), present);
    }
    assert_eq!(choose(Some(Isa::Portable)).kernels.name, "portable");
    assert!(choose(None).reason.is_none());
}

/// All rows together within the tolerance, and in any tiles the same bits.
fn check_product(quant: &QuantType, outputs: usize, cols: usize, rows: usize) {
    let weights = numbers(outputs * cols, 11);
    let acts = numbers(rows * cols, 12);
    let case = Case::new(quant, &weights, &acts, cols).expect("whole blocks");
    each_table(|kernels| {
        let what = format!("{} {outputs} {cols} {rows} {}", quant.name, kernels.name);
        let together = case.compute(kernels, rows);
        assert_eq!(case.misses(&together), 0, "{what}");
        for rows_per_tile in [1, 2, 5] {
            let apart = case.compute(kernels, rows_per_tile);
            assert!(bits(&apart) == bits(&together), "{what} by {rows_per_tile}");
        }
    });
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|n| n.to_bits()).collect()
}

#[test]
fn products_are_right_and_do_not_depend_on_their_neighbours() {
    for format in &FORMATS {
        let block = format.quant.block_elems.max(32);
        for rows in 1..=9 {
            check_product(format.quant, 50, block * (rows % 3 + 1), rows);
        }
        for outputs in [1, 15, 16, 17, 64, 400] {
            check_product(format.quant, outputs, block, 3);
        }
    }
}

#[test]
fn any_bytes_are_a_matrix() {
    // Every code and every scale that a file can hold; scales that are no number stay visible.
    for format in FORMATS.iter().filter(|f| f.quant.dot.is_some()) {
        let quant = format.quant;
        let cols = 2 * quant.block_elems.max(32);
        let bytes = quant.bytes_for(20 * cols).expect("whole blocks");
        let mut tensor = Vec::new();
        let mut seed = 1;
        while tensor.len() < bytes {
            let scaled = numbers(bytes, seed);
            tensor.extend(scaled.iter().map(|v| (v * 127.0) as i8 as u8));
            seed += 1;
        }
        tensor.truncate(bytes);
        if quant.name == "MXFP4" {
            // Greater exponents overflow in one order of sums and not in another.
            for block in tensor.chunks_exact_mut(quant.block_bytes) {
                block[0] %= 240;
            }
        }
        let acts = numbers(4 * cols, 3);
        let case = Case::of_tensor(quant, tensor, &acts, cols).expect("whole blocks");
        each_table(|kernels| {
            let got = case.compute(kernels, 4);
            assert_eq!(case.misses(&got), 0, "{} {}", quant.name, kernels.name);
        });
    }
}

/// A block whose codes are all `code`, with a small step.
fn uniform_block(quant: &QuantType, code: u8) -> Vec<u8> {
    let mut block = vec![code; quant.block_bytes];
    let small = f16::from_f32(0.01).to_bits();
    let halves = match quant.name {
        // The upper nibbles of every second byte are those of the number.
        "IQ1_M" => {
            for (i, byte) in block[48..].iter_mut().skip(1).step_by(2).enumerate() {
                *byte = (*byte & 15) | ((small >> (4 * i)) << 4) as u8;
            }
            return block;
        }
        // 2^(120 - 128)
        "MXFP4" => {
            block[0] = 120;
            return block;
        }
        "NVFP4" => {
            block[..4].fill(0x10);
            return block;
        }
        "Q4_1" | "Q5_1" | "Q4_K" | "Q5_K" => 0..4,
        "Q2_K" => 80..84,
        "Q3_K" => 108..110,
        "Q6_K" => 208..210,
        "TQ1_0" => 52..54,
        "TQ2_0" => 64..66,
        _ => 0..2,
    };
    for half in block[halves].chunks_exact_mut(2) {
        half.copy_from_slice(&small.to_le_bytes());
    }
    block
}

#[test]
fn extreme_codes_do_not_overflow() {
    for format in FORMATS.iter().filter(|f| f.quant.dot.is_some()) {
        let cols = format.quant.block_elems.max(32) * 2;
        // The greatest codes, the least ones, and the least signed byte.
        for (code, act) in [
            (0xff, 1.0),
            (0xff, -1.0),
            (0, -1.0),
            (0x80, 1.0),
            (0x80, -1.0),
        ] {
            let tensor =
                uniform_block(format.quant, code).repeat(16 * cols / format.quant.block_elems);
            let acts = vec![act; 2 * cols];
            let case = Case::of_tensor(format.quant, tensor, &acts, cols).expect("whole blocks");
            each_table(|kernels| {
                let got = case.compute(kernels, 2);
                let what = format!("{} {code} {act} {}", format.quant.name, kernels.name);
                assert_eq!(case.misses(&got), 0, "{what}");
                assert!(got.iter().all(|g| g.is_finite()), "{what}");
            });
        }
    }
}

#[test]
fn what_is_no_number_stays_visible_in_its_row_only() {
    for format in &FORMATS {
        let cols = format.quant.block_elems.max(32);
        let weights = numbers(20 * cols, 4);
        for bad in [f32::NAN, f32::INFINITY] {
            let mut acts = numbers(8 * cols, 5);
            acts[3 * cols + 7] = bad;
            let case = Case::new(format.quant, &weights, &acts, cols).expect("whole blocks");
            each_table(|kernels| {
                for (row, outputs) in case.compute(kernels, 8).chunks_exact(20).enumerate() {
                    let lost = outputs.iter().filter(|o| !o.is_finite()).count();
                    let expected = if row == 3 { 20 } else { 0 };
                    assert_eq!(lost, expected, "{} {}", format.quant.name, kernels.name);
                }
            });
        }
    }
}

#[test]
fn rows_with_tails_are_right() {
    each_table(|kernels| {
        for odd in [0, 1, 7, 8, 15] {
            let misses = row_misses(kernels, odd);
            assert!(misses.is_empty(), "{misses:?} {}", kernels.name);
        }
    });
}

/// How far the exponential may be from the truth, relative; 2^-23 is one unit in the last place.
const EXP_TOLERANCE: f64 = 2.0 / (1u32 << 23) as f64;

/// Whether silu, the only direct user of the exponential, is right for one number; beside
/// the exponential it rounds three times.
fn exp_is_near(kernels: &Kernels, x: f32) -> bool {
    let mut out = [x];
    kernels.silu_mul(&mut out, &[1.0]);
    let wide = f64::from(x);
    let truth = wide / (1.0 + (-wide).exp());
    // Below -88.7 the exponential of -x overflows and the result is zero.
    let overflowed = 90.0 * f64::from(f32::MIN_POSITIVE);
    let tolerance = EXP_TOLERANCE * 2.5 * truth.abs() + overflowed;
    (f64::from(out[0]) - truth).abs() <= tolerance
}

#[test]
fn the_exponential_is_near_everywhere_and_has_its_limits() {
    each_table(|kernels| {
        for step in -20_000..=20_000 {
            let x = step as f32 * 0.005;
            assert!(exp_is_near(kernels, x), "{x} {}", kernels.name);
        }
        let mut limits = [f32::NAN, f32::INFINITY, -1e30, 0.0];
        kernels.silu_mul(&mut limits, &[1.0; 4]);
        assert!(limits[0].is_nan());
        assert_eq!(limits[1..], [f32::INFINITY, 0.0, 0.0]);
    });
}

#[test]
fn attention_is_right_and_does_not_depend_on_its_neighbours() {
    // Head size, heads of the group, rows, first position; the second page is entered in the
    // middle of a batch, and a head size is no whole register.
    let cases = [
        (64, 1, 1, 0),
        (64, 7, 1, 300),
        (64, 3, 20, 0),
        (64, 7, 9, 250),
        (128, 2, 5, 510),
        (64, 3, 2, 1100),
        (80, 4, 7, 40),
        (16, 1, 33, 0),
        (20, 2, 3, 255),
    ];
    for (head_dim, heads, rows, first) in cases {
        for window in [usize::MAX, 300, 40, 1] {
            let plain = || AttentionCase::new(head_dim, heads, rows, first);
            for (mut case, form) in [(plain(), "plain"), (plain().bounded(), "bounded")] {
                case.window = window;
                let what = format!("{head_dim} {heads} {rows} {first} {window} {form}");
                check_attention(&case, rows, &what);
            }
        }
    }
}

fn check_attention(case: &AttentionCase, rows: usize, what: &str) {
    each_table(|kernels| {
        let what = format!("{what} {}", kernels.name);
        assert!(case.is_right(kernels), "{what}");
        let together = case.compute(kernels, rows);
        for rows_per_tile in [1, 2, 3] {
            let apart = case.compute(kernels, rows_per_tile);
            assert!(bits(&apart) == bits(&together), "{what} by {rows_per_tile}");
        }
        for pages in [1, 2] {
            let joined = case.compute_parts(kernels, pages);
            assert!(
                bits(&joined) == bits(&together),
                "{what} in parts of {pages}"
            );
        }
    });
}

#[test]
fn a_key_that_is_no_number_reaches_only_those_who_see_it() {
    let mut case = AttentionCase::new(64, 2, 8, 3);
    case.keys[64 * 7] = f32::NAN;
    case.values[64 * 7] = f32::NAN;
    each_table(|kernels| {
        let out = case.compute(kernels, 8);
        for (row, out) in out.chunks_exact(128).enumerate() {
            // Row r is at position 3 + r.
            assert_eq!(out[0].is_nan(), row >= 4, "{row} {}", kernels.name);
        }
    });
}

#[test]
fn a_panel_takes_other_shapes() {
    let mut panel = Panel::new(4, 256);
    for (rows, cols) in [(2, 512), (1, 64), (9, 1024)] {
        panel.reshape(rows, cols);
        assert_eq!((panel.rows(), panel.cols()), (rows, cols));
        let filled: usize = panel.parts(2).map(|p| p.rows()).sum();
        assert_eq!(filled, rows);
    }
}
