//! Which sequence gets which slot, and what it finds there.

use candor_backend::{SessionError, SlotId, Want};

use crate::guard::Servable;
use crate::message::TurnCode;
use crate::prefix::{self, Place, Reuse, Start};
use crate::sequence::Sequence;

/// Gives free slots to those that wait, by priority and then in the order of their arrival.
pub(super) fn admit(
    servable: &mut Servable,
    sequences: &mut [Sequence],
) -> Result<(), SessionError> {
    let mut waiting: Vec<usize> = (0..sequences.len())
        .filter(|&i| {
            let sequence = &sequences[i];
            sequence.is_live() && sequence.slot.is_none() && !sequence.awaits_proof
        })
        .collect();
    waiting.sort_by_key(|&i| sequences[i].priority);
    for i in waiting {
        sequences[i].awaits = None;
        match find(servable, sequences, i) {
            Found::Nothing => sequences[i].say_waiting(),
            Found::Read(slot, tokens) => {
                sequences[i].awaits = Some((slot, tokens));
                sequences[i].say_waiting();
            }
            Found::Start(_) if !is_offered(servable, &sequences[i]) => {
                let code = TurnCode::NotOffered;
                sequences[i].fail(code, code.to_string());
            }
            Found::Start(start) => begin(servable, &mut sequences[i], start)?,
        }
    }
    Ok(())
}

/// Whether what computes gives what a sequence wants.
fn is_offered(servable: &Servable, sequence: &Sequence) -> bool {
    sequence.pooling().is_none() || servable.session().offers(Want::Hidden)
}

/// What there is for a sequence that waits.
enum Found {
    /// Every slot has somebody.
    Nothing,
    /// Somebody reads its beginning just now, in this slot: so many tokens.
    Read(SlotId, usize),
    /// A place.
    Start(Start),
}

fn find(servable: &Servable, sequences: &[Sequence], i: usize) -> Found {
    let sequence = &sequences[i];
    let writes = |slot: usize| {
        let holds = |s: &&Sequence| s.is_live() && s.slot == Some(SlotId(slot));
        sequences.iter().find(holds)
    };
    let places: Vec<Place<'_>> = (0..)
        .zip(servable.slots())
        .map(|(slot, held)| Place {
            slot,
            held,
            is_free: writes(slot).is_none(),
        })
        .collect();
    // A person waits for persons only, as far as there are slots beside those of the programs.
    let counts = |writer: &&Sequence| writer.priority <= sequence.priority;
    let before = places.iter().filter_map(|place| writes(place.slot));
    if before.filter(counts).count() >= servable.active_max() {
        return Found::Nothing;
    }
    let reuse = servable.takes_over(sequence.reuse);
    let Some(start) = prefix::choose(&places, &sequence.ids, reuse) else {
        return Found::Nothing;
    };
    if reuse == Reuse::Nothing {
        return Found::Start(start);
    }
    // Nobody waits for somebody who comes after it.
    let reads = |place: &Place<'_>| {
        writes(place.slot).filter(|s| s.is_reading() && s.priority <= sequence.priority)
    };
    let soon = places.iter().filter_map(|place| {
        let held = place.held.tokens.len();
        let tokens = prefix::awaited(&reads(place)?.ids, held, start.len, &sequence.ids)?;
        Some((tokens, place.slot))
    });
    match soon.max() {
        Some((tokens, slot)) => Found::Read(SlotId(slot), tokens),
        None => Found::Start(start),
    }
}

/// Puts a sequence into its place.
fn begin(
    servable: &mut Servable,
    sequence: &mut Sequence,
    start: Start,
) -> Result<(), SessionError> {
    let slot = SlotId(start.slot);
    // It has the slot even if that fails, and so fails with it instead of trying for ever.
    sequence.slot = Some(slot);
    let cached = match start.copied_from {
        None => servable.take_slot(slot, start.len)?,
        Some(from) => servable.copy_slot(SlotId(from), slot, start.len)?,
    };
    sequence.place(slot, cached, servable.served());
    Ok(())
}
