//! How fast this machine reads memory: the bound of decoding, which reads every weight once for
//! each token.

use std::hint::black_box;
use std::thread;

use crate::config::Clock;

/// Bytes of the block that is read: more than the caches of any processor that people chat on.
const BLOCK_BYTES: usize = 256 << 20;

/// How often it is read; the fastest counts, since whatever disturbs only slows.
const PASSES: usize = 4;

/// Bytes read per second by so many threads together.
pub fn read_bandwidth(threads: usize, clock: &Clock) -> f64 {
    let threads = threads.max(1);
    // Written once, so that every page is memory of its own.
    let block: Vec<u64> = (0..(BLOCK_BYTES / size_of::<u64>()) as u64).collect();
    let part = block.len().div_ceil(threads);
    let mut best = 0.0f64;
    for _ in 0..PASSES {
        let started = (clock.instant)();
        thread::scope(|scope| {
            for part in block.chunks(part) {
                scope.spawn(move || black_box(sum(part)));
            }
        });
        let took = (clock.instant)()
            .saturating_duration_since(started)
            .as_secs_f64();
        if took > 0.0 {
            best = best.max(BLOCK_BYTES as f64 / took);
        }
    }
    best
}

/// Reads all of it. Eight sums do not wait for each other, so memory is the bound.
fn sum(part: &[u64]) -> u64 {
    let mut sums = [0u64; 8];
    let (wide, rest) = part.as_chunks::<8>();
    for values in wide {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = sum.wrapping_add(*value);
        }
    }
    sums.iter()
        .chain(rest)
        .fold(0, |all, value| all.wrapping_add(*value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_read() {
        let values: Vec<u64> = (1..=1_003).collect();
        assert_eq!(sum(&values), 1_003 * 1_004 / 2);
        assert_eq!(sum(&values[..3]), 6);
    }
}
