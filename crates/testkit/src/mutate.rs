//! Small changes to a file, such as break what a reader counts on.

use crate::random::Random;

/// One to three changes, most of them in the description, which ends at `description_end`.
pub fn mutate(whole: &[u8], description_end: usize, random: &mut Random) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..=random.below(3) {
        if bytes.is_empty() {
            break;
        }
        let reach = match random.below(4) {
            0 => 64,
            1 | 2 => description_end,
            _ => whole.len(),
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
