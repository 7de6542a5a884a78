//! Seeded mutations of a valid file: the reader answers, whatever it is given, and
//! takes no more memory than the file's size explains.
//!
//! One test only: it looks at the memory of its whole process.

use candor_modelfile::{Index, gguf};
use candor_testkit::gguf::Encoded;
use candor_testkit::{Random, TinyModel};

const ROUNDS: usize = 20_000;

/// The file has about 60 kB, and a parsed one takes some multiple of that. A count
/// that was believed would ask for at least a hundred times this.
const GROWTH_KB_MAX: u64 = 4_096;

#[test]
fn mutated_files_never_panic_nor_take_memory() {
    let whole = TinyModel::qwen2().layers(1).rope_freqs().encode();
    let mut random = Random::new(20_26);
    // What the process needs in any case is in memory before it is measured.
    for _ in 0..100 {
        parse(&mutate(&whole, &mut random));
    }
    let before = peak_kb();
    let mut parsed = 0;
    for _ in 0..ROUNDS {
        let bytes = mutate(&whole, &mut random);
        parsed += usize::from(parse(&bytes));
    }
    // Both outcomes have to occur, or the mutations test nothing.
    assert!(
        parsed > ROUNDS / 100 && parsed < ROUNDS,
        "{parsed} of {ROUNDS} parsed"
    );
    match (before, peak_kb()) {
        (Some(before), Some(after)) => {
            assert!(
                after - before <= GROWTH_KB_MAX,
                "{before} kB grew to {after} kB"
            );
        }
        _ => eprintln!("NOT RUN: memory of the mutated files: no /proc on this system"),
    }
}

fn parse(bytes: &[u8]) -> bool {
    match gguf::parse(bytes, bytes.len() as u64) {
        Ok(index) => {
            check_promises(&index, bytes.len() as u64);
            true
        }
        Err(error) => {
            assert!(error.to_string().len() < 1000, "{error}");
            false
        }
    }
}

/// What the reader promises of each index that it gives out.
fn check_promises(index: &Index, file_len: u64) {
    let mut ranges = Vec::new();
    for tensor in &index.tensors {
        assert!(!tensor.dims.is_empty() && tensor.elems() > 0, "{tensor:?}");
        let bytes = tensor
            .quant
            .bytes_for(tensor.elems())
            .map(|bytes| bytes as u64);
        assert_eq!(
            bytes,
            Some(tensor.range.end - tensor.range.start),
            "{tensor:?}"
        );
        assert!(tensor.range.end <= file_len, "{tensor:?}");
        ranges.push((tensor.range.start, tensor.range.end));
    }
    ranges.sort_unstable();
    assert!(
        ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0),
        "{ranges:?}"
    );
    if let Some(spec) = &index.tokenizer {
        let n_tokens = spec.tokens.len();
        assert!(spec.types.is_empty() || spec.types.len() == n_tokens);
        assert!(spec.scores.is_empty() || spec.scores.len() == n_tokens);
    }
}

/// One to three changes, most of them in the description.
fn mutate(whole: &Encoded, random: &mut Random) -> Vec<u8> {
    let mut bytes = whole.bytes.clone();
    for _ in 0..=random.below(3) {
        if bytes.is_empty() {
            break;
        }
        let reach = match random.below(4) {
            0 => 64,
            1 | 2 => whole.table_end,
            _ => whole.bytes.len(),
        };
        let at = random.below(reach.min(bytes.len()));
        change(&mut bytes, at, random);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, at: usize, random: &mut Random) {
    let len = 1 + random.below(40);
    let end = (at + len).min(bytes.len());
    match random.below(6) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.bits() as u8,
        2 => {
            let number = awkward(random).to_le_bytes();
            let end = (at + [1, 4, 8][random.below(3)]).min(bytes.len());
            bytes[at..end].copy_from_slice(&number[..end - at]);
        }
        3 => bytes.truncate(at),
        4 => drop(bytes.drain(at..end)),
        _ => {
            let copy = bytes[at..end].to_vec();
            bytes.splice(at..at, copy);
        }
    }
}

/// Numbers at which counts, sizes and places go wrong.
fn awkward(random: &mut Random) -> u64 {
    let edges = [
        0,
        1,
        32,
        255,
        1 << 16,
        1 << 22,
        1 << 31,
        1 << 32,
        1 << 63,
        u64::MAX,
    ];
    let edge: u64 = edges[random.below(edges.len())];
    edge.wrapping_add(random.below(5) as u64).wrapping_sub(2)
}

/// The largest address space that this process ever had.
fn peak_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmPeak:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
