//! Random numbers without a generator: draw `n` of a reply depends on `(seed, n)` alone, so a
//! reply can be continued, replayed or computed on another device and stay the same.

/// 2^64 divided by the golden ratio, odd: the step of SplitMix64 (Steele, Lea and Flood, "Fast
/// splittable pseudorandom number generators", 2014).
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A number in `[0, 1)`.
pub(crate) fn uniform(seed: u64, draw: u64) -> f64 {
    // Mixing the seed first keeps the sequences of neighbouring seeds apart.
    let bits = mix(mix(seed).wrapping_add(draw.wrapping_add(1).wrapping_mul(STEP)));
    // The 53 upper bits are what a float64 can hold exactly.
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// The finaliser of SplitMix64 (the same paper): every input bit reaches every output bit.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_fill_the_interval_evenly_for_neighbouring_seeds_and_counts() {
        // 10,000 draws into 10 bins: 1,000 each, standard deviation 30; five of those are allowed.
        for by_seed in [false, true] {
            let mut bins = [0i32; 10];
            for n in 0..10_000u64 {
                let x = if by_seed {
                    uniform(n, 0)
                } else {
                    uniform(1, n)
                };
                assert!((0.0..1.0).contains(&x));
                bins[(x * 10.0) as usize] += 1;
            }
            assert!(
                bins.iter().all(|&count| (count - 1_000).abs() < 150),
                "{bins:?}"
            );
        }
    }

    #[test]
    fn same_seed_and_count_give_the_same_number() {
        assert_eq!(uniform(7, 3).to_bits(), uniform(7, 3).to_bits());
        assert_ne!(uniform(7, 3).to_bits(), uniform(7, 4).to_bits());
        assert_ne!(uniform(7, 3).to_bits(), uniform(8, 3).to_bits());
    }
}
