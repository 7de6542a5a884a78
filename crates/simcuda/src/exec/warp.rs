//! One warp: 32 lanes, each with its place in the code, the lowest place first.
//!
//! Lanes that stand at the same place go on together, which brings lanes that went apart together
//! again where their ways meet. Lanes that come to an instruction of several lanes before the
//! others are parked until those arrive.

use crate::fault::FaultKind;
use crate::ptx::Kernel;

use super::block::Block;
use super::code::{Code, Guard, Instruction, LaneMask, Op, Preset, Reg, Special};
use super::copies::Copies;
use super::lanes::{D, LANES, W};

/// The state of a warp.
#[derive(Debug)]
pub(super) struct Warp {
    pub(super) id: u32,
    pub(super) w: Vec<W>,
    pub(super) d: Vec<D>,
    pub(super) p: Vec<u32>,
    /// The local memory of all lanes, one after the other.
    pub(super) local: Vec<u8>,
    pub(super) local_bytes: usize,
    pub(super) copies: Copies,
    pc: [u32; LANES],
    live: u32,
    parked: u32,
    /// Whether it has run a block before.
    begun: bool,
}

/// Why a warp does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Done,
    Barrier {
        id: u32,
        threads: Option<u32>,
        pc: u32,
    },
}

/// A fault with its place in the code.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) kind: FaultKind,
    pub(super) pc: u32,
    pub(super) lane: u32,
}

/// A fault of one lane, its place to be added.
pub(super) type Lane<T> = Result<T, (FaultKind, u32)>;

/// Where a group of lanes goes after an instruction.
enum Next {
    Fall,
    Jump(u32),
    /// The places of the lanes have been written; somebody else may be first now.
    Choose,
    Stop(Stop),
}

/// Lanes that go on together.
#[derive(Debug, Clone, Copy)]
struct Group {
    pc: u32,
    active: u32,
    /// The lowest place of the lanes that are elsewhere.
    limit: u32,
}

impl Warp {
    pub(super) fn new(id: u32, kernel: &Kernel) -> Self {
        let Code {
            words,
            doubles,
            predicates,
            ..
        } = kernel.code;
        Self {
            id,
            // All ones, a NaN in every float type: what a kernel reads before it writes is seen
            // in the first blocks at the latest.
            w: vec![[u32::MAX; LANES]; words as usize],
            d: vec![[u64::MAX; LANES]; doubles as usize],
            p: vec![0; predicates as usize],
            local: vec![0; kernel.local_bytes as usize * LANES],
            local_bytes: kernel.local_bytes as usize,
            copies: Copies::default(),
            pc: [0; LANES],
            live: 0,
            parked: 0,
            begun: false,
        }
    }

    /// Makes ready for a new block: memory all ones, predicates false. Registers that the text
    /// does not name are as they were: nothing writes them but this.
    pub(super) fn begin(&mut self, block: &Block<'_>) {
        self.p.fill(0);
        self.local.fill(u8::MAX);
        self.copies.clear();
        self.pc = [0; LANES];
        self.parked = 0;
        let threads: u32 = block.launch.block.iter().product();
        let lanes = (threads - self.id * 32).min(32);
        self.live = u32::MAX >> (32 - lanes);
        for preset in &block.kernel.code.presets {
            let changes = matches!(preset, Preset::Special(_, Special::Block(_)));
            if changes || !self.begun {
                self.preset(*preset, block);
            }
        }
        self.begun = true;
    }

