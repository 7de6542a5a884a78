//! Speed of the kernels for each storage type: reading a reply (one row of activations; GB/s of
//! weights, to be held against what the machine reads at all) and reading a prompt (256 rows;
//! 10^9 operations a second). The best of several runs counts, since other work disturbs.
//!
//! `cargo bench -p candor-cpu --bench kernels [-- avx2|portable [type]]`
// The kernels are private to the crate, and their folder needs nothing else of it; what only
// the rest of the crate or the tests use is idle here.
#![allow(clippy::print_stdout, dead_code, unreachable_pub, unused_imports)]
#[path = "../src/simd/mod.rs"]
mod simd;

use std::hint::black_box;
use std::sync::Mutex;
use std::time::Instant;

use candor_quant::{QuantType, TYPES};
use simd::{GROUP_ROWS, Input, InputKind, Isa, Kernels, Packed, Panel, TileQueue, choose};

/// More than fits into a cache: 32,768 outputs of 4,096 elements (2,048 of float types).
const DECODE_OUTPUTS: usize = 32_768;
/// The matrix of a prompt stays in the cache, as it does between the tiles of a real one.
const PREFILL: (usize, usize) = (1024, 1024);
const PREFILL_ROWS: usize = 256;
const READ_BYTES: usize = 256 << 20;

fn main() {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let isa = match args.first().map(String::as_str) {
        Some("avx2") => Some(Isa::Avx2),
        Some("portable") => Some(Isa::Portable),
        _ => None,
    };
    let chosen = choose(isa);
    let reason = chosen.reason.unwrap_or_default();
    println!("{} {reason}", chosen.kernels.name);
    for threads in [1, 2] {
        println!(
            "reading, {threads} threads: {:.1} GB/s",
            read_speed(threads)
        );
    }
    for quant in TYPES {
        let wanted = args
            .get(1)
            .is_none_or(|name| quant.name.eq_ignore_ascii_case(name));
        if wanted && Packed::bytes_for(quant, 16, 4096).is_some() {
            report(chosen.kernels, quant);
        }
    }
}

fn report(kernels: &Kernels, quant: &QuantType) {
    let cols = if quant.dot.is_some() { 4096 } else { 2048 };
    let decode = filled(quant, DECODE_OUTPUTS, cols);
    let prefill = filled(quant, PREFILL.0, PREFILL.1);
    print!("{:5}", quant.name);
    for threads in [1, 2] {
        let seconds = product(kernels, &decode, 1, threads);
        let bytes = decode.size_bytes() as f64;
        print!(" | reply x{threads} {:5.1} GB/s", bytes / seconds / 1e9);
    }
    for threads in [1, 2] {
        let seconds = product(kernels, &prefill, PREFILL_ROWS, threads);
        let operations = (2 * PREFILL_ROWS * PREFILL.0 * PREFILL.1) as f64;
        print!(
            " | prompt x{threads} {:5.0} GOP/s",
            operations / seconds / 1e9
        );
    }
    println!();
}

/// A matrix of made-up weights.
fn filled(quant: &QuantType, outputs: usize, cols: usize) -> Packed {
    let row_bytes = quant.bytes_for(cols).unwrap_or(0);
    let mut rows = vec![0; GROUP_ROWS * row_bytes];
    (quant.quantize)(&numbers(GROUP_ROWS * cols), &mut rows);
    let tensor = rows.repeat(outputs / GROUP_ROWS);
    let mut packed = Packed::new(quant, outputs, cols).expect("a type that the kernels take");
    packed.parts(64).for_each(|part| part.fill(&tensor));
    packed
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count)
        .map(|i| ((i * 7919) % 1009) as f32 / 504.5 - 1.0)
        .collect()
}

/// Seconds of a product with some rows.
fn product(kernels: &Kernels, matrix: &Packed, rows: usize, threads: usize) -> f64 {
    let acts = numbers(rows * matrix.cols());
    let mut panel = Panel::new(rows, matrix.cols());
    panel
        .parts(rows)
        .for_each(|mut part| kernels.quantize(&acts, &mut part));
    let input = match matrix.input() {
        InputKind::Codes => Input::Codes(&panel),
        InputKind::Floats => Input::Floats(&acts),
    };
    let mut out = vec![0.0; rows * matrix.rows()];
    let cols_per_tile = if rows == 1 { 1024 } else { 64 };
    best(|| {
        let queue = TileQueue::new(&mut out, matrix.rows(), rows.min(64), cols_per_tile);
        together(threads, || {
            while let Some(mut tile) = queue.take() {
                kernels.linear(matrix, input, &mut tile);
            }
        });
    })
}

/// GB/s of plain reading.
fn read_speed(threads: usize) -> f64 {
    let numbers = vec![1u64; READ_BYTES / 8];
    let seconds = best(|| {
        let parts = Mutex::new(numbers.chunks(numbers.len() / threads));
        together(threads, || {
            let part = parts.lock().ok().and_then(|mut parts| parts.next());
            let mut sums = [0u64; 16];
            for chunk in part.unwrap_or_default().as_chunks::<16>().0 {
                for (sum, number) in sums.iter_mut().zip(chunk) {
                    *sum = sum.wrapping_add(*number);
                }
            }
            black_box(sums);
        });
    });
    READ_BYTES as f64 / seconds / 1e9
}

fn together(threads: usize, work: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(&work);
        }
        work();
    });
}

/// The shortest of some runs, in seconds.
fn best(mut run: impl FnMut()) -> f64 {
    (0..9).fold(f64::INFINITY, |best, _| {
        let start = Instant::now();
        run();
        best.min(start.elapsed().as_secs_f64())
    })
}
