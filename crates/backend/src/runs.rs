//! A batch as its slots see it.

use std::ops::Range;

use crate::batch::{Row, SlotId};

/// Rows of one slot that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Whose rows they are.
    pub slot: SlotId,
    /// In the batch, or the part of it that is computed together.
    pub rows: Range<usize>,
    /// The position of the first row.
    pub first_position: usize,
}

/// The runs of some rows. `positions` says where each slot stands, and moves on with them.
pub fn runs(rows: &[Row], positions: &mut [usize]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let position = &mut positions[row.slot.0];
        match runs.last_mut() {
            Some(run) if run.slot == row.slot => run.rows.end = at + 1,
            _ => runs.push(Run {
                slot: row.slot,
                rows: at..at + 1,
                first_position: *position,
            }),
        }
        *position += 1;
    }
    runs
}

/// How many tokens each slot of a batch gets, in the order in which the slots come.
pub fn tokens_per_slot(rows: &[Row]) -> Vec<(SlotId, usize)> {
    let mut all: Vec<(SlotId, usize)> = Vec::new();
    for row in rows {
        match all.iter_mut().find(|(slot, _)| *slot == row.slot) {
            Some((_, n)) => *n += 1,
            None => all.push((row.slot, 1)),
        }
    }
    all
}
