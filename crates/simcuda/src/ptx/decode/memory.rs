//! Loads, stores, atomic operations and copies.

use crate::exec::code::{Address, Atomic, AtomicKind, AtomicType, Extend, From, Op, Space, To};

use super::super::PtxFault;
use super::super::read::{Operand, Raw, type_bytes};
use super::{Coded, Coder};

/// What a load or store says behind its name.
struct Form<'a> {
    space: Space,
    lanes: usize,
    of: &'a str,
}

impl<'a> Coder<'a> {
    pub(super) fn memory(&mut self, first: &str, raw: &'a Raw<'a>) -> Coded<Op> {
        let list = raw.operands.as_slice();
        match (first, list) {
            ("ld" | "ldu", [to, at]) => {
                let form = form(raw.op)?;
                let bytes = value_bytes(form.of)?;
                let to = parts(to).iter().map(|part| self.to(part));
                let to: Box<[To]> = to.collect::<Coded<_>>()?;
                if to.len() != form.lanes {
                    return Err(PtxFault::Operand);
                }
                let at = self.address(at, form.space)?;
                let extend = match form.of.starts_with('s') {
                    true => Extend::Sign,
                    false => Extend::Zero,
                };
                Ok(Op::Load {
                    at,
                    bytes,
                    extend,
                    to,
                })
            }
            ("st", [at, from]) => {
                let form = form(raw.op)?;
                let bytes = value_bytes(form.of)?;
                let from = parts(from).iter().map(|part| self.from(part, bytes));
                let from: Box<[From]> = from.collect::<Coded<_>>()?;
                if from.len() != form.lanes || form.space == Space::Param {
                    return Err(PtxFault::Operand);
                }
                let at = self.address(at, form.space)?;
                Ok(Op::Store { at, bytes, from })
            }
            ("atom", [to, rest @ ..]) => {
                let to = self.to(to)?;
                self.atomic(raw.op, to, rest)
            }
            ("red", rest) => self.atomic(raw.op, To::Nowhere, rest),
            ("cp", _) => self.copy(raw.op, list),
            _ => Err(PtxFault::Operand),
        }
    }

    /// An address in brackets.
    pub(super) fn address(&mut self, operand: &Operand<'a>, space: Space) -> Coded<Address> {
        let Operand::Address(base, offset) = operand else {
            return Err(PtxFault::Operand);
        };
        let base = match **base {
            Operand::Number(_) => self.double(base).map(From::Double)?,
            // A variable's address is a double in every space.
            _ => self.from(base, 8)?,
        };
        Ok(Address {
            space,
            base,
            offset: *offset,
        })
    }