    fn preset(&mut self, preset: Preset, block: &Block<'_>) {
        let behind = block.kernel.shared_bytes;
        match preset {
            Preset::Word(reg, value) => self.w[reg as usize] = [value; LANES],
            Preset::Double(reg, value) => self.d[reg as usize] = [value; LANES],
            Preset::DynamicWord(reg, more) => {
                self.w[reg as usize] = [behind.wrapping_add(more); LANES];
            }
            Preset::DynamicDouble(reg, more) => {
                self.d[reg as usize] = [u64::from(behind).wrapping_add(more); LANES];
            }
            Preset::Global(reg, index, more) => {
                let base = block.launch.symbols.get(index).copied().unwrap_or(u64::MAX);
                self.d[reg as usize] = [base.wrapping_add(more); LANES];
            }
            Preset::Special(reg, special) => {
                let id = self.id;
                let value = |lane| special_value(special, id, lane as u32, block);
                self.w[reg as usize] = std::array::from_fn(value);
            }
        }
    }

    /// Runs until every lane has ended or waits at a barrier.
    pub(super) fn run(&mut self, block: &mut Block<'_>) -> Result<Stop, Trouble> {
        loop {
            let Some(group) = self.choose() else {
                if self.live == 0 {
                    self.end(block)?;
                    return Ok(Stop::Done);
                }
                return self.meet_again(block);
            };
            if let Some(stop) = self.advance(group, block)? {
                return Ok(stop);
            }
        }
    }

    /// The lanes at the lowest place.
    fn choose(&self) -> Option<Group> {
        let ready = self.live & !self.parked;
        let pc = lanes(ready).map(|lane| self.pc[lane]).min()?;
        let mut group = Group {
            pc,
            active: 0,
            limit: u32::MAX,
        };
        for lane in lanes(ready) {
            if self.pc[lane] == pc {
                group.active |= 1 << lane;
            } else {
                group.limit = group.limit.min(self.pc[lane]);
            }
        }
        Some(group)
    }

    fn advance(
        &mut self,
        mut group: Group,
        block: &mut Block<'_>,
    ) -> Result<Option<Stop>, Trouble> {
        let code = &block.launch.kernel.code;
        loop {
            let instruction = &code.list[group.pc as usize];
            let Some(left) = block.steps_left.checked_sub(1) else {
                let steps = block.steps_max;
                return Err(self.trouble(group, FaultKind::Endless { steps }));
            };
            block.steps_left = left;
            let mask = group.active & self.guarded(instruction.guard);
            let next = if let Some(next) = self.control(instruction, &mut group, mask, block)? {
                next
            } else {
                if mask != 0 {
                    let done = self.execute(&instruction.op, mask, block, group.pc);
                    done.map_err(|(kind, lane)| Trouble {
                        kind,
                        pc: group.pc,
                        lane,
                    })?;
                }
                Next::Fall
            };
            match next {
                Next::Fall => group.pc += 1,
                Next::Jump(to) => group.pc = to,
                Next::Choose => return Ok(None),
                Next::Stop(stop) => return Ok(Some(stop)),
            }
            if group.pc >= group.limit {
                self.place(group.active, group.pc);
                return Ok(None);
            }
        }
    }

    fn trouble(&self, group: Group, kind: FaultKind) -> Trouble {
        Trouble {
            kind,
            pc: group.pc,
            lane: group.active.trailing_zeros() % 32,
        }
    }

    #[inline]
    fn guarded(&self, guard: Option<Guard>) -> u32 {
        guard.map_or(u32::MAX, |guard| self.p[guard.reg as usize] ^ guard.flip)
    }

    /// The lanes for which a condition holds.
    #[inline]
    pub(super) fn holds(&self, guard: Guard) -> u32 {
        self.p[guard.reg as usize] ^ guard.flip
    }

    fn place(&mut self, mask: u32, pc: u32) {
        for lane in lanes(mask) {
            self.pc[lane] = pc;
        }
    }

