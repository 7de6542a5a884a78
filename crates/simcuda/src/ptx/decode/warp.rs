//! Instructions that lanes execute together.

use crate::exec::code::{Elements, Extend, Mode, Multiply, Op, Order, Reg, Shuffle, Space, Vote};

use super::super::PtxFault;
use super::super::read::{Operand, Raw};
use super::{Coded, Coder};

impl<'a> Coder<'a> {
    pub(super) fn warp(&mut self, first: &str, raw: &'a Raw<'a>) -> Coded<Op> {
        let list = raw.operands.as_slice();
        match first {
            "bar" | "barrier" => self.barrier(raw.op, list),
            "shfl" => self.shuffle(raw.op, list),
            "vote" => self.vote(raw.op, list),
            "ldmatrix" => self.load_matrix(raw.op, list),
            "mma" => self.multiply(raw.op, list),
            _ => match (raw.op, list) {
                ("activemask.b32", [d]) => Ok(Op::ActiveMask {
                    d: self.to_word(d)?,
                }),
                _ => Err(PtxFault::Instruction),
            },
        }
    }

    fn barrier(&mut self, op: &str, list: &[Operand<'a>]) -> Coded<Op> {
        match (op, list) {
            ("bar.warp.sync", [lanes]) => Ok(Op::WarpBarrier {
                lanes: self.word(lanes)?,
            }),
            (
                "bar.sync"
                | "bar.cta.sync"
                | "barrier.sync"
                | "barrier.cta.sync"
                | "barrier.sync.aligned"
                | "barrier.cta.sync.aligned",
                [id, rest @ ..],
            ) => {
                let threads = match rest {
                    [] => None,
                    [threads] => Some(self.word(threads)?),
                    _ => return Err(PtxFault::Operand),
                };
                let id = self.word(id)?;
                Ok(Op::Barrier { id, threads })
            }
            _ => Err(PtxFault::Instruction),
        }
    }

    fn shuffle(&mut self, op: &str, list: &[Operand<'a>]) -> Coded<Op> {
        let mode = match op {
            "shfl.sync.up.b32" => Mode::Up,
            "shfl.sync.down.b32" => Mode::Down,
            "shfl.sync.bfly.b32" => Mode::Butterfly,
            "shfl.sync.idx.b32" => Mode::Index,
            _ => return Err(PtxFault::Instruction),
        };
        let [to, a, b, c, lanes] = list else {
            return Err(PtxFault::Operand);
        };
        let (d, valid) = match *to {
            Operand::Pair(d, valid) => (
                self.to_word(&Operand::Name(d, 0))?,
                Some(self.names.predicate(valid)?),
            ),
            _ => (self.to_word(to)?, None),
        };
        Ok(Op::Shuffle(Box::new(Shuffle {
            mode,
            d,
            valid,
            a: self.word(a)?,
            b: self.word(b)?,
            c: self.word(c)?,
            lanes: self.word(lanes)?,
        })))
    }

    fn vote(&mut self, op: &str, list: &[Operand<'a>]) -> Coded<Op> {
        let kind = match op {
            "vote.sync.all.pred" => Vote::All,
            "vote.sync.any.pred" => Vote::Any,
            "vote.sync.uni.pred" => Vote::Uniform,
            "vote.sync.ballot.b32" => Vote::Ballot,
            _ => return Err(PtxFault::Instruction),
        };
        let [d, by, lanes] = list else {
            return Err(PtxFault::Operand);
        };
        let d = match kind {
            Vote::Ballot => self.to_word(d)?,
            _ => self.to_predicate(d)?,
        };
        Ok(Op::Vote {
            kind,
            d,
            by: self.condition(by)?,
            lanes: self.word(lanes)?,
        })
    }

    fn load_matrix(&mut self, op: &str, list: &[Operand<'a>]) -> Coded<Op> {
        let rest = op.strip_prefix("ldmatrix.sync.aligned.m8n8.x");
        let rest = rest.and_then(|rest| rest.strip_suffix(".b16"));
        let (count, mut rest) = rest
            .and_then(|rest| rest.split_at_checked(1))
            .ok_or(PtxFault::Instruction)?;
        let mut order = Order::Rows;
        if let Some(then) = rest.strip_prefix(".trans") {
            (order, rest) = (Order::Columns, then);
        }
        let space = match rest {
            "" => Space::Generic,
            ".shared" | ".shared::cta" => Space::Shared,
            _ => return Err(PtxFault::Instruction),
        };
        let [to, at] = list else {
            return Err(PtxFault::Operand);
        };
        let to = self.registers(to)?;
        match (count, to.len()) {
            ("1", 1) | ("2", 2) | ("4", 4) => {}
            ("1" | "2" | "4", _) => return Err(PtxFault::Operand),
            _ => return Err(PtxFault::Instruction),
        }
        let at = self.address(at, space)?;
        Ok(Op::LoadMatrix { at, order, to })
    }

    fn multiply(&mut self, op: &str, list: &[Operand<'a>]) -> Coded<Op> {
        let rest = op.strip_prefix("mma.sync.aligned.m16n8k");
        let (k, types) = rest
            .and_then(|rest| rest.split_once(".row.col."))
            .ok_or(PtxFault::Instruction)?;
        let elements = elements(types).ok_or(PtxFault::Instruction)?;
        let (k, of_a, of_b) = match (elements, k) {
            (Elements::F16 | Elements::Bf16, "8") => (8, 2, 1),
            (Elements::F16 | Elements::Bf16, "16") => (16, 4, 2),
            (Elements::Bytes { .. }, "16") => (16, 2, 1),
            (Elements::Bytes { .. }, "32") => (32, 4, 2),
            _ => return Err(PtxFault::Instruction),
        };
        let [d, a, b, c] = list else {
            return Err(PtxFault::Operand);
        };
        let (a, b) = (self.sources(a)?, self.sources(b)?);
        let d = self.registers(d)?.as_ref().try_into();
        let c = self.sources(c)?.as_ref().try_into();
        let (Ok(d), Ok(c)) = (d, c) else {
            return Err(PtxFault::Operand);
        };
        if a.len() != of_a || b.len() != of_b {
            return Err(PtxFault::Operand);
        }
        Ok(Op::Multiply(Box::new(Multiply {
            elements,
            k,
            d,
            a,
            b,
            c,
        })))
    }

    fn registers(&self, operand: &Operand<'a>) -> Coded<Box<[Reg]>> {
        match operand {
            Operand::Vector(list) => list.iter().map(|one| self.to_word(one)).collect(),
            one => Ok(Box::new([self.to_word(one)?])),
        }
    }

    fn sources(&mut self, operand: &Operand<'a>) -> Coded<Box<[Reg]>> {
        match operand {
            Operand::Vector(list) => list.iter().map(|one| self.word(one)).collect(),
            one => Ok(Box::new([self.word(one)?])),
        }
    }
}

/// By the four types: of d, a, b and c.
fn elements(types: &str) -> Option<Elements> {
    let side = |name| match name {
        "s8" => Some(Extend::Sign),
        "u8" => Some(Extend::Zero),
        _ => None,
    };
    match types.split('.').collect::<Vec<_>>().as_slice() {
        ["f32", "f16", "f16", "f32"] => Some(Elements::F16),
        ["f32", "bf16", "bf16", "f32"] => Some(Elements::Bf16),
        ["s32", a, b, "s32"] => Some(Elements::Bytes {
            a: side(a)?,
            b: side(b)?,
        }),
        _ => None,
    }
}
