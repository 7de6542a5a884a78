//! Gives registers that are never in use at the same time one place.
//!
//! The text names every value anew: a kernel of ours has hundreds of registers and a warp's would
//! not fit the caches of the processor that simulates it. A register's time of use is a range of
//! the code: from its first to its last mention, and over every loop that it is in use in, unless
//! it is written and read in one run of instructions without a branch. Registers that nothing
//! writes keep a place of their own, with the NaN that is in it.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crate::exec::code::{Code, Op, Preset, Reg};
use crate::exec::registers::{File, Role};

/// When a register is in use.
#[derive(Debug, Clone, Copy)]
struct Use {
    first: usize,
    last: usize,
    /// The run of instructions of all mentions; `None` if they are in several, or if the first may
    /// find what an earlier round of a loop left.
    run: Option<usize>,
    written: bool,
}

/// Renumbers the registers of a kernel.
pub(super) fn share(code: &mut Code) {
    let loops = loops(code);
    let runs = runs(code);
    for file in [File::Words, File::Doubles] {
        let count = match file {
            File::Words => code.words,
            File::Doubles => code.doubles,
        };
        let mut uses: Vec<Option<Use>> = vec![None; count as usize];
        mentions(code, file, |at, role, reg, guarded| {
            note(&mut uses[reg as usize], (at, runs[at]), role, guarded);
        });
        extend(&mut uses, &loops);
        let (places, number) = assign(&uses, &pinned(code, file));
        for instruction in &mut code.list {
            instruction
                .op
                .registers(&mut |of: File, _: Role, reg: &mut Reg| {
                    if of == file {
                        *reg = places[*reg as usize];
                    }
                });
        }
        for preset in &mut code.presets {
            if let Some(reg) = preset_register(preset, file) {
                *reg = places[*reg as usize];
            }
        }
        match file {
            File::Words => code.words = number,
            File::Doubles => code.doubles = number,
        }
    }
}

/// Calls for every mention of a register of a file: where, how, which, and whether the
/// instruction has a condition.
fn mentions(code: &mut Code, file: File, mut tell: impl FnMut(usize, Role, Reg, bool)) {
    for (at, instruction) in code.list.iter_mut().enumerate() {
        let guarded = instruction.guard.is_some();
        instruction
            .op
            .registers(&mut |of: File, role: Role, reg: &mut Reg| {
                if of == file {
                    tell(at, role, *reg, guarded);
                }
            });
    }
}

fn note(one: &mut Option<Use>, (at, run): (usize, usize), role: Role, guarded: bool) {
    match one {
        None => {
            let clean = role == Role::Write && !guarded;
            *one = Some(Use {
                first: at,
                last: at,
                run: clean.then_some(run),
                written: role == Role::Write,
            });
        }
        Some(one) => {
            one.last = at;
            one.run = one.run.filter(|other| *other == run);
            one.written |= role == Role::Write;
        }
    }
}

/// The targets and the places of all jumps back.
fn loops(code: &Code) -> Vec<(usize, usize)> {
    let mut list = Vec::new();
    for (at, targets) in jumps(code) {
        let back = targets.iter().map(|to| *to as usize).filter(|to| *to <= at);
        list.extend(back.map(|to| (to, at)));
    }
    list
}

fn jumps(code: &Code) -> impl Iterator<Item = (usize, &[u32])> {
    code.list
        .iter()
        .enumerate()
        .filter_map(|(at, one)| match &one.op {
            Op::Branch(to) => Some((at, std::slice::from_ref(to))),
            Op::Switch { targets, .. } => Some((at, &targets[..])),
            _ => None,
        })
}

/// For every instruction the number of its run: no lane comes into one but at its beginning.
fn runs(code: &Code) -> Vec<usize> {
    let mut starts = BTreeSet::new();
    for (at, targets) in jumps(code) {
        starts.insert(at + 1);
        starts.extend(targets.iter().map(|to| *to as usize));
    }
    let mut run = 0;
    let number = |at| {
        run += usize::from(starts.contains(&at));
        run
    };
    (0..code.list.len()).map(number).collect()
}

/// A register that is in use somewhere in a loop, and not in one run alone, is so in all of it.
fn extend(uses: &mut [Option<Use>], loops: &[(usize, usize)]) {
    for one in uses.iter_mut().flatten().filter(|one| one.run.is_none()) {
        loop {
            let before = (one.first, one.last);
            for (from, to) in loops {
                if one.first <= *to && one.last >= *from {
                    one.first = one.first.min(*from);
                    one.last = one.last.max(*to);
                }
            }
            if before == (one.first, one.last) {
                break;
            }
        }
    }
}

/// Registers that hold something before the first instruction.
fn pinned(code: &mut Code, file: File) -> BTreeSet<Reg> {
    let list = code.presets.iter_mut();
    list.filter_map(|preset| preset_register(preset, file).map(|reg| *reg))
        .collect()
}

fn preset_register(preset: &mut Preset, file: File) -> Option<&mut Reg> {
    match (preset, file) {
        (
            Preset::Word(reg, _) | Preset::Special(reg, _) | Preset::DynamicWord(reg, _),
            File::Words,
        )
        | (
            Preset::Double(reg, _) | Preset::Global(reg, ..) | Preset::DynamicDouble(reg, _),
            File::Doubles,
        ) => Some(reg),
        _ => None,
    }
}

/// A place for each register, and how many places there are.
fn assign(uses: &[Option<Use>], pinned: &BTreeSet<Reg>) -> (Vec<Reg>, u32) {
    let mut places = vec![0; uses.len()];
    let mut number = 0;
    let mut fresh = || {
        number += 1;
        number - 1
    };
    let mut order = Vec::new();
    for (reg, one) in uses.iter().enumerate() {
        match one {
            Some(one) if one.written && !pinned.contains(&(reg as Reg)) => order.push((reg, *one)),
            Some(_) => places[reg] = fresh(),
            None if pinned.contains(&(reg as Reg)) => places[reg] = fresh(),
            None => {}
        }
    }
    order.sort_by_key(|(_, one)| one.first);
    // Places in use by when they end, and free ones.
    let mut busy = BinaryHeap::new();
    let mut free = Vec::new();
    for (reg, one) in order {
        while let Some(&Reverse((last, place))) = busy.peek() {
            if last >= one.first {
                break;
            }
            busy.pop();
            free.push(place);
        }
        let place = free.pop().unwrap_or_else(&mut fresh);
        places[reg] = place;
        busy.push(Reverse((one.last, place)));
    }
    (places, number)
}
