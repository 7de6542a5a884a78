//! Instructions of one warp, for the lanes of a mask.

use std::sync::atomic::{Ordering, fence};

use super::block::Block;
use super::code::{From, Mode, Op, SetOut, Shuffle, To, Vote};
use super::lanes::{Alu, D, LANES, W};
use super::warp::{Lane, Warp, lanes};

impl Warp {
    /// Executes what does not change the way of lanes.
    pub(super) fn execute(
        &mut self,
        op: &Op,
        mask: u32,
        block: &mut Block<'_>,
        pc: u32,
    ) -> Lane<()> {
        match op {
            Op::Alu { f, d, a } => self.alu(*f, *d as usize, *a, mask),
            Op::SetW { f, a, out } => {
                let bits = f(&self.w[a[0] as usize], &self.w[a[1] as usize]);
                self.set(*out, bits, mask);
            }
            Op::SetD { f, a, out } => {
                let bits = f(&self.d[a[0] as usize], &self.d[a[1] as usize]);
                self.set(*out, bits, mask);
            }
            Op::SelectW { d, a, by } => {
                let mut out = self.w[a[1] as usize];
                merge(&mut out, &self.w[a[0] as usize], self.holds(*by));
                merge(&mut self.w[*d as usize], &out, mask);
            }
            Op::SelectD { d, a, by } => {
                let mut out = self.d[a[1] as usize];
                merge(&mut out, &self.d[a[0] as usize], self.holds(*by));
                merge(&mut self.d[*d as usize], &out, mask);
            }
            Op::Predicate { join, d, a, b } => {
                let bits = join.of(self.holds(*a), self.holds(*b));
                self.put_predicate(*d, bits, mask);
            }
            Op::Logic { d, a, table } => {
                let [a, b, c] = a.map(|reg| &self.w[reg as usize]);
                let out: W = std::array::from_fn(|lane| logic(a[lane], b[lane], c[lane], *table));
                merge(&mut self.w[*d as usize], &out, mask);
            }
            Op::Convert { f, d, a } => {
                for lane in lanes(mask) {
                    let value = f.of(self.get(*a, lane));
                    self.put(*d, lane, value);
                }
            }
            Op::Pack { d, parts, bits } => self.pack(*d, parts, *bits, mask),
            Op::Unpack { parts, a, bits } => self.unpack(parts, *a, *bits, mask),
            Op::Load { .. } | Op::Store { .. } | Op::Atomic(_) | Op::Copy { .. } => {
                self.memory(op, mask, block, pc)?;
            }
            Op::CopyCommit => self.copies.commit(mask),
            Op::CopyWait(left) => self.copy_wait(mask, *left, block)?,
            Op::Shuffle(one) => self.shuffle(one, mask),
            Op::Vote { kind, d, by, lanes } => {
                let named = self.w[*lanes as usize];
                self.vote(*kind, *d, self.holds(*by), (mask, &named));
            }
            Op::ActiveMask { d } => merge(&mut self.w[*d as usize], &[mask; LANES], mask),
            Op::LoadMatrix { at, order, to } => self.load_matrix(at, *order, to, block)?,
            Op::Multiply(one) => self.multiply(one),
            Op::Fence => fence(Ordering::SeqCst),
            // Handled before, or of no effect here.
            Op::Branch(_)
            | Op::Switch { .. }
            | Op::Exit
            | Op::Trap
            | Op::Barrier { .. }
            | Op::WarpBarrier { .. }
            | Op::Nothing => {}
        }
        Ok(())
    }

    #[inline]
    fn alu(&mut self, f: Alu, to: usize, a: [u32; 4], mask: u32) {
        let [a, b, c, e] = a.map(|reg| reg as usize);
        let (w, d) = (&mut self.w, &mut self.d);
        let mut word: W = [0; LANES];
        let mut double: D = [0; LANES];
        match f {
            Alu::W1(f) => f(&mut word, &w[a]),
            Alu::W2(f) => f(&mut word, &w[a], &w[b]),
            Alu::W3(f) => f(&mut word, &w[a], &w[b], &w[c]),
            Alu::W4(f) => f(&mut word, &w[a], &w[b], &w[c], &w[e]),
            Alu::Narrow(f) => f(&mut word, &d[a]),
            Alu::D1(f) => f(&mut double, &d[a]),
            Alu::D2(f) => f(&mut double, &d[a], &d[b]),
            Alu::D3(f) => f(&mut double, &d[a], &d[b], &d[c]),
            Alu::Shift(f) => f(&mut double, &d[a], &w[b]),
            Alu::Widen1(f) => f(&mut double, &w[a]),
            Alu::Widen2(f) => f(&mut double, &w[a], &w[b]),
            Alu::Widen3(f) => f(&mut double, &w[a], &w[b], &d[c]),
            Alu::Field(f) => f(&mut double, &d[a], &w[b], &w[c]),
            Alu::Insert(f) => f(&mut double, &d[a], &d[b], &w[c], &w[e]),
        }
        match f {
            Alu::W1(_) | Alu::W2(_) | Alu::W3(_) | Alu::W4(_) | Alu::Narrow(_) => {
                merge(&mut w[to], &word, mask);
            }
            _ => merge(&mut d[to], &double, mask),
        }
    }

