//! How much of what a slot holds can serve the next prompt. Pure.

/// What a slot's state was computed from, token by token, as far as it was committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotTokens {
    /// Committed tokens, in the order of their positions.
    pub(crate) tokens: Vec<u32>,
    /// When it was last given to a sequence; larger is later, 0 is never.
    pub(crate) used: u64,
}

/// Tokens at the start of `prompt` that a slot with `cached` need not compute again. The last
/// token of a prompt always is: its logits choose the first token of the reply.
pub(crate) fn reusable(cached: &[u32], prompt: &[u32]) -> usize {
    let common = cached
        .iter()
        .zip(prompt)
        .take_while(|(a, b)| a == b)
        .count();
    common.min(prompt.len().saturating_sub(1))
}

/// The slot, of those that are free, in which `prompt` starts.
///
/// The most reusable one, if the prompt goes on with at least half of what it holds; a prompt that
/// shares only an opening with another conversation takes the slot unused for longest instead and
/// leaves that conversation its state.
pub(crate) fn choose<'a>(
    free: impl Iterator<Item = (usize, &'a SlotTokens)> + Clone,
    prompt: &[u32],
) -> Option<usize> {
    let best = free
        .clone()
        .max_by_key(|(_, slot)| reusable(&slot.tokens, prompt));
    let goes_on = best.filter(|(_, slot)| {
        let reusable = reusable(&slot.tokens, prompt);
        reusable > 0 && 2 * reusable >= slot.tokens.len()
    });
    goes_on
        .or_else(|| free.min_by_key(|(_, slot)| slot.used))
        .map(|(slot_idx, _)| slot_idx)
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

    #[test]
    fn a_prompt_takes_the_slot_it_continues_or_the_one_unused_for_longest() {
        type Slots<'a> = &'a [(&'a [u32], u64)];
        let cases: &[(&str, Slots<'_>, &[u32], Option<usize>)] = &[
            ("none free", &[], &[1], None),
            (
                "continues",
                &[(&[7, 7], 1), (&[1, 2], 2)],
                &[1, 2, 3],
                Some(1),
            ),
            (
                "continues the longer",
                &[(&[1], 1), (&[1, 2], 2)],
                &[1, 2, 3],
                Some(1),
            ),
            (
                "nothing shared: never used",
                &[(&[7], 5), (&[], 0)],
                &[1, 2],
                Some(1),
            ),
            (
                "nothing shared: oldest",
                &[(&[7], 5), (&[8], 4)],
                &[1, 2],
                Some(1),
            ),
            (
                "only an opening",
                &[(&[1, 2, 3, 4, 5], 2), (&[], 0)],
                &[1, 9, 9],
                Some(1),
            ),
            (
                "only one slot",
                &[(&[1, 2, 3, 4, 5], 2)],
                &[1, 9, 9],
                Some(0),
            ),
        ];
        for (what, slots, prompt, expected) in cases {
            let slots: Vec<SlotTokens> = slots
                .iter()
                .map(|(tokens, used)| SlotTokens {
                    tokens: tokens.to_vec(),
                    used: *used,
                })
                .collect();
            assert_eq!(
                choose(slots.iter().enumerate(), prompt),
                *expected,
                "{what}"
            );
        }
    }
}
