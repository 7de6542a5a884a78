//! How much of what the slots hold can serve the next prompt. Pure.

/// What may be taken over from what was computed before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reuse {
    /// Whatever the prompt begins with.
    #[default]
    All,
    /// Where writing computes with other numbers than reading, only what was read: the reply then
    /// equals that of a first run to the last bit. For a seed that somebody chose, and for replay.
    OnlyRead,
    /// Nothing.
    Nothing,
}

/// How a token of a context was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Computed {
    /// While a context was read.
    Read,
    /// While a reply was written.
    Written,
}

/// What a slot's state was computed from, token by token, as far as it was committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotTokens {
    /// Committed tokens, in the order of their positions.
    pub(crate) tokens: Vec<u32>,
    /// How many of the first ones were computed while a context was read.
    pub(crate) read: usize,
    /// When it was last given to a sequence; larger is later, 0 is never.
    pub(crate) used: u64,
}

impl SlotTokens {
    /// Keeps the first tokens only.
    pub(crate) fn cut(&mut self, len: usize) {
        self.tokens.truncate(len);
        self.read = self.read.min(len);
    }

    /// Tokens at the start of `prompt` that need not be computed again.
    pub(crate) fn reusable(&self, prompt: &[u32], reuse: Reuse) -> usize {
        match reuse {
            Reuse::All => reusable(&self.tokens, prompt),
            Reuse::OnlyRead => reusable(&self.tokens[..self.read], prompt),
            Reuse::Nothing => 0,
        }
    }
}

/// Tokens at the start of `prompt` that a slot with `cached` need not compute again. The last
/// token of a prompt always is: its logits choose the first token of the reply.
pub(crate) fn reusable(cached: &[u32], prompt: &[u32]) -> usize {
    let both = cached.iter().zip(prompt);
    let common = both.take_while(|(a, b)| a == b).count();
    common.min(prompt.len().saturating_sub(1))
}

/// Fewer tokens than these are computed sooner than copied: one forward of a few rows costs about
/// as much as one of a single row.
pub(crate) const COPIED_TOKENS_MIN: usize = 16;

/// One slot, as a prompt that looks for a place sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) slot: usize,
    pub(crate) held: &'a SlotTokens,
    /// Whether nobody writes in it.
    pub(crate) is_free: bool,
}

/// Where a prompt begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// In this slot,
    pub(crate) slot: usize,
    /// with what is copied from another one,
    pub(crate) copied_from: Option<usize>,
    /// and so many tokens.
    pub(crate) len: usize,
}