    fn atomic(&mut self, op: &str, d: To, list: &[Operand<'a>]) -> Coded<Op> {
        let mut parts = op.split('.').skip(1).peekable();
        let mut space = Space::Generic;
        while let Some(part) = parts.peek() {
            match *part {
                "relaxed" | "acquire" | "release" | "acq_rel" | "cta" | "gpu" | "sys" => {}
                "global" => space = Space::Global,
                "shared" | "shared::cta" => space = Space::Shared,
                _ => break,
            }
            parts.next();
        }
        let rest: Vec<&str> = parts.collect();
        let [kind, of] = rest.as_slice() else {
            return Err(PtxFault::Instruction);
        };
        let (kind, of) = atomic_form(kind, of).ok_or(PtxFault::Instruction)?;
        let bytes = of.bytes();
        let (at, b, c) = match (kind, list) {
            (AtomicKind::Swap, [at, b, c]) => (at, b, Some(self.from(c, bytes)?)),
            (AtomicKind::Swap, _) => return Err(PtxFault::Operand),
            (_, [at, b]) => (at, b, None),
            _ => return Err(PtxFault::Operand),
        };
        Ok(Op::Atomic(Box::new(Atomic {
            at: self.address(at, space)?,
            kind,
            of,
            d,
            b: self.from(b, bytes)?,
            c,
        })))
    }

    fn copy(&mut self, op: &str, list: &[Operand<'a>]) -> Coded<Op> {
        match (op, list) {
            ("cp.async.commit_group", []) => return Ok(Op::CopyCommit),
            ("cp.async.wait_all", []) => return Ok(Op::CopyWait(None)),
            ("cp.async.wait_group", [Operand::Number(groups)]) => {
                return Ok(Op::CopyWait(Some(*groups as u32)));
            }
            _ => {}
        }
        let rest = op.strip_prefix("cp.async.").ok_or(PtxFault::Instruction)?;
        let rest = ["ca", "cg"]
            .iter()
            .find_map(|cache| rest.strip_prefix(cache));
        let rest = rest.and_then(|rest| {
            rest.strip_prefix(".shared.global")
                .or(rest.strip_prefix(".shared::cta.global"))
        });
        if !matches!(rest, Some("" | ".L2::64B" | ".L2::128B" | ".L2::256B")) {
            return Err(PtxFault::Instruction);
        }
        let (to, from, bytes, filled) = match list {
            [to, from, Operand::Number(bytes)] => (to, from, *bytes, None),
            [to, from, Operand::Number(bytes), filled] => {
                (to, from, *bytes, Some(self.word(filled)?))
            }
            _ => return Err(PtxFault::Operand),
        };
        let fits = matches!(bytes, 4 | 8 | 16) && (bytes == 16 || op.contains(".ca."));
        if !fits {
            return Err(PtxFault::Operand);
        }
        Ok(Op::Copy {
            to: self.address(to, Space::Shared)?,
            from: self.address(from, Space::Global)?,
            bytes: bytes as u32,
            filled,
        })
    }
}

fn parts<'b, 'a>(operand: &'b Operand<'a>) -> &'b [Operand<'a>] {
    match operand {
        Operand::Vector(list) => list,
        one => std::slice::from_ref(one),
    }
}

fn form(op: &str) -> Coded<Form<'_>> {
    let (_, rest) = op.split_once('.').ok_or(PtxFault::Instruction)?;
    let mut parts = rest.split('.');
    let of = parts.next_back().ok_or(PtxFault::Instruction)?;
    let mut form = Form {
        space: Space::Generic,
        lanes: 1,
        of,
    };
    for part in parts {
        match part {
            "global" | "const" => form.space = Space::Global,
            "shared" | "shared::cta" => form.space = Space::Shared,
            "local" => form.space = Space::Local,
            "param" => form.space = Space::Param,
            "v2" => form.lanes = 2,
            "v4" => form.lanes = 4,
            "weak" | "relaxed" | "acquire" | "release" | "volatile" | "cta" | "gpu" | "sys"
            | "nc" | "ca" | "cg" | "cs" | "lu" | "cv" | "wb" | "wt" | "L1::no_allocate"
            | "L1::evict_first" | "L1::evict_last" | "L1::evict_normal" | "L2::64B"
            | "L2::128B" | "L2::256B" => {}
            _ => return Err(PtxFault::Instruction),
        }
    }
    Ok(form)
}

fn value_bytes(of: &str) -> Coded<u32> {
    let bytes = type_bytes(&format!(".{of}")).ok_or(PtxFault::Instruction)?;
    Ok(bytes as u32)
}

fn atomic_form(kind: &str, of: &str) -> Option<(AtomicKind, AtomicType)> {
    use AtomicKind::{Add, And, Dec, Exchange, Inc, Max, Min, Or, Swap, Xor};
    use AtomicType::{F32, F64, S32, S64, U32, U64};
    let kind = match kind {
        "add" => Add,
        "min" => Min,
        "max" => Max,
        "and" => And,
        "or" => Or,
        "xor" => Xor,
        "exch" => Exchange,
        "cas" => Swap,
        "inc" => Inc,
        "dec" => Dec,
        _ => return None,
    };
    let of = match (kind, of) {
        (Add | Min | Max | Inc | Dec, "u32") => U32,
        (Add | Min | Max, "s32") => S32,
        (Add | Min | Max, "u64") => U64,
        (Min | Max, "s64") => S64,
        (Add, "f32") => F32,
        (Add, "f64") => F64,
        (And | Or | Xor | Exchange | Swap, "b32") => U32,
        (And | Or | Xor | Exchange | Swap, "b64") => U64,
        _ => return None,
    };
    Some((kind, of))
}
