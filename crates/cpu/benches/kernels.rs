//! Speed of each kernel with each set of instructions that this machine has, on one thread.
//!
//! * `reply`: one row of activations against a matrix that no cache holds; GB/s of weights, to be
//!   held against `read`, which is what the machine reads at all.
//! * `prompt`: 256 rows; a product and a sum are two operations.
//! * `attention`: one position that sees 4,096; GB/s of keys and values. `attention of a prompt`:
//!   32 rows that see as many. `unfold`: 8-bit keys and values; GB/s of what comes out.
//! * `rows`: what is done to a row of 4,096 numbers.
//!
//! `cargo bench -p candor-cpu --bench kernels [-- FILTER]`, where the filter is part of a name such
//! as `reply/AVX2/Q4_K`.
// The kernels are private to the crate, and their folder needs nothing else of it; what only
// the rest of the crate or the tests use is idle here.
#![allow(missing_docs, dead_code, unreachable_pub, unused_imports)]
#[path = "../src/simd/mod.rs"]
mod simd;

use std::hint::black_box;
use std::time::Duration;

use candor_backend::KvType;
use candor_quant::{QuantType, TYPES};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use simd::{
    Arena, Attention, CodedHead, DeltaStep, GROUP_ROWS, Input, InputKind, Isa, KV_PAGE, Kernels,
    KvHead, Packed, Panel, TileQueue, choose,
};

/// More than fits into a cache: 32,768 outputs of 4,096 elements (2,048 of float types).
const REPLY_OUTPUTS: usize = 32_768;
/// The matrix of a prompt stays in the cache, as it does between the tiles of a real one.
const PROMPT: (usize, usize) = (1024, 1024);
const PROMPT_ROWS: usize = 256;
/// Read, and filled with keys and values.
const READ_BYTES: usize = 128 << 20;
/// Of one position.
const CONTEXT_PAGES: usize = 16;
/// Sizes of heads, and how many share a key head: those of the models that are measured.
const HEADS: [(usize, usize); 4] = [(64, 3), (64, 7), (128, 6), (256, 4)];
/// Rows of a tile of a prompt.
const TILE_ROWS: usize = 32;
/// Numbers of a row.
const ROW: usize = 4_096;

/// The tables that this machine can run.
fn tables() -> Vec<&'static Kernels> {
    [Isa::Avx512, Isa::Avx2, Isa::Portable]
        .map(|isa| choose(Some(isa)))
        .into_iter()
        .filter(|chosen| chosen.reason.is_none())
        .map(|chosen| chosen.kernels)
        .collect()
}

fn products(c: &mut Criterion) {
    for quant in TYPES {
        if Packed::bytes_for(quant, GROUP_ROWS, ROW).is_none() {
            continue;
        }
        // A matrix of 60 MB and more is made only where it is asked for.
        let mut reply = None;
        let mut prompt = None;
        for kernels in tables() {
            let mut group = c.benchmark_group(format!("reply/{}", kernels.name));
            let cols = if quant.dot.is_some() { ROW } else { ROW / 2 };
            let bytes = Packed::bytes_for(quant, REPLY_OUTPUTS, cols).unwrap_or(0);
            group.throughput(Throughput::Bytes(bytes as u64));
            group.bench_function(quant.name, |b| {
                let matrix = reply.get_or_insert_with(|| filled(quant, REPLY_OUTPUTS, cols));
                let product = Product::new(kernels, matrix, 1);
                b.iter(|| product.run(matrix));
            });
            group.finish();
            let mut group = c.benchmark_group(format!("prompt/{}", kernels.name));
            let operations = 2 * PROMPT_ROWS * PROMPT.0 * PROMPT.1;
            group.throughput(Throughput::Elements(operations as u64));
            group.bench_function(quant.name, |b| {
                let matrix = prompt.get_or_insert_with(|| filled(quant, PROMPT.0, PROMPT.1));
                let product = Product::new(kernels, matrix, PROMPT_ROWS);
                b.iter(|| product.run(matrix));
            });
            group.finish();
        }
    }
}

/// Activations for a matrix.
struct Product {
    kernels: &'static Kernels,
    rows: usize,
    floats: Vec<f32>,
    panel: Panel,
}

impl Product {
    fn new(kernels: &'static Kernels, matrix: &Packed, rows: usize) -> Self {
        let floats = numbers(rows * matrix.cols());
        let mut panel = Panel::new(rows, matrix.cols());
        let parts = panel.parts(rows);
        parts.for_each(|mut part| kernels.quantize(&floats, &mut part));
        Self {
            kernels,
            rows,
            floats,
            panel,
        }
    }