/// Where `prompt` starts; nothing if no slot is free.
///
/// In the slot that it goes on from, if it goes on with at least half of what that holds. A prompt
/// that shares only an opening with another conversation, or with one that is being written,
/// leaves that its state: it takes the slot unused for longest and copies what both begin with.
pub(crate) fn choose(places: &[Place<'_>], prompt: &[u32], reuse: Reuse) -> Option<Start> {
    let common = |place: &Place<'_>| place.held.reusable(prompt, reuse);
    let free = || places.iter().filter(|place| place.is_free);
    let own = free().max_by_key(|place| common(place))?;
    let goes_on = common(own) > 0 && 2 * common(own) >= own.held.tokens.len();
    let best = places.iter().max_by_key(|place| common(place))?;
    if goes_on && common(own) + COPIED_TOKENS_MIN > common(best) {
        return Some(in_place(own, common(own)));
    }
    let others = free().filter(|place| place.slot != best.slot);
    let oldest = |place: &&Place<'_>| place.held.used;
    match others.min_by_key(oldest) {
        Some(target) if common(best) >= COPIED_TOKENS_MIN => Some(Start {
            slot: target.slot,
            copied_from: Some(best.slot),
            len: common(best),
        }),
        _ => free()
            .min_by_key(oldest)
            .map(|place| in_place(place, common(place))),
    }
}

fn in_place(place: &Place<'_>, len: usize) -> Start {
    Start {
        slot: place.slot,
        copied_from: None,
        len,
    }
}

/// Tokens that have to be won by waiting for somebody else to read them: less than that is read
/// alongside.
pub(crate) const AWAITED_TOKENS_MIN: usize = 32;

/// Of the beginning of `prompt`, how much somebody who reads `reading` and has `held` of it will
/// have read soon, if that is worth waiting for.
pub(crate) fn awaited(reading: &[u32], held: usize, found: usize, prompt: &[u32]) -> Option<usize> {
    let common = reusable(reading, prompt);
    (common > held && common >= found + AWAITED_TOKENS_MIN).then_some(common)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_the_last_prompt_token_can_be_reused() {
        let cases: &[(&[u32], &[u32], usize)] = &[
            (&[], &[1], 0),
            (&[1], &[1], 0),
            (&[1, 2, 3], &[1, 2, 3], 2),
            (&[1, 2, 3, 4], &[1, 2, 3], 2),
            (&[1, 2], &[1, 2, 3], 2),
            (&[1, 2], &[2, 1], 0),
            (&[1, 2, 9, 4], &[1, 2, 3, 4], 2),
            (&[1], &[], 0),
        ];
        for (cached, prompt, expected) in cases {
            assert_eq!(reusable(cached, prompt), *expected, "{cached:?} {prompt:?}");
        }
    }

    /// Slots as they stand: what each holds, when it was used last, and whether it is free.
    type Slots<'a> = &'a [(&'a [u32], u64, bool)];

    fn check(
        what: &str,
        slots: Slots<'_>,
        prompt: &[u32],
        expected: Option<(usize, Option<usize>, usize)>,
    ) {
        let held: Vec<SlotTokens> = slots
            .iter()
            .map(|(tokens, used, _)| SlotTokens {
                tokens: tokens.to_vec(),
                read: tokens.len(),
                used: *used,
            })
            .collect();
        let places = held.iter().zip(slots).enumerate();
        let places: Vec<Place<'_>> = places
            .map(|(slot, (held, (.., is_free)))| Place {
                slot,
                held,
                is_free: *is_free,
            })
            .collect();
        let found = choose(&places, prompt, Reuse::All);
        let found = found.map(|start| (start.slot, start.copied_from, start.len));
        assert_eq!(found, expected, "{what}");
    }

    #[test]
    fn a_prompt_goes_on_in_a_slot_or_copies_or_takes_the_one_unused_for_longest() {
        let long: Vec<u32> = (100..140).collect();
        let longer: Vec<u32> = (100..160).collect();
        let other: Vec<u32> = (100..130).chain([1, 2, 3]).collect();
        let (long, longer, other) = (&long[..], &longer[..], &other[..]);
        check("none", &[], &[1], None);
        check("none free", &[(&[], 0, false)], &[1], None);
        let two: Slots<'_> = &[(&[7, 7], 1, true), (&[1, 2], 2, true)];
        check("goes on", two, &[1, 2, 3], Some((1, None, 2)));
        let two: Slots<'_> = &[(&[1], 1, true), (&[1, 2], 2, true)];
        check("the longer", two, &[1, 2, 3], Some((1, None, 2)));
        let two: Slots<'_> = &[(&[7], 5, true), (&[], 0, true)];
        check("never used", two, &[1, 2], Some((1, None, 0)));
        let two: Slots<'_> = &[(&[7], 5, true), (&[8], 4, true)];
        check("oldest", two, &[1, 2], Some((1, None, 0)));
        let two: Slots<'_> = &[(&[1, 2, 3, 4, 5], 2, true), (&[], 0, true)];
        check("a short opening", two, &[1, 9, 9], Some((1, None, 0)));
        check(
            "one slot",
            &[(&[1, 2, 3, 4, 5], 2, true)],
            &[1, 9, 9],
            Some((0, None, 1)),
        );
        // 30 tokens of 60 are shared: less than half would be lost, so it is copied.
        let two: Slots<'_> = &[(longer, 2, true), (&[], 0, true)];
        check(
            "a long opening",
            &two[..1],
            &other[..29],
            Some((0, None, 28)),
        );
        check("copied", two, &other[..29], Some((1, Some(0), 28)));
        check("goes on all the same", two, other, Some((0, None, 30)));
        let busy: Slots<'_> = &[(long, 2, false), (&[9], 1, true), (&[], 0, true)];
        check("from one that writes", busy, other, Some((2, Some(0), 30)));
        let busy: Slots<'_> = &[(long, 2, false), (&other[..20], 1, true)];
        check(
            "nearly as much of its own",
            busy,
            &other[..31],
            Some((1, None, 20)),
        );
        let busy: Slots<'_> = &[(long, 2, false), (&other[..10], 1, true)];
        check("much more elsewhere", busy, other, Some((1, Some(0), 30)));
    }

    #[test]
    fn what_was_written_is_not_taken_over_where_that_would_show() {
        let slot = SlotTokens {
            tokens: vec![1, 2, 3, 4],
            read: 2,
            used: 0,
        };
        let prompt = [1, 2, 3, 4, 5];
        let cases = [(Reuse::All, 4), (Reuse::OnlyRead, 2), (Reuse::Nothing, 0)];
        for (reuse, expected) in cases {
            assert_eq!(slot.reusable(&prompt, reuse), expected, "{reuse:?}");
        }
        let mut cut = slot;
        cut.cut(1);
        assert_eq!((cut.tokens.len(), cut.read), (1, 1));
    }

    #[test]
    fn a_beginning_is_awaited_only_where_that_saves_enough() {
        let reading: Vec<u32> = (0..100).collect();
        let prompt: Vec<u32> = (0..80).chain([7]).collect();
        // Tokens held, tokens found elsewhere, tokens awaited.
        let cases = [
            (0, 0, Some(80)),
            (50, 20, Some(80)),
            (0, 48, Some(80)),
            (0, 49, None),
            (80, 0, None),
            (90, 0, None),
        ];
        for (held, found, expected) in cases {
            assert_eq!(
                awaited(&reading, held, found, &prompt),
                expected,
                "{held} {found}"
            );
        }
    }
}