    /// What changes the way of lanes or needs several of them; `None` for everything else.
    fn control(
        &mut self,
        instruction: &Instruction,
        group: &mut Group,
        mask: u32,
        block: &mut Block<'_>,
    ) -> Result<Option<Next>, Trouble> {
        let next = match &instruction.op {
            Op::Branch(to) => self.branch(*group, mask, *to),
            Op::Switch { index, targets } => {
                for lane in lanes(mask) {
                    let found = self.w[*index as usize][lane];
                    let Some(to) = targets.get(found as usize) else {
                        let kind = FaultKind::Operand {
                            what: "the index of a jump",
                            found: u64::from(found),
                        };
                        return Err(self.trouble(*group, kind));
                    };
                    self.pc[lane] = *to;
                }
                self.place(group.active & !mask, group.pc + 1);
                Next::Choose
            }
            Op::Exit => {
                self.live &= !mask;
                group.active &= !mask;
                self.place(group.active, group.pc + 1);
                if group.active == 0 {
                    Next::Choose
                } else {
                    Next::Fall
                }
            }
            Op::Trap if mask != 0 => return Err(self.trouble(*group, FaultKind::Trap)),
            Op::Barrier { id, threads } if mask != 0 => self.barrier(*group, mask, *id, *threads),
            Op::WarpBarrier { lanes } if mask != 0 => {
                self.together(instruction, group, mask, *lanes, block)?
            }
            Op::Shuffle(shuffle) if mask != 0 => {
                self.together(instruction, group, mask, shuffle.lanes, block)?
            }
            Op::Vote { lanes, .. } if mask != 0 => {
                self.together(instruction, group, mask, *lanes, block)?
            }
            Op::LoadMatrix { .. } | Op::Multiply(_) if mask != 0 => {
                self.all_together(instruction, group, mask, block)?
            }
            Op::Trap | Op::Barrier { .. } | Op::WarpBarrier { .. } => Next::Fall,
            _ => return Ok(None),
        };
        Ok(Some(next))
    }

    fn branch(&mut self, group: Group, mask: u32, to: u32) -> Next {
        if mask == 0 {
            return Next::Fall;
        }
        if mask == group.active {
            return Next::Jump(to);
        }
        self.place(mask, to);
        self.place(group.active & !mask, group.pc + 1);
        Next::Choose
    }

    /// The lanes that are parked at a place.
    fn parked_at(&self, pc: u32) -> u32 {
        let here = lanes(self.parked).filter(|lane| self.pc[*lane] == pc);
        here.fold(0, |mask, lane| mask | 1 << lane)
    }

    fn barrier(&mut self, group: Group, mask: u32, id: Reg, threads: Option<Reg>) -> Next {
        let arrived = mask | self.parked_at(group.pc);
        if arrived != self.live {
            self.park(group, mask);
            return Next::Choose;
        }
        Next::Stop(self.arrive(group.pc, arrived, id, threads))
    }

    fn arrive(&mut self, pc: u32, arrived: u32, id: Reg, threads: Option<Reg>) -> Stop {
        let lane = arrived.trailing_zeros() as usize;
        self.parked = 0;
        self.place(arrived, pc + 1);
        Stop::Barrier {
            id: self.w[id as usize][lane],
            threads: threads.map(|reg| self.w[reg as usize][lane]),
            pc,
        }
    }

    fn park(&mut self, group: Group, mask: u32) {
        self.parked |= mask;
        self.place(mask, group.pc);
        self.place(group.active & !mask, group.pc + 1);
    }

    /// `ldmatrix` and `mma` are of the whole warp.
    fn all_together(
        &mut self,
        instruction: &Instruction,
        group: &mut Group,
        mask: u32,
        block: &mut Block<'_>,
    ) -> Result<Next, Trouble> {
        self.meet(instruction, group, (mask, u32::MAX), block)
    }

    fn together(
        &mut self,
        instruction: &Instruction,
        group: &mut Group,
        mask: u32,
        named: Reg,
        block: &mut Block<'_>,
    ) -> Result<Next, Trouble> {
        let named = &self.w[named as usize];
        let mut all = 0;
        for lane in lanes(mask) {
            all |= named[lane];
            if named[lane] & (1 << lane) == 0 {
                let kind = FaultKind::DivergentCollective {
                    named: named[lane],
                    missing: 0,
                    reason: "a lane that executes it is not named",
                };
                return Err(self.trouble(*group, kind));
            }
        }
        self.meet(instruction, group, (mask, all), block)
    }

