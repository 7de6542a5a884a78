//! What changes from one forward to the next, on its way into the card's memory: the rows, and the
//! tables of pages.

use std::rc::Rc;

use candor_backend::{Feed, Row, Run, SlotId};

use crate::buffer::{DevicePtr, Layout};
use crate::device::{Device, Event, Fault, Pinned};
use crate::forward::LOGITS_ROWS_MAX;
use crate::prepare::{ROWS_MAX, StepPtrs};

/// Copies that may be on their way: the parts of two forwards, and one being written.
const RING: usize = 4;

/// Where the arrays lie in one block of memory; the addresses are offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepLayout {
    ptrs: StepPtrs,
    tables: DevicePtr,
    rows_bytes: usize,
    bytes: usize,
}

impl StepLayout {
    /// For so many slots, and tables of so many entries in all.
    pub(crate) fn new(slots: usize, table_entries: usize) -> Self {
        let mut layout = Layout::default();
        let mut ints = |n: usize| DevicePtr(layout.place(n * 4) as u64);
        let ptrs = StepPtrs {
            token: ints(ROWS_MAX),
            position: ints(ROWS_MAX),
            slot: ints(ROWS_MAX),
            want: ints(LOGITS_ROWS_MAX),
            top: ints(LOGITS_ROWS_MAX),
            runs: ints(4 * ROWS_MAX),
            source: ints(slots),
            target: ints(slots),
        };
        let tables = ints(table_entries);
        Self {
            ptrs,
            tables,
            rows_bytes: tables.0 as usize,
            bytes: layout.bytes(),
        }
    }

    /// Memory for all of it.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The addresses of the arrays in memory.
    pub(crate) fn ptrs(&self, base: DevicePtr) -> StepPtrs {
        let at = |ptr: DevicePtr| base.plus(ptr.0 as usize);
        StepPtrs {
            token: at(self.ptrs.token),
            position: at(self.ptrs.position),
            slot: at(self.ptrs.slot),
            want: at(self.ptrs.want),
            top: at(self.ptrs.top),
            runs: at(self.ptrs.runs),
            source: at(self.ptrs.source),
            target: at(self.ptrs.target),
        }
    }

    /// The address of the tables in memory.
    pub(crate) fn tables(&self, base: DevicePtr) -> DevicePtr {
        base.plus(self.tables.0 as usize)
    }
}

/// Rows that are computed together.
pub(crate) struct Part<'a> {
    pub(crate) rows: &'a [Row],
    pub(crate) runs: &'a [Run],
    /// For each slot of the part, which copy of its sums is read first, and which is written.
    pub(crate) copies: &'a [(SlotId, usize, usize)],
    /// Rows of which logits are wanted, and how many of their largest.
    pub(crate) wanted: &'a [(usize, usize)],
}

/// The block on the card, and pinned memory from which it is filled.
pub(crate) struct Steps {
    device: Rc<Device>,
    layout: StepLayout,
    base: DevicePtr,
    ring: Vec<(Pinned, Event)>,
    next: usize,
    /// The tables as they are on the card.
    tables: Vec<i32>,
    tables_changed: bool,
}

impl Steps {
    pub(crate) fn new(
        device: &Rc<Device>,
        layout: StepLayout,
        base: DevicePtr,
    ) -> Result<Self, Fault> {
        let piece = || Ok((Pinned::new(device, layout.bytes)?, Event::new(device)?));
        let ring: Result<Vec<_>, Fault> = std::iter::repeat_with(piece).take(RING).collect();
        let entries = (layout.bytes - layout.rows_bytes) / 4;
        Ok(Self {
            device: Rc::clone(device),
            layout,
            base,
            ring: ring?,
            next: 0,
            tables: vec![-1; entries],
            tables_changed: true,
        })
    }

    /// The pages of a slot from `first` on in the tables.
    pub(crate) fn set_pages(&mut self, first: usize, pages: &[Option<usize>], pages_max: usize) {
        let table = &mut self.tables[first..first + pages_max];
        let pages = pages.iter().copied().chain(std::iter::repeat(None));
        for (entry, page) in table.iter_mut().zip(pages) {
            let page = page.map_or(-1, |page| page as i32);
            self.tables_changed |= *entry != page;
            *entry = page;
        }
    }

    /// Enqueues a part's arrays, and the tables where they changed.
    pub(crate) fn send(&mut self, part: &Part<'_>) -> Result<(), Fault> {
        let (pinned, sent) = &mut self.ring[self.next];
        sent.wait()?;
        self.next = (self.next + 1) % RING;
        let ints: &mut [i32] = bytemuck::cast_slice_mut(pinned.bytes_mut());
        let (rows, tables) = ints.split_at_mut(self.layout.rows_bytes / 4);
        write_rows(rows, &self.layout.ptrs, part);
        write_wanted(rows, &self.layout.ptrs, part.wanted);
        let mut bytes = self.layout.rows_bytes;
        if self.tables_changed {
            tables.copy_from_slice(&self.tables);
            bytes = self.layout.bytes;
            self.tables_changed = false;
        }
        self.device.copy_in(self.base, pinned, 0..bytes)?;
        sent.record()
    }

