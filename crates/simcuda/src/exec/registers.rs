//! Which registers an instruction reads and writes.

use super::code::{Address, Atomic, From, Multiply, Op, Reg, Shuffle, To};
use super::lanes::Alu;

/// A file of registers; predicates are not asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum File {
    Words,
    Doubles,
}

/// What happens to a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Read,
    Write,
}

/// Told of each register once for each use.
pub(crate) trait Visit: FnMut(File, Role, &mut Reg) {}
impl<F: FnMut(File, Role, &mut Reg)> Visit for F {}

impl Op {
    /// Visits all registers.
    pub(crate) fn registers(&mut self, visit: &mut impl Visit) {
        use File::{Doubles, Words};
        use Role::{Read, Write};
        match self {
            Self::Alu { f, d, a } => alu(*f, d, a, visit),
            Self::SetW { a, .. } => words(a, visit),
            Self::SetD { a, .. } => a.iter_mut().for_each(|reg| visit(Doubles, Read, reg)),
            Self::SelectW { d, a, .. } => to_word(a, d, visit),
            Self::SelectD { d, a, .. } => {
                a.iter_mut().for_each(|reg| visit(Doubles, Read, reg));
                visit(Doubles, Write, d);
            }
            Self::Logic { d, a, .. } => to_word(a, d, visit),
            Self::Convert { d, a, .. } => {
                source(a, visit);
                target(d, visit);
            }
            Self::Pack { d, parts, .. } => {
                words(parts, visit);
                target(d, visit);
            }
            Self::Unpack { parts, a, .. } => {
                source(a, visit);
                parts.iter_mut().for_each(|to| target(to, visit));
            }
            Self::Load { at, to, .. } => {
                address(at, visit);
                to.iter_mut().for_each(|to| target(to, visit));
            }
            Self::Store { at, from, .. } => {
                address(at, visit);
                from.iter_mut().for_each(|from| source(from, visit));
            }
            Self::Atomic(one) => atomic(one, visit),
            Self::Switch { index, .. } => visit(Words, Read, index),
            Self::Barrier { id, threads } => {
                visit(Words, Read, id);
                threads.iter_mut().for_each(|reg| visit(Words, Read, reg));
            }
            Self::WarpBarrier { lanes } => visit(Words, Read, lanes),
            Self::Shuffle(one) => shuffle(one, visit),
            Self::Vote { kind, d, lanes, .. } => {
                visit(Words, Read, lanes);
                if *kind == super::code::Vote::Ballot {
                    visit(Words, Write, d);
                }
            }
            Self::ActiveMask { d } => visit(Words, Write, d),
            Self::LoadMatrix { at, to, .. } => {
                address(at, visit);
                to.iter_mut().for_each(|reg| visit(Words, Write, reg));
            }
            Self::Multiply(one) => multiply(one, visit),
            Self::Copy {
                to, from, filled, ..
            } => {
                address(to, visit);
                address(from, visit);
                filled.iter_mut().for_each(|reg| visit(Words, Read, reg));
            }
            Self::Predicate { .. }
            | Self::Branch(_)
            | Self::Exit
            | Self::Trap
            | Self::Fence
            | Self::Nothing
            | Self::CopyCommit
            | Self::CopyWait(_) => {}
        }
    }
}

fn alu(f: Alu, d: &mut Reg, a: &mut [Reg; 4], visit: &mut impl Visit) {
    let mut shape = f.files().bytes();
    let to = shape.next().map(file);
    for (reg, kind) in a.iter_mut().zip(shape) {
        visit(file(kind), Role::Read, reg);
    }
    if let Some(to) = to {
        visit(to, Role::Write, d);
    }
}

fn file(kind: u8) -> File {
    if kind == b'w' {
        File::Words
    } else {
        File::Doubles
    }
}

fn words(list: &mut [Reg], visit: &mut impl Visit) {
    list.iter_mut()
        .for_each(|reg| visit(File::Words, Role::Read, reg));
}

fn to_word(sources: &mut [Reg], d: &mut Reg, visit: &mut impl Visit) {
    words(sources, visit);
    visit(File::Words, Role::Write, d);
}

fn source(from: &mut From, visit: &mut impl Visit) {
    match from {
        From::Word(reg) => visit(File::Words, Role::Read, reg),
        From::Double(reg) => visit(File::Doubles, Role::Read, reg),
    }
}

fn target(to: &mut To, visit: &mut impl Visit) {
    match to {
        To::Word(reg) => visit(File::Words, Role::Write, reg),
        To::Double(reg) => visit(File::Doubles, Role::Write, reg),
        To::Nowhere => {}
    }
}

fn address(at: &mut Address, visit: &mut impl Visit) {
    source(&mut at.base, visit);
}

fn atomic(one: &mut Atomic, visit: &mut impl Visit) {
    address(&mut one.at, visit);
    source(&mut one.b, visit);
    one.c.iter_mut().for_each(|from| source(from, visit));
    target(&mut one.d, visit);
}

fn shuffle(one: &mut Shuffle, visit: &mut impl Visit) {
    for reg in [&mut one.a, &mut one.b, &mut one.c, &mut one.lanes] {
        visit(File::Words, Role::Read, reg);
    }
    visit(File::Words, Role::Write, &mut one.d);
}

fn multiply(one: &mut Multiply, visit: &mut impl Visit) {
    words(&mut one.a, visit);
    words(&mut one.b, visit);
    words(&mut one.c, visit);
    one.d
        .iter_mut()
        .for_each(|reg| visit(File::Words, Role::Write, reg));
}
