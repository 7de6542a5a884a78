//! How the chunk of a forward is shared among those that read. Pure.

/// No reader gets less while there is something to share: short prompts are then read one after
/// the other, which gets each of them its first token sooner than if all crept along.
pub(super) const SHARE_TOKENS_MIN: usize = 64;

/// Of `chunk` tokens, how many each of these readers gets, who come in the order in which they are
/// served. All get an equal share, and what one does not need goes to the next.
pub(super) fn share(wanted: &[usize], chunk: usize) -> Vec<usize> {
    let equal = chunk / wanted.len().max(1);
    let most = equal.max(SHARE_TOKENS_MIN);
    let mut left = chunk;
    let mut shares: Vec<usize> = wanted
        .iter()
        .map(|&wanted| {
            let share = wanted.min(most).min(left);
            left -= share;
            share
        })
        .collect();
    for (share, &wanted) in shares.iter_mut().zip(wanted) {
        let more = (wanted - *share).min(left);
        *share += more;
        left -= more;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_shared_evenly_and_used_up() {
        let cases: [(&[usize], usize, &[usize]); 9] = [
            (&[], 512, &[]),
            (&[700], 512, &[512]),
            (&[10], 512, &[10]),
            (&[700, 700], 512, &[256, 256]),
            (&[10, 700], 512, &[10, 502]),
            (&[700, 10], 512, &[502, 10]),
            (&[300, 300, 300, 300], 512, &[128, 128, 128, 128]),
            (&[70, 70, 70, 70], 128, &[64, 64, 0, 0]),
            (&[20; 9], 128, &[20, 20, 20, 20, 20, 20, 8, 0, 0]),
        ];
        for (wanted, chunk, expected) in cases {
            assert_eq!(share(wanted, chunk), expected, "{wanted:?} of {chunk}");
        }
    }
}