    /// Executes an instruction once all lanes named have come.
    fn meet(
        &mut self,
        instruction: &Instruction,
        group: &mut Group,
        (mask, named): (u32, u32),
        block: &mut Block<'_>,
    ) -> Result<Next, Trouble> {
        let arrived = mask | self.parked_at(group.pc);
        if named & !self.live != 0 {
            let kind = FaultKind::DivergentCollective {
                named,
                missing: named & !self.live,
                reason: "they have ended or never were",
            };
            return Err(self.trouble(*group, kind));
        }
        if named & !arrived != 0 {
            self.park(*group, mask);
            return Ok(Next::Choose);
        }
        let done = self.execute(&instruction.op, arrived, block, group.pc);
        done.map_err(|(kind, lane)| Trouble {
            kind,
            pc: group.pc,
            lane,
        })?;
        self.parked &= !arrived;
        if arrived & !group.active == 0 {
            return Ok(Next::Fall);
        }
        self.place(arrived | group.active, group.pc + 1);
        Ok(Next::Choose)
    }

    /// All lanes left are parked: at one barrier that the ended ones no longer hold up, or apart.
    fn meet_again(&mut self, block: &Block<'_>) -> Result<Stop, Trouble> {
        let first = lanes(self.parked).map(|lane| self.pc[lane]).min();
        let pc = first.unwrap_or(0);
        let here = self.parked_at(pc);
        let kind = match block.kernel.code.list[pc as usize].op {
            Op::Barrier { id, threads } if here == self.live => {
                return Ok(self.arrive(pc, here, id, threads));
            }
            Op::Barrier { id, .. } => FaultKind::DivergentBarrier {
                barrier: self.w[id as usize][here.trailing_zeros() as usize],
                arrived: here.count_ones(),
                expected: self.live.count_ones(),
                reason: "the others of this warp wait elsewhere",
            },
            _ => FaultKind::DivergentCollective {
                named: self.live,
                missing: self.live & !here,
                reason: "they wait elsewhere",
            },
        };
        let lane = here.trailing_zeros() % 32;
        Err(Trouble { kind, pc, lane })
    }

    fn end(&mut self, block: &mut Block<'_>) -> Result<(), Trouble> {
        let last = block.kernel.code.list.len() as u32 - 1;
        let done = self.copy_wait(u32::MAX, None, block);
        done.map_err(|(kind, lane)| Trouble {
            kind,
            pc: last,
            lane,
        })
    }
}

/// The lanes of a mask, lowest first.
#[inline]
pub(super) fn lanes(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let lane = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        Some(lane)
    })
}

fn special_value(special: Special, warp: u32, lane: u32, block: &Block<'_>) -> u32 {
    let threads = block.launch.block;
    let thread = warp * 32 + lane;
    match special {
        Special::Thread(0) => thread % threads[0],
        Special::Thread(1) => thread / threads[0] % threads[1],
        Special::Thread(_) => thread / (threads[0] * threads[1]),
        Special::Threads(axis) => threads[axis],
        Special::Block(axis) => block.index[axis],
        Special::Blocks(axis) => block.launch.grid[axis],
        Special::Lane => lane,
        Special::Warp => warp,
        Special::Warps => threads.iter().product::<u32>().div_ceil(32),
        Special::LaneMask(mask) => {
            let own = 1u32 << lane;
            match mask {
                LaneMask::Equal => own,
                LaneMask::Below => own - 1,
                LaneMask::UpTo => own | (own - 1),
                LaneMask::Above => !(own | (own - 1)),
                LaneMask::From => !(own - 1),
            }
        }
    }
}
