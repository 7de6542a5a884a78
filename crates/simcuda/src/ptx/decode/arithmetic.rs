//! Instructions that work on registers alone.

use crate::exec::code::{From, Guard, Op, SetOut, To};
use crate::exec::lanes::{Alu, Convert, Join, find, set_d, set_w, test};

use super::super::PtxFault;
use super::super::read::{Operand, Raw};
use super::{Coded, Coder};

impl<'a> Coder<'a> {
    pub(super) fn arithmetic(
        &mut self,
        first: &str,
        raw: &'a Raw<'a>,
        guard: Option<Guard>,
    ) -> Coded<Op> {
        let list = raw.operands.as_slice();
        match (first, list) {
            ("setp", _) => self.compare(raw.op, list),
            ("set", _) => self.compare_to_value(raw, guard),
            ("selp", _) => self.select(raw.op, list),
            ("testp", [d, a]) => {
                let name = raw.op.strip_prefix("testp.");
                let name = name.and_then(|rest| rest.strip_suffix(".f32"));
                let f = name.and_then(test).ok_or(PtxFault::Instruction)?;
                let a = self.word(a)?;
                let out = SetOut {
                    d: Some(self.to_predicate(d)?),
                    opposite: None,
                    join: None,
                };
                Ok(Op::SetW { f, a: [a, a], out })
            }
            ("lop3", [d, a, b, c, Operand::Number(table)]) if raw.op == "lop3.b32" => {
                Ok(Op::Logic {
                    d: self.to_word(d)?,
                    a: [self.word(a)?, self.word(b)?, self.word(c)?],
                    table: *table as u8,
                })
            }
            ("mov", [Operand::Vector(parts), a]) => self.unpack(raw.op, parts, a),
            ("mov", [d, Operand::Vector(parts)]) => self.pack(raw.op, d, parts),
            _ if raw.op.ends_with(".pred") => self.predicates(raw.op, list),
            _ => match find(raw.op) {
                Some(f) => self.alu(f, list),
                None => self.convert(raw.op, list),
            },
        }
    }