    /// Enqueues the list of the rows whose logits are computed next, and how many of their largest
    /// are wanted.
    pub(crate) fn send_wanted(&mut self, wanted: &[(usize, usize)]) -> Result<(), Fault> {
        let (pinned, sent) = &mut self.ring[self.next];
        sent.wait()?;
        self.next = (self.next + 1) % RING;
        let ints: &mut [i32] = bytemuck::cast_slice_mut(pinned.bytes_mut());
        write_wanted(ints, &self.layout.ptrs, wanted);
        let want = self.layout.ptrs.want;
        let bytes = want.0 as usize..self.layout.ptrs.runs.0 as usize;
        self.device
            .copy_in(self.base.plus(bytes.start), pinned, bytes)?;
        sent.record()
    }
}

fn write_rows(ints: &mut [i32], ptrs: &StepPtrs, part: &Part<'_>) {
    let mut array = |ptr: DevicePtr, at: usize, value: i32| ints[ptr.0 as usize / 4 + at] = value;
    for at in 0..ROWS_MAX {
        let (token, slot) = part.rows.get(at).map_or((0, 0), |row| {
            let Feed::Token(token) = row.feed;
            (token as i32, row.slot.0 as i32)
        });
        array(ptrs.token, at, token);
        array(ptrs.slot, at, slot);
        array(ptrs.position, at, -1);
        for word in 0..4 {
            array(ptrs.runs, 4 * at + word, 0);
        }
    }
    for (run_idx, run) in part.runs.iter().enumerate() {
        for (i, row) in run.rows.clone().enumerate() {
            array(ptrs.position, row, (run.first_position + i) as i32);
        }
        let words = [
            run.slot.0,
            run.rows.start,
            run.rows.len(),
            run.first_position,
        ];
        for (word, value) in words.into_iter().enumerate() {
            array(ptrs.runs, 4 * run_idx + word, value as i32);
        }
    }
    for (slot, source, target) in part.copies {
        array(ptrs.source, slot.0, *source as i32);
        array(ptrs.target, slot.0, *target as i32);
    }
}

fn write_wanted(ints: &mut [i32], ptrs: &StepPtrs, wanted: &[(usize, usize)]) {
    for at in 0..LOGITS_ROWS_MAX {
        let (row, top) = wanted
            .get(at)
            .map_or((-1, 0), |(row, top)| (*row as i32, *top as i32));
        ints[ptrs.want.0 as usize / 4 + at] = row;
        ints[ptrs.top.0 as usize / 4 + at] = top;
    }
}

#[cfg(test)]
mod tests {
    use candor_backend::{Want, runs};

    use super::*;

    #[test]
    fn rows_are_described_and_the_places_behind_them_are_empty() {
        let layout = StepLayout::new(3, 10);
        let row = |slot, token| Row {
            slot: SlotId(slot),
            feed: Feed::Token(token),
            want: Want::Nothing,
        };
        let rows = [row(2, 70), row(2, 71), row(0, 72)];
        let part = Part {
            rows: &rows,
            runs: &runs(&rows, &mut [9, 0, 40]),
            copies: &[(SlotId(2), 0, 1), (SlotId(0), 1, 0)],
            wanted: &[(1, 0), (2, 5)],
        };
        // What was there before is nothing to go by.
        let mut ints = vec![77; layout.rows_bytes / 4];
        write_rows(&mut ints, &layout.ptrs, &part);
        write_wanted(&mut ints, &layout.ptrs, part.wanted);
        let check = |ptr: DevicePtr, expected: &[i32]| {
            assert_eq!(ints[ptr.0 as usize / 4..][..expected.len()], *expected);
        };
        let ptrs = layout.ptrs;
        check(ptrs.token, &[70, 71, 72, 0]);
        check(ptrs.slot, &[2, 2, 0, 0]);
        check(ptrs.position, &[40, 41, 9, -1, -1]);
        check(ptrs.runs, &[2, 0, 2, 40, 0, 2, 1, 9, 0, 0, 0, 0]);
        check(ptrs.want, &[1, 2, -1, -1]);
        check(ptrs.top, &[0, 5, 0]);
        assert_eq!(ints[ptrs.source.0 as usize / 4..][..3], [1, 77, 0]);
        assert_eq!(ints[ptrs.target.0 as usize / 4..][..3], [0, 77, 1]);
    }
}
