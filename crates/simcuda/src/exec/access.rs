//! Loads, stores and atomic operations, every one checked.

use std::sync::atomic::Ordering;

use crate::fault::{Access, FaultKind};
use crate::memory::Bytes;

use super::block::Block;
use super::code::{Address, Atomic, AtomicKind, AtomicType, Extend, From, Op, Space, To};
use super::warp::{Lane, Warp, lanes};
use super::{LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES};

/// Where an access goes, after all checks.
#[derive(Debug, Clone, Copy)]
pub(super) enum Spot<'a> {
    Global(Bytes<'a>, u64),
    Shared(usize),
    Local(usize),
    Param(usize),
}

impl Warp {
    /// The address of a lane. Those of 32 bits stay so: compilers write base minus index so.
    #[inline]
    pub(super) fn address(&self, at: &Address, lane: usize) -> u64 {
        match at.base {
            From::Word(reg) => {
                let base = self.w[reg as usize][lane];
                u64::from(base.wrapping_add(at.offset as u32))
            }
            From::Double(reg) => self.d[reg as usize][lane].wrapping_add_signed(at.offset),
        }
    }

    pub(super) fn memory(
        &mut self,
        op: &Op,
        mask: u32,
        block: &mut Block<'_>,
        pc: u32,
    ) -> Lane<()> {
        match op {
            Op::Load {
                at,
                bytes,
                extend,
                to,
            } => {
                let load = (at, *extend, &**to);
                return match bytes {
                    1 => self.load::<1>(load, mask, block, pc),
                    2 => self.load::<2>(load, mask, block, pc),
                    4 => self.load::<4>(load, mask, block, pc),
                    _ => self.load::<8>(load, mask, block, pc),
                };
            }
            Op::Store { at, bytes, from } => {
                let total = bytes * from.len() as u32;
                for lane in lanes(mask) {
                    let spot = self.find(at, (total, Access::Write), lane, (block, pc))?;
                    for (index, from) in from.iter().enumerate() {
                        let value = self.get(*from, lane);
                        self.write(spot, index as u32 * bytes, (*bytes, value), block);
                    }
                }
            }
            Op::Atomic(one) => {
                for lane in lanes(mask) {
                    self.atomic(one, lane, (block, pc))?;
                }
            }
            Op::Copy {
                to,
                from,
                bytes,
                filled,
            } => {
                for lane in lanes(mask) {
                    let filled = filled.map(|reg| self.w[reg as usize][lane]);
                    let read = filled.unwrap_or(*bytes).min(*bytes);
                    // Both places are checked now; the bytes move when they are waited for.
                    self.find(to, (*bytes, Access::Write), lane, (block, pc))?;
                    let (to, from) = (self.address(to, lane), self.address(from, lane));
                    let misaligned = from % u64::from(*bytes) != 0;
                    if misaligned {
                        return Err((wrong_alignment(from, *bytes), lane as u32));
                    }
                    if read > 0 {
                        let found = block.regions.find(from, u64::from(read));
                        found.map_err(|kind| (kind, lane as u32))?;
                    }
                    self.copies.begin(lane, (to, from), (*bytes, read));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// One function for each size, so that the loop over lanes does not ask for it.
    #[inline(never)]
    fn load<const BYTES: u32>(
        &mut self,
        (at, extend, to): (&Address, Extend, &[To]),
        mask: u32,
        block: &mut Block<'_>,
        pc: u32,
    ) -> Lane<()> {
        let total = BYTES * to.len() as u32;
        for lane in lanes(mask) {
            let spot = self.find(at, (total, Access::Read), lane, (block, pc))?;
            for (index, to) in to.iter().enumerate() {
                let value = self.read(spot, index as u32 * BYTES, BYTES, block);
                self.put(*to, lane, extended(value, BYTES, extend));
            }
        }
        Ok(())
    }

    /// Checks an access of a lane and gives its place.
    #[inline(always)]
    fn find<'a>(
        &self,
        at: &Address,
        (bytes, access): (u32, Access),
        lane: usize,
        (block, pc): (&mut Block<'a>, u32),
    ) -> Lane<Spot<'a>> {
        let address = self.address(at, lane);
        let found = self.locate(at.space, address, (bytes, access), lane, (block, pc));
        found.map_err(|kind| (kind, lane as u32))
    }

    #[inline(always)]
    pub(super) fn locate<'a>(
        &self,
        space: Space,
        address: u64,
        (bytes, access): (u32, Access),
        lane: usize,
        (block, pc): (&mut Block<'a>, u32),
    ) -> Result<Spot<'a>, FaultKind> {
        if !address.is_multiple_of(u64::from(bytes)) {
            return Err(wrong_alignment(address, bytes));
        }
        let wide = u64::from(bytes);
        let (space, offset) = match space {
            Space::Generic => split(address),
            other => (other, address),
        };
        match space {
            Space::Shared => {
                inside("shared", offset, wide, block.shared.len())?;
                if let Some(shadow) = &mut block.shadow {
                    shadow.touch(offset, bytes, self.id, access)?;
                }
                Ok(Spot::Shared(offset as usize))
            }
            Space::Local => {
                inside("local", offset, wide, self.local_bytes)?;
                Ok(Spot::Local(lane * self.local_bytes + offset as usize))
            }
            Space::Param => {
                inside("parameter", offset, wide, block.launch.params.len())?;
                Ok(Spot::Param(offset as usize))
            }
            Space::Generic | Space::Global => {
                let slot = &mut block.remembered[pc as usize % super::block::REMEMBERED];
                let region = match slot {
                    Some(region) if region.holds(offset, wide) => *region,
                    _ => *slot.insert(block.regions.find(offset, wide)?),
                };
                Ok(Spot::Global(region.bytes, offset - region.base))
            }
        }
    }

    #[inline(always)]
    fn read(&self, spot: Spot<'_>, more: u32, bytes: u32, block: &Block<'_>) -> u64 {
        match spot {
            Spot::Global(all, offset) => {
                let offset = offset + u64::from(more);
                match bytes {
                    1 => u64::from(all.load8(offset)),
                    2 => u64::from(all.load16(offset)),
                    4 => u64::from(all.load32(offset)),
                    _ => all.load64(offset),
                }
            }
            Spot::Shared(at) => little_endian(&block.shared, at + more as usize, bytes),
            Spot::Local(at) => little_endian(&self.local, at + more as usize, bytes),
            Spot::Param(at) => little_endian(block.launch.params, at + more as usize, bytes),
        }
    }

    #[inline]
    pub(super) fn write(
        &mut self,
        spot: Spot<'_>,
        more: u32,
        (bytes, value): (u32, u64),
        block: &mut Block<'_>,
    ) {
        let (to, at) = match spot {
            Spot::Global(all, offset) => {
                let offset = offset + u64::from(more);
                match bytes {
                    1 => all.store8(offset, value as u8),
                    2 => all.store16(offset, value as u16),
                    4 => all.store32(offset, value as u32),
                    _ => all.store64(offset, value),
                }
                return;
            }
            Spot::Shared(at) => (&mut block.shared, at),
            Spot::Local(at) => (&mut self.local, at),
            // Parameters are never written: the text is refused.
            Spot::Param(_) => return,
        };
        let at = at + more as usize;
        let size = bytes as usize;
        to[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
    }

    fn atomic(
        &mut self,
        one: &Atomic,
        lane: usize,
        (block, pc): (&mut Block<'_>, u32),
    ) -> Lane<()> {
        let bytes = one.of.bytes();
        let spot = self.find(&one.at, (bytes, Access::Atomic), lane, (&mut *block, pc))?;
        let b = self.get(one.b, lane);
        let c = one.c.map_or(0, |c| self.get(c, lane));
        let change = |old: u64| changed(one.kind, one.of, old, (b, c));
        let old = match spot {
            Spot::Global(all, offset) if bytes == 4 => {
                let cell = all.cell32(offset);
                let done = cell.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| {
                    Some(change(u64::from(old)) as u32)
                });
                u64::from(done.unwrap_or_else(|old| old))
            }
            Spot::Global(all, offset) => {
                let cell = all.cell64(offset);
                let done =
                    cell.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| Some(change(old)));
                done.unwrap_or_else(|old| old)
            }
            other => {
                let old = self.read(other, 0, bytes, block);
                self.write(other, 0, (bytes, change(old)), block);
                old
            }
        };
        self.put(one.d, lane, old);
        Ok(())
    }
}

/// What an atomic operation leaves behind.
fn changed(kind: AtomicKind, of: AtomicType, old: u64, (b, c): (u64, u64)) -> u64 {
    use AtomicKind::{Add, And, Dec, Exchange, Inc, Max, Min, Or, Swap, Xor};
    let (low, with) = (old as u32, b as u32);
    match (kind, of) {
        (Add, AtomicType::F32) => u64::from((f32::from_bits(low) + f32::from_bits(with)).to_bits()),
        (Add, AtomicType::F64) => (f64::from_bits(old) + f64::from_bits(b)).to_bits(),
        (Add, _) => old.wrapping_add(b),
        (Min, AtomicType::S32) => u64::from((low as i32).min(with as i32) as u32),
        (Max, AtomicType::S32) => u64::from((low as i32).max(with as i32) as u32),
        (Min, AtomicType::S64) => (old as i64).min(b as i64) as u64,
        (Max, AtomicType::S64) => (old as i64).max(b as i64) as u64,
        (Min, _) => old.min(b),
        (Max, _) => old.max(b),
        (And, _) => old & b,
        (Or, _) => old | b,
        (Xor, _) => old ^ b,
        (Exchange, _) => b,
        (Swap, _) => {
            if old == b {
                c
            } else {
                old
            }
        }
        (Inc, _) => u64::from(if low >= with { 0 } else { low + 1 }),
        (Dec, _) => u64::from(if low == 0 || low > with {
            with
        } else {
            low - 1
        }),
    }
}

/// A generic address in its own space.
fn split(address: u64) -> (Space, u64) {
    if address.wrapping_sub(SHARED_WINDOW) < WINDOW_BYTES {
        (Space::Shared, address - SHARED_WINDOW)
    } else if address.wrapping_sub(LOCAL_WINDOW) < WINDOW_BYTES {
        (Space::Local, address - LOCAL_WINDOW)
    } else {
        (Space::Global, address)
    }
}

fn inside(space: &'static str, offset: u64, bytes: u64, size: usize) -> Result<(), FaultKind> {
    let size = size as u64;
    if offset.checked_add(bytes).is_some_and(|end| end <= size) {
        return Ok(());
    }
    Err(FaultKind::OutOfSpace {
        space,
        offset,
        bytes,
        size,
    })
}

fn wrong_alignment(address: u64, bytes: u32) -> FaultKind {
    FaultKind::Misaligned {
        address,
        bytes: u64::from(bytes),
    }
}

#[inline]
fn little_endian(bytes: &[u8], at: usize, size: u32) -> u64 {
    let size = size as usize;
    let mut value = [0; 8];
    value[..size].copy_from_slice(&bytes[at..at + size]);
    u64::from_le_bytes(value)
}

#[inline]
fn extended(value: u64, bytes: u32, extend: Extend) -> u64 {
    match extend {
        Extend::Zero => value,
        Extend::Sign => {
            let unused = 64 - 8 * bytes;
            ((value << unused) as i64 >> unused) as u64
        }
    }
}