    fn alu(&mut self, f: Alu, list: &[Operand<'a>]) -> Coded<Op> {
        let shape = f.files();
        let [to, sources @ ..] = list else {
            return Err(PtxFault::Operand);
        };
        if list.len() != shape.len() {
            return Err(PtxFault::Operand);
        }
        let d = match shape.starts_with('w') {
            true => self.to_word(to)?,
            false => self.to_double(to)?,
        };
        let mut a = [0; 4];
        for ((a, operand), kind) in a.iter_mut().zip(sources).zip(shape[1..].chars()) {
            *a = match kind {
                'w' => self.word(operand)?,
                _ => self.double(operand)?,
            };
        }
        Ok(Op::Alu { f, d, a })
    }

    fn convert(&mut self, op: &str, list: &[Operand<'a>]) -> Coded<Op> {
        let f = Convert::find(op).ok_or(PtxFault::Instruction)?;
        let [d, a] = list else {
            return Err(PtxFault::Operand);
        };
        let d = self.to(d)?;
        let a = self.from(a, if f.is_of_wide() { 8 } else { 4 })?;
        let fits = matches!(
            (d, f.is_to_wide()),
            (To::Word(_), false) | (To::Double(_), true)
        ) && matches!(
            (a, f.is_of_wide()),
            (From::Word(_), false) | (From::Double(_), true)
        );
        if !fits {
            return Err(PtxFault::Operand);
        }
        Ok(Op::Convert { f, d, a })
    }

    fn compare(&mut self, op: &str, list: &[Operand<'a>]) -> Coded<Op> {
        let rest = op.strip_prefix("setp.").ok_or(PtxFault::Instruction)?;
        let (cmp, mut of) = rest.split_once('.').ok_or(PtxFault::Instruction)?;
        let mut join = None;
        if let Some((name, then)) = of.split_once('.')
            && let Some(found) = Join::find(name)
        {
            join = Some(found);
            of = then;
        }
        let (to, sources) = match list {
            [to, a, b] if join.is_none() => (to, [a, b]),
            [to, a, b, _] if join.is_some() => (to, [a, b]),
            _ => return Err(PtxFault::Operand),
        };
        let join = match join {
            Some(join) => Some((join, self.condition(&list[3])?)),
            None => None,
        };
        let (d, opposite) = match *to {
            Operand::Pair(d, "_") => (Some(self.names.predicate(d)?), None),
            Operand::Pair("_", e) => (None, Some(self.names.predicate(e)?)),
            Operand::Pair(d, e) => (
                Some(self.names.predicate(d)?),
                Some(self.names.predicate(e)?),
            ),
            _ => (Some(self.to_predicate(to)?), None),
        };
        let out = SetOut { d, opposite, join };
        self.comparison(cmp, of, sources, out)
    }

    fn comparison(
        &mut self,
        cmp: &str,
        of: &str,
        sources: [&Operand<'a>; 2],
        out: SetOut,
    ) -> Coded<Op> {
        if let Some(f) = set_w(cmp, of) {
            let a = [self.word(sources[0])?, self.word(sources[1])?];
            return Ok(Op::SetW { f, a, out });
        }
        let f = set_d(cmp, of).ok_or(PtxFault::Instruction)?;
        let a = [self.double(sources[0])?, self.double(sources[1])?];
        Ok(Op::SetD { f, a, out })
    }

    /// `set`: a comparison, then a choice between all ones (or 1.0) and zero.
    fn compare_to_value(&mut self, raw: &'a Raw<'a>, guard: Option<Guard>) -> Coded<Op> {
        let rest = raw.op.strip_prefix("set.").ok_or(PtxFault::Instruction)?;
        let parts: Vec<&str> = rest.split('.').collect();
        let (cmp, to, of) = match parts.as_slice() {
            [cmp, to, of] => (*cmp, *to, (*of).to_owned()),
            [cmp, "ftz", to, of] => (*cmp, *to, format!("ftz.{of}")),
            _ => return Err(PtxFault::Instruction),
        };
        let yes = match to {
            "u32" | "s32" => u32::MAX,
            "f32" => 1.0f32.to_bits(),
            _ => return Err(PtxFault::Instruction),
        };
        let [d, a, b] = raw.operands.as_slice() else {
            return Err(PtxFault::Operand);
        };
        let reg = self.names.spare_predicate();
        let out = SetOut {
            d: Some(reg),
            opposite: None,
            join: None,
        };
        let first = self.comparison(cmp, &of, [a, b], out)?;
        self.emit(guard, first);
        Ok(Op::SelectW {
            d: self.to_word(d)?,
            a: [
                self.word(&Operand::Float(yes))?,
                self.word(&Operand::Float(0))?,
            ],
            by: Guard { reg, flip: 0 },
        })
    }

    fn select(&mut self, op: &str, list: &[Operand<'a>]) -> Coded<Op> {
        let [d, a, b, by] = list else {
            return Err(PtxFault::Operand);
        };
        match op {
            "selp.b16" | "selp.u16" | "selp.s16" | "selp.b32" | "selp.u32" | "selp.s32"
            | "selp.f32" => Ok(Op::SelectW {
                d: self.to_word(d)?,
                a: [self.word(a)?, self.word(b)?],
                by: self.condition(by)?,
            }),
            "selp.b64" | "selp.u64" | "selp.s64" | "selp.f64" => Ok(Op::SelectD {
                d: self.to_double(d)?,
                a: [self.double(a)?, self.double(b)?],
                by: self.condition(by)?,
            }),
            _ => Err(PtxFault::Instruction),
        }
    }

    fn predicates(&mut self, op: &str, list: &[Operand<'a>]) -> Coded<Op> {
        let nothing = Operand::Number(0);
        let everything = Operand::Number(1);
        let (join, d, a, b) = match (op, list) {
            ("mov.pred", [d, a]) => (Join::Xor, d, a, &nothing),
            ("not.pred", [d, a]) => (Join::Xor, d, a, &everything),
            ("and.pred", [d, a, b]) => (Join::And, d, a, b),
            ("or.pred", [d, a, b]) => (Join::Or, d, a, b),
            ("xor.pred", [d, a, b]) => (Join::Xor, d, a, b),
            _ => return Err(PtxFault::Instruction),
        };
        Ok(Op::Predicate {
            join,
            d: self.to_predicate(d)?,
            a: self.condition(a)?,
            b: self.condition(b)?,
        })
    }

    fn pack(&mut self, op: &str, d: &Operand<'a>, parts: &[Operand<'a>]) -> Coded<Op> {
        let bits = part_bits(op, parts.len())?;
        let parts = parts.iter().map(|part| self.word(part));
        Ok(Op::Pack {
            parts: parts.collect::<Coded<_>>()?,
            d: self.to(d)?,
            bits,
        })
    }

    fn unpack(&mut self, op: &str, parts: &[Operand<'a>], a: &Operand<'a>) -> Coded<Op> {
        let bits = part_bits(op, parts.len())?;
        let whole = bits * parts.len() as u32 / 8;
        let parts = parts.iter().map(|part| match self.to(part)? {
            To::Double(_) => Err(PtxFault::Operand),
            to => Ok(to),
        });
        Ok(Op::Unpack {
            parts: parts.collect::<Coded<_>>()?,
            a: self.from(a, whole)?,
            bits,
        })
    }
}

/// The bits of each part of a `mov` with parts.
fn part_bits(op: &str, parts: usize) -> Coded<u32> {
    match (op, parts) {
        ("mov.b64", 2) => Ok(32),
        ("mov.b64", 4) | ("mov.b32", 2) => Ok(16),
        ("mov.b32", 4) | ("mov.b16", 2) => Ok(8),
        _ => Err(PtxFault::Instruction),
    }
}
