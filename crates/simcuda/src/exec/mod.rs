//! Runs a kernel: blocks over threads of the host, warps in turn, 32 lanes an instruction.

mod access;
mod block;
pub(crate) mod code;
mod copies;
mod execute;
pub(crate) mod lanes;
mod matrix;
pub(crate) mod registers;
mod shadow;
mod warp;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::fault::{Fault, FaultKind};
use crate::memory::Memory;
use crate::ptx::Kernel;

use block::Worker;

/// Where generic addresses of shared memory begin; far above everything that is allocated.
pub(crate) const SHARED_WINDOW: u64 = 1 << 56;

/// Where generic addresses of a thread's own memory begin.
pub(crate) const LOCAL_WINDOW: u64 = 2 << 56;

/// The width of each window; offsets in it have 32 bits.
pub(crate) const WINDOW_BYTES: u64 = 1 << 32;

/// Instructions left from which a second thread of the host is worth its start (about 50 us).
const WORTH_A_THREAD: u64 = 5_000;

/// Instructions of a warp that one block may execute; ours need a thousandth of it.
pub const STEPS_MAX: u64 = 20_000_000_000;

/// One launch of a kernel.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// What runs.
    pub kernel: &'a Kernel,
    /// Addresses of the module's globals, in their order.
    pub symbols: &'a [u64],
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Shared memory beyond what the kernel declares.
    pub shared_bytes: u32,
    /// The parameters, laid out as the kernel says.
    pub params: &'a [u8],
}

/// How a launch is run.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Threads of the host at most.
    pub threads: usize,
    /// Shuffles the order of warps; 0 keeps it.
    pub seed: u64,
    /// Instructions of one block at most.
    pub steps_max: u64,
    /// Shared memory of a block at most.
    pub shared_bytes_max: u32,
    /// What becomes of a race in shared memory.
    pub races: Races,
}

/// What becomes of accesses to shared memory that no barrier keeps apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Races {
    /// They are a fault.
    Checked,
    /// They have an outcome by the order of warps, as on a card.
    Ignored,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: 2,
            seed: 0,
            steps_max: STEPS_MAX,
            shared_bytes_max: 48 << 10,
            races: Races::Checked,
        }
    }
}

/// Runs a launch to its end.
///
/// # Errors
/// The fault of the lowest block that had one.
pub fn run(launch: &Launch<'_>, memory: &Memory, options: &Options) -> Result<(), Fault> {
    check(launch, options)?;
    let regions = memory.regions();
    let blocks: u64 = launch.grid.iter().map(|n| u64::from(*n)).product();
    let mut first = Worker::new(*launch, &regions, options);
    let steps = first.run(0)?;
    let work = steps.saturating_mul(blocks - 1);
    let threads = (work / WORTH_A_THREAD)
        .min(blocks - 1)
        .min(options.threads as u64);
    let crowd = Crowd {
        next: AtomicU64::new(1),
        blocks,
        fault: Mutex::new(None),
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| crowd.work(&mut Worker::new(*launch, &regions, options)));
        }
        crowd.work(&mut first);
    });
    let fault = crowd
        .fault
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    fault.map_or(Ok(()), |(_, fault)| Err(fault))
}

/// The blocks that nobody has begun yet.
struct Crowd {
    next: AtomicU64,
    blocks: u64,
    /// That of the lowest block.
    fault: Mutex<Option<(u64, Fault)>>,
}

impl Crowd {
    fn work(&self, worker: &mut Worker<'_>) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.blocks {
                return;
            }
            let Err(fault) = worker.run(number) else {
                continue;
            };
            // Blocks before this one have been begun and will be heard.
            self.next.store(self.blocks, Ordering::Relaxed);
            let found = self.fault.lock();
            let mut found = found.unwrap_or_else(std::sync::PoisonError::into_inner);
            if found.as_ref().is_none_or(|(other, _)| number < *other) {
                *found = Some((number, fault));
            }
            return;
        }
    }
}

fn check(launch: &Launch<'_>, options: &Options) -> Result<(), Fault> {
    let kernel = launch.kernel;
    let product = |sides: [u32; 3]| sides.iter().map(|n| u64::from(*n)).product::<u64>();
    let shared = u64::from(kernel.shared_bytes) + u64::from(launch.shared_bytes);
    let limits = [
        (
            "threads of a block",
            product(launch.block),
            u64::from(kernel.threads_max),
        ),
        (
            "shared memory of a block",
            shared,
            u64::from(options.shared_bytes_max),
        ),
    ];
    for (what, found, limit) in limits {
        if found > limit || found == 0 && what.starts_with("threads") {
            return Err(Fault::of_host(FaultKind::LaunchLimit {
                what,
                limit,
                found,
            }));
        }
    }
    if launch.grid.contains(&0) {
        return Err(Fault::of_host(FaultKind::Operand {
            what: "a side of the grid",
            found: 0,
        }));
    }
    if launch.params.len() != kernel.param_bytes() {
        return Err(Fault::of_host(FaultKind::Parameters {
            expected: kernel.param_bytes(),
            found: launch.params.len(),
        }));
    }
    Ok(())
}
