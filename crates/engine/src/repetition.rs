//! Notices a reply that repeats itself word for word and will hardly come to an end by itself.
//! Pure; it stops nothing.

use std::collections::VecDeque;

/// Longest block of tokens that counts as one repeated thing: a long paragraph.
const BLOCK_TOKENS_MAX: usize = 512;

/// A block has to come so often after the first time. Refrains, and rows of a table that are
/// alike, come less often.
const COPIES_MIN: usize = 3;

/// The copies have to be so long together. Rules of dashes and lists of zeros are shorter.
pub const REPEATED_TOKENS_MIN: usize = 128;

/// What a reply repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// Tokens of the block.
    pub block_tokens: usize,
    /// How often it came in full after the first time.
    pub copies: usize,
}

/// Follows the tokens of one reply.
#[derive(Debug)]
pub(crate) struct Repetition {
    /// The last tokens, the newest in front.
    last: VecDeque<u32>,
    /// For each distance, how many of the newest tokens in a row equal the one so far before.
    runs: Vec<usize>,
    noticed: bool,
}

impl Repetition {
    pub(crate) fn new() -> Self {
        Self {
            last: VecDeque::with_capacity(BLOCK_TOKENS_MAX),
            runs: vec![0; BLOCK_TOKENS_MAX],
            noticed: false,
        }
    }

    /// Takes the next token; says once when the reply repeats itself. A few hundred comparisons,
    /// which is nothing beside the computation of a token.
    pub(crate) fn push(&mut self, token: u32) -> Option<Repeated> {
        if self.noticed {
            return None;
        }
        for (run, &before) in self.runs.iter_mut().zip(&self.last) {
            *run = if before == token { *run + 1 } else { 0 };
        }
        if self.last.len() == BLOCK_TOKENS_MAX {
            self.last.pop_back();
        }
        self.last.push_front(token);
        let repeats = |(index, &run): (usize, &usize)| {
            let block_tokens = index + 1;
            let copies = run / block_tokens;
            (copies >= COPIES_MIN && run >= REPEATED_TOKENS_MIN).then_some(Repeated {
                block_tokens,
                copies,
            })
        };
        let found = self.runs.iter().enumerate().find_map(repeats);
        self.noticed = found.is_some();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes `lead`, then `block` over and over; says after how many tokens of the blocks it is
    /// noticed and what.
    fn noticed(lead: &[u32], block: &[u32], tokens: usize) -> Option<(usize, Repeated)> {
        let mut repetition = Repetition::new();
        for &token in lead {
            assert_eq!(repetition.push(token), None, "nothing repeats in the lead");
        }
        let mut found = None;
        for (count, &token) in block.iter().cycle().take(tokens).enumerate() {
            if let Some(repeated) = repetition.push(token) {
                assert_eq!(found, None, "it is said once");
                found = Some((count + 1, repeated));
            }
        }
        found
    }

    #[test]
    fn a_block_is_noticed_after_a_stated_number_of_copies() {
        let lead: Vec<u32> = (1_000..1_300).collect();
        for length in [1, 2, 7, 42, 43, 60, 300, BLOCK_TOKENS_MAX] {
            let block: Vec<u32> = (0..length as u32).collect();
            // The first time is no copy.
            let need = length + (COPIES_MIN * length).max(REPEATED_TOKENS_MIN);
            let (after, repeated) = noticed(&lead, &block, need + 2_000).unwrap();
            assert_eq!((after, repeated.block_tokens), (need, length));
            assert_eq!(repeated.copies, (need - length) / length);
            assert_eq!(noticed(&lead, &block, need - 1), None, "{length}");
        }
    }

    #[test]
    fn what_differs_in_one_token_or_is_too_long_is_no_repetition() {
        let long: Vec<u32> = (0..=BLOCK_TOKENS_MAX as u32).collect();
        assert_eq!(noticed(&[], &long, 10_000), None);
        let mut repetition = Repetition::new();
        for paragraph in 0..100 {
            // A numbered list: all alike but for the number.
            let said = (0..50).any(|token| repetition.push(token).is_some());
            assert!(!said && repetition.push(1_000 + paragraph).is_none());
        }
    }
}
