//! Seeded mutations of a valid file: the reader answers, whatever it is given, and
//! takes no more memory than the file's size explains.
//!
//! One test only: it looks at the memory of its whole process.

use candor_modelfile::{Index, gguf};
use candor_testkit::mutate::mutate;
use candor_testkit::{Random, TinyModel};

mod support;
use support::{Budget, peak_kb};

const ROUNDS: usize = 20_000;

/// The file has about 60 kB, and a parsed one takes some multiple of that. A count
/// that was believed would ask for at least a hundred times this.
const GROWTH_KB_MAX: u64 = 4_096;

#[test]
fn mutated_files_never_panic_nor_take_memory() {
    let whole = TinyModel::qwen2().layers(1).rope_freqs().encode();
    let change = |random: &mut Random| mutate(&whole.bytes, whole.table_end, random);
    let mut random = Random::new(20_26);
    // What the process needs in any case is in memory before it is measured.
    for _ in 0..100 {
        parse(&change(&mut random));
    }
    let before = peak_kb();
    let (mut parsed, mut rounds) = (0, 0);
    let budget = Budget::rounds(ROUNDS);
    while budget.allows(rounds) {
        parsed += usize::from(parse(&change(&mut random)));
        rounds += 1;
    }
    println!("{rounds} mutations, {parsed} of them parsed");
    // Both outcomes have to occur, or the mutations test nothing.
    assert!(
        parsed > rounds / 100 && parsed < rounds,
        "{parsed} of {rounds} parsed"
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