    fn run(&self, matrix: &Packed) -> Vec<f32> {
        let input = match matrix.input() {
            InputKind::Codes => Input::Codes(&self.panel),
            InputKind::Floats => Input::Floats(&self.floats),
        };
        let mut out = vec![0.0; self.rows * matrix.rows()];
        let cols_per_tile = if self.rows == 1 { 1024 } else { 64 };
        let queue = TileQueue::new(&mut out, matrix.rows(), self.rows.min(64), cols_per_tile);
        while let Some(mut tile) = queue.take() {
            self.kernels.linear(matrix, input, &mut tile);
        }
        out
    }
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

fn attention(c: &mut Criterion) {
    for (head_dim, heads) in HEADS {
        let page = KV_PAGE * head_dim;
        let n_pages = READ_BYTES / (4 * page);
        let mut arena = Arena::new(READ_BYTES).expect("memory");
        let mut kept = arena.take(4 * page * n_pages).expect("memory");
        let halves = kept.as_mut_slice::<u16>();
        for (i, half) in halves.iter_mut().enumerate() {
            *half = 0x2c00 + (i * 7919 % 2048) as u16;
        }
        let pages: Vec<KvHead<'_>> = halves
            .chunks_exact(2 * page)
            .map(|both| KvHead {
                keys: &both[..page],
                values: &both[page..],
            })
            .collect();
        for kernels in tables() {
            let name = format!("{head_dim} by {heads}");
            let mut group = c.benchmark_group(format!("attention/{}", kernels.name));
            group.throughput(Throughput::Bytes((4 * page * n_pages) as u64));
            group.bench_function(&name, |b| {
                b.iter(|| {
                    for span in pages.chunks(CONTEXT_PAGES) {
                        black_box(attend(kernels, (head_dim, heads), span, 1));
                    }
                });
            });
            group.finish();
            let mut group = c.benchmark_group(format!("attention of a prompt/{}", kernels.name));
            let operations = 4 * CONTEXT_PAGES * page * heads * TILE_ROWS;
            group.throughput(Throughput::Elements(operations as u64));
            group.bench_function(&name, |b| {
                let span = &pages[..CONTEXT_PAGES];
                b.iter(|| attend(kernels, (head_dim, heads), span, TILE_ROWS));
            });
            group.finish();
        }
    }
}

/// The last rows of a context, and what they see.
fn attend(
    kernels: &Kernels,
    (head_dim, heads): (usize, usize),
    pages: &[KvHead<'_>],
    rows: usize,
) -> Vec<f32> {
    let width = heads * head_dim;
    let queries = numbers(rows * width);
    let mut out = vec![0.0; rows * width];
    let attention = Attention {
        queries: &queries,
        head_dim,
        pages,
        first_page: 0,
        first_position: pages.len() * KV_PAGE - rows,
        window: usize::MAX,
        scale: 0.1,
        softcap: None,
        sinks: None,
    };
    let queue = TileQueue::new(&mut out, width, rows, width);
    if let Some(mut tile) = queue.take() {
        kernels.attend(&attention, &mut tile);
    }
    out
}

fn unfold(c: &mut Criterion) {
    let head_dim = 64;
    let coded = vec![7u8; KV_PAGE * KvType::Q8_0.head_bytes(head_dim)];
    let page = CodedHead {
        keys: &coded,
        values: &coded,
    };
    let mut keys = vec![0; KV_PAGE * head_dim];
    let mut values = keys.clone();
    for kernels in tables() {
        let mut group = c.benchmark_group(format!("unfold/{}", kernels.name));
        group.throughput(Throughput::Bytes((4 * KV_PAGE * head_dim) as u64));
        group.bench_function("64", |b| {
            b.iter(|| kernels.unfold(page, (head_dim, KV_PAGE), &mut keys, &mut values));
        });
        group.finish();
    }
}

fn rows(c: &mut Criterion) {
    let (row, weight) = (numbers(ROW), numbers(ROW));
    for kernels in tables() {
        let mut group = c.benchmark_group(format!("rows/{}", kernels.name));
        group.throughput(Throughput::Elements(ROW as u64));
        let mut panel = Panel::new(1, ROW);
        group.bench_function("quantize", |b| {
            b.iter(|| {
                let parts = panel.parts(1);
                parts.for_each(|mut part| kernels.quantize(&row, &mut part));
            });
        });
        let mut out = row.clone();
        group.bench_function("rms_norm", |b| {
            b.iter(|| kernels.rms_norm(&row, &weight, 1e-5, &mut out));
        });
        group.bench_function("silu_mul", |b| {
            b.iter(|| {
                out.copy_from_slice(&row);
                kernels.silu_mul(&mut out, &weight);
            });
        });
        group.bench_function("add", |b| b.iter(|| kernels.add(&mut out, &weight)));
        let mut halves = vec![0; ROW];
        group.bench_function("half_bits", |b| {
            b.iter(|| kernels.half_bits(&row, &mut halves));
        });
        // 64 keys by 64 values.
        let mut state = numbers(ROW);
        group.bench_function("delta", |b| {
            b.iter(|| {
                kernels.delta(DeltaStep {
                    state: &mut state,
                    query: &row[..64],
                    key: &row[64..128],
                    value: &row[128..192],
                    decay: 0.9,
                    beta: 0.1,
                    scale: 0.125,
                    out: &mut out[..64],
                });
            });
        });
        group.finish();
    }
}

fn read(c: &mut Criterion) {
    let mut group = c.benchmark_group("read");
    group.throughput(Throughput::Bytes(READ_BYTES as u64));
    let mut arena = Arena::new(READ_BYTES).expect("memory");
    let mut memory = arena.take(READ_BYTES).expect("memory");
    memory.as_mut_slice::<u64>().fill(1);
    group.bench_function("one thread", |b| {
        b.iter(|| {
            let mut sums = [0u64; 16];
            for chunk in memory.as_slice::<u64>().as_chunks::<16>().0 {
                for (sum, number) in sums.iter_mut().zip(chunk) {
                    *sum = sum.wrapping_add(*number);
                }
            }
            sums
        });
    });
    group.finish();
}

/// Short, since there are some hundred of them.
fn settings() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600))
        .without_plots()
}

criterion_group! {
    name = kernels;
    config = settings();
    targets = read, products, attention, unfold, rows
}
criterion_main!(kernels);
