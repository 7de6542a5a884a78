//! One block: its shared memory, and its warps in turn until all have ended.

use crate::fault::{Fault, FaultKind, Place};
use crate::memory::{Region, Regions};
use crate::ptx::Kernel;

use super::shadow::Shadow;
use super::warp::{Stop, Trouble, Warp};
use super::{Launch, Options, Races};

/// Allocations that are remembered, by the instruction that used them.
pub(super) const REMEMBERED: usize = 64;

/// What the warps of a block have in common.
#[derive(Debug)]
pub(super) struct Block<'a> {
    pub(super) launch: Launch<'a>,
    pub(super) kernel: &'a Kernel,
    pub(super) regions: &'a Regions<'a>,
    pub(super) index: [u32; 3],
    pub(super) shared: Vec<u8>,
    /// `None` where races are ignored.
    pub(super) shadow: Option<Shadow>,
    pub(super) remembered: [Option<Region<'a>>; REMEMBERED],
    /// Instructions that a block may execute, and those it still may.
    pub(super) steps_max: u64,
    pub(super) steps_left: u64,
}

/// A thread of the host that runs blocks one after the other.
#[derive(Debug)]
pub(super) struct Worker<'a> {
    block: Block<'a>,
    warps: Vec<Warp>,
    seed: u64,
}

/// Where a warp waits.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    id: u32,
    threads: Option<u32>,
    pc: u32,
}

/// How far a warp is.
#[derive(Debug, Clone, Copy)]
enum Progress {
    Ready,
    Waits(Waiting),
    Done,
}

impl<'a> Worker<'a> {
    pub(super) fn new(launch: Launch<'a>, regions: &'a Regions<'a>, options: &Options) -> Self {
        let kernel = launch.kernel;
        let threads: u32 = launch.block.iter().product();
        let shared = (kernel.shared_bytes + launch.shared_bytes) as usize;
        let warps = (0..threads.div_ceil(32)).map(|id| Warp::new(id, kernel));
        Self {
            block: Block {
                launch,
                kernel,
                regions,
                index: [0; 3],
                shared: vec![0; shared],
                shadow: (options.races == Races::Checked).then(Shadow::default),
                remembered: [None; REMEMBERED],
                steps_max: options.steps_max,
                steps_left: 0,
            },
            warps: warps.collect(),
            seed: options.seed,
        }
    }

    /// Runs one block; gives the instructions it took.
    pub(super) fn run(&mut self, number: u64) -> Result<u64, Fault> {
        let [x, y, _] = self.block.launch.grid.map(u64::from);
        self.block.index = [number % x, number / x % y, number / (x * y)].map(|i| i as u32);
        self.block.steps_left = self.block.steps_max;
        // All ones: a NaN in every float type, and an impossible index.
        self.block.shared.fill(u8::MAX);
        if let Some(shadow) = &mut self.block.shadow {
            shadow.begin(self.block.shared.len());
        }
        for warp in &mut self.warps {
            warp.begin(&self.block);
        }
        let mut order = Order::new(self.warps.len(), self.seed, number);
        let mut progress = vec![Progress::Ready; self.warps.len()];
        loop {
            for &index in order.next() {
                if !matches!(progress[index], Progress::Ready) {
                    continue;
                }
                let warp = &mut self.warps[index];
                progress[index] = match warp.run(&mut self.block) {
                    Ok(Stop::Done) => Progress::Done,
                    Ok(Stop::Barrier { id, threads, pc }) => {
                        Progress::Waits(Waiting { id, threads, pc })
                    }
                    Err(trouble) => return Err(self.fault(index, trouble)),
                };
            }
            if progress.iter().all(|one| matches!(one, Progress::Done)) {
                return Ok(self.block.steps_max - self.block.steps_left);
            }
            self.release(&mut progress)?;
        }
    }

    /// Lets the warps of a complete barrier go on.
    fn release(&mut self, progress: &mut [Progress]) -> Result<(), Fault> {
        let waiting: Vec<(usize, Waiting)> = progress
            .iter()
            .enumerate()
            .filter_map(|(index, one)| match one {
                Progress::Waits(waiting) => Some((index, *waiting)),
                _ => None,
            })
            .collect();
        let mut first_fault = None;
        for (index, one) in &waiting {
            let group = waiting.iter().filter(|(_, other)| other.id == one.id);
            let group: Vec<_> = group.collect();
            let arrived = group.len() as u32 * 32;
            let expected = one.threads.unwrap_or(waiting.len() as u32 * 32);
            let apart = group.iter().any(|(_, other)| other.pc != one.pc);
            let reason = match one.threads {
                None if apart => "others wait at another place with the same number",
                _ if arrived < expected => "others wait at another barrier or have ended",
                _ => {
                    if let Some(shadow) = &mut self.block.shadow {
                        shadow.barrier();
                    }
                    for (index, _) in group {
                        progress[*index] = Progress::Ready;
                    }
                    return Ok(());
                }
            };
            let kind = FaultKind::DivergentBarrier {
                barrier: one.id,
                arrived,
                expected,
                reason,
            };
            first_fault.get_or_insert((*index, one.pc, kind));
        }
        match first_fault {
            Some((index, pc, kind)) => Err(self.fault(index, Trouble { kind, pc, lane: 0 })),
            None => Ok(()),
        }
    }

    fn fault(&self, warp: usize, trouble: Trouble) -> Fault {
        let Trouble { kind, pc, lane } = trouble;
        let kernel = self.block.kernel;
        let line = kernel.code.list[pc as usize].line;
        let [x, y, _] = self.block.launch.block;
        let thread = warp as u32 * 32 + lane;
        Fault {
            kind,
            place: Some(Box::new(Place {
                kernel: kernel.name.clone(),
                line,
                text: kernel.line(line).to_owned(),
                block: self.block.index,
                thread: [thread % x, thread / x % y, thread / (x * y)],
            })),
        }
    }
}

/// The order of warps, another one after every barrier.
struct Order {
    list: Vec<usize>,
    state: Option<u64>,
}

impl Order {
    fn new(warps: usize, seed: u64, block: u64) -> Self {
        let mixed = (seed ^ block.wrapping_mul(0x9e37_79b9_7f4a_7c15)).max(1);
        Self {
            list: (0..warps).collect(),
            state: (seed != 0).then_some(mixed),
        }
    }

    fn next(&mut self) -> &[usize] {
        if let Some(state) = &mut self.state {
            for end in (1..self.list.len()).rev() {
                // Marsaglia's xorshift.
                *state ^= *state << 13;
                *state ^= *state >> 7;
                *state ^= *state << 17;
                self.list.swap(end, (*state % (end as u64 + 1)) as usize);
            }
        }
        &self.list
    }
}