    fn set(&mut self, out: SetOut, bits: u32, mask: u32) {
        let (mut yes, mut no) = (bits, !bits);
        if let Some((join, with)) = out.join {
            let with = self.holds(with);
            (yes, no) = (join.of(yes, with), join.of(no, with));
        }
        if let Some(reg) = out.d {
            self.put_predicate(reg, yes, mask);
        }
        if let Some(reg) = out.opposite {
            self.put_predicate(reg, no, mask);
        }
    }

    pub(super) fn put_predicate(&mut self, reg: u32, bits: u32, mask: u32) {
        let to = &mut self.p[reg as usize];
        *to = (*to & !mask) | (bits & mask);
    }

    /// The value of a lane's register; words without a sign.
    #[inline]
    pub(super) fn get(&self, from: From, lane: usize) -> u64 {
        match from {
            From::Word(reg) => u64::from(self.w[reg as usize][lane]),
            From::Double(reg) => self.d[reg as usize][lane],
        }
    }

    /// Sets a lane's register; words take the low half.
    #[inline]
    pub(super) fn put(&mut self, to: To, lane: usize, value: u64) {
        match to {
            To::Word(reg) => self.w[reg as usize][lane] = value as u32,
            To::Double(reg) => self.d[reg as usize][lane] = value,
            To::Nowhere => {}
        }
    }

    fn pack(&mut self, d: To, parts: &[u32], bits: u32, mask: u32) {
        let low = u64::MAX >> (64 - bits);
        for lane in lanes(mask) {
            let mut value = 0;
            for (index, part) in parts.iter().enumerate() {
                let part = u64::from(self.w[*part as usize][lane]) & low;
                value |= part << (bits * index as u32);
            }
            self.put(d, lane, value);
        }
    }

    fn unpack(&mut self, parts: &[To], a: From, bits: u32, mask: u32) {
        let low = u64::MAX >> (64 - bits);
        for lane in lanes(mask) {
            let value = self.get(a, lane);
            for (index, part) in parts.iter().enumerate() {
                self.put(*part, lane, (value >> (bits * index as u32)) & low);
            }
        }
    }

    /// The lanes' pseudo code in the PTX ISA, section on `shfl.sync`. A lane that is not there
    /// gives all ones.
    fn shuffle(&mut self, one: &Shuffle, mask: u32) {
        let [a, b, c] = [one.a, one.b, one.c].map(|reg| self.w[reg as usize]);
        let mut out = [0; LANES];
        let mut valid = 0;
        for lane in lanes(mask) {
            let own = lane as i64;
            let by = i64::from(b[lane] & 31);
            let segment = i64::from((c[lane] >> 8) & 31);
            let clamp = i64::from(c[lane] & 31);
            let last = (own & segment) | (clamp & !segment);
            let first = own & segment;
            let (from, inside) = match one.mode {
                Mode::Up => (own - by, own - by >= last),
                Mode::Down => (own + by, own + by <= last),
                Mode::Butterfly => (own ^ by, own ^ by <= last),
                Mode::Index => {
                    let from = first | (by & !segment);
                    (from, from <= last)
                }
            };
            let from = if inside { from & 31 } else { own } as usize;
            valid |= u32::from(inside) << lane;
            out[lane] = if mask >> from & 1 == 1 {
                a[from]
            } else {
                u32::MAX
            };
        }
        merge(&mut self.w[one.d as usize], &out, mask);
        if let Some(reg) = one.valid {
            self.put_predicate(reg, valid, mask);
        }
    }

    fn vote(&mut self, kind: Vote, d: u32, bits: u32, (mask, named): (u32, &W)) {
        let ballot = |lane: usize| bits & mask & named[lane];
        if kind == Vote::Ballot {
            let out: W = std::array::from_fn(ballot);
            merge(&mut self.w[d as usize], &out, mask);
            return;
        }
        let mut out = 0;
        for lane in lanes(mask) {
            let (yes, asked) = (ballot(lane), named[lane] & mask);
            let answer = match kind {
                Vote::All => yes == asked,
                Vote::Any => yes != 0,
                _ => yes == asked || yes == 0,
            };
            out |= u32::from(answer) << lane;
        }
        self.put_predicate(d, out, mask);
    }
}

/// Writes the lanes of a mask.
#[inline]
pub(super) fn merge<T: Copy>(to: &mut [T; LANES], from: &[T; LANES], mask: u32) {
    if mask == u32::MAX {
        *to = *from;
        return;
    }
    for lane in 0..LANES {
        if mask >> lane & 1 == 1 {
            to[lane] = from[lane];
        }
    }
}

/// `lop3`: bit 4a + 2b + c of the table.
fn logic(a: u32, b: u32, c: u32, table: u8) -> u32 {
    let mut out = 0;
    for index in 0..8 {
        if table >> index & 1 == 1 {
            let of_a = if index & 4 == 0 { !a } else { a };
            let of_b = if index & 2 == 0 { !b } else { b };
            let of_c = if index & 1 == 0 { !c } else { c };
            out |= of_a & of_b & of_c;
        }
    }
    out
}
