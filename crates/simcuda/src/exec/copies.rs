//! Copies into shared memory that are under way. The bytes move when somebody waits for them: a
//! kernel that forgets to wait finds what was there before.

use crate::fault::Access;

use super::access::Spot;
use super::block::Block;
use super::code::Space;
use super::lanes::LANES;
use super::warp::{Lane, Warp, lanes};

/// The most bytes of one copy.
const BYTES_MAX: usize = 16;

/// The copies of a warp.
#[derive(Debug, Default)]
pub(super) struct Copies {
    list: Vec<Copy>,
    /// Groups that each lane has ended.
    groups: [u32; LANES],
}

#[derive(Debug, Clone, Copy)]
struct Copy {
    lane: usize,
    group: u32,
    to: u64,
    from: u64,
    bytes: u32,
    /// Bytes that are read; zeros behind them.
    read: u32,
}

impl Copies {
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.groups = [0; LANES];
    }

    /// Adds a copy to a lane's open group.
    pub(super) fn begin(&mut self, lane: usize, (to, from): (u64, u64), (bytes, read): (u32, u32)) {
        self.list.push(Copy {
            lane,
            group: self.groups[lane],
            to,
            from,
            bytes,
            read,
        });
    }

    /// Ends the open group of lanes.
    pub(super) fn commit(&mut self, mask: u32) {
        for lane in lanes(mask) {
            self.groups[lane] += 1;
        }
    }
}

impl Warp {
    /// Moves the bytes of all groups of these lanes but the newest ones left.
    pub(super) fn copy_wait(
        &mut self,
        mask: u32,
        left: Option<u32>,
        block: &mut Block<'_>,
    ) -> Lane<()> {
        if self.copies.list.is_empty() {
            return Ok(());
        }
        let mut list = std::mem::take(&mut self.copies.list);
        let groups = self.copies.groups;
        let due = |one: &Copy| {
            let of_lanes = mask >> one.lane & 1 == 1;
            // A group is waited for once it and at most `left` newer ones have been committed.
            of_lanes && left.is_none_or(|left| one.group + left < groups[one.lane])
        };
        for one in list.iter().filter(|one| due(one)) {
            self.finish(one, block)
                .map_err(|kind| (kind, one.lane as u32))?;
        }
        list.retain(|one| !due(one));
        self.copies.list = list;
        Ok(())
    }

    fn finish(&mut self, one: &Copy, block: &mut Block<'_>) -> Result<(), crate::fault::FaultKind> {
        let mut bytes = [0u8; BYTES_MAX];
        if one.read > 0 {
            let region = block.regions.find(one.from, u64::from(one.read))?;
            let offset = one.from - region.base;
            for (index, byte) in bytes.iter_mut().take(one.read as usize).enumerate() {
                *byte = region.bytes.load8(offset + index as u64);
            }
        }
        let access = (one.bytes, Access::Write);
        let spot = self.locate(Space::Shared, one.to, access, one.lane, (&mut *block, 0))?;
        if let Spot::Shared(at) = spot {
            let size = one.bytes as usize;
            block.shared[at..at + size].copy_from_slice(&bytes[..size]);
        }
        Ok(())
    }
}
