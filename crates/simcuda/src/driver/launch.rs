//! Launching kernels: what a launch may ask for, and how many blocks fit.

use std::sync::Arc;

use crate::exec;
use crate::ptx::Kernel;

use super::codes::Code;
use super::device::{BLOCK_MAX, Device, GRID_MAX, REGISTERS, REGISTERS_EACH, THREADS_MAX, WARP};
use super::module::Function;
use super::work::Work;
use super::{Driver, Handle, Outcome};

/// A launch with all it needs, whatever becomes of its module.
pub(crate) struct Launch {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) symbols: Arc<[u64]>,
    pub(crate) shape: Shape,
    pub(crate) params: Vec<u8>,
    /// Shared memory that a block of this launch may have in all.
    pub(crate) shared_bytes_max: u32,
}

/// Blocks, threads and memory of a launch.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
}

impl Launch {
    /// As the interpreter takes it.
    pub(crate) fn exec(&self) -> exec::Launch<'_> {
        exec::Launch {
            kernel: &self.kernel,
            symbols: &self.symbols,
            grid: self.shape.grid,
            block: self.shape.block,
            shared_bytes: self.shape.shared_bytes,
            params: &self.params,
        }
    }
}

impl Driver {
    /// Queues a launch. The parameters are read by `gather` where the function says they lie.
    pub(crate) fn launch(
        &mut self,
        context: Handle,
        function: Handle,
        stream: Handle,
        shape: Shape,
        gather: impl FnOnce(&Kernel) -> Outcome<Vec<u8>>,
    ) -> Outcome<()> {
        let stream = self.stream(context, stream)?;
        let function = self.functions.get(function)?;
        if function.context != context {
            return Err(Code::INVALID_HANDLE);
        }
        check_shape(function, shape)?;
        let params = gather(&function.kernel)?;
        let launch = Launch {
            kernel: Arc::clone(&function.kernel),
            symbols: Arc::clone(&function.symbols),
            shape,
            params,
            shared_bytes_max: function.shared_max + function.kernel.shared_bytes,
        };
        if self.streams.get(stream)?.capture.is_some() {
            return self.submit(stream, Work::Launch(Arc::new(launch)));
        }
        self.counters.launched(&launch.kernel.name);
        match self.injected.launched(&self.settings) {
            None => self.submit(stream, Work::Launch(Arc::new(launch))),
            Some(code) if code.is_sticky() => self.submit(stream, Work::Fail(code)),
            Some(code) => Err(code),
        }
    }

    /// How many blocks of this size one multiprocessor holds at once.
    pub(crate) fn blocks_at_once(
        &self,
        function: Handle,
        threads: i32,
        shared: usize,
    ) -> Outcome<u32> {
        let function = self.functions.get(function)?;
        let ordinal = self.context(function.context)?.device;
        let device = self.device(ordinal)?;
        let threads = u32::try_from(threads).map_err(|_| Code::INVALID_VALUE)?;
        if threads == 0 {
            return Err(Code::INVALID_VALUE);
        }
        Ok(blocks_at_once(device, function, threads, shared))
    }

    /// The block size that fills a multiprocessor best, and the grid that fills the device.
    pub(crate) fn best_block(
        &self,
        function: Handle,
        shared: impl Fn(u32) -> usize,
        limit: i32,
    ) -> Outcome<(u32, u32)> {
        let function = self.functions.get(function)?;
        let ordinal = self.context(function.context)?.device;
        let device = self.device(ordinal)?;
        let limit = match u32::try_from(limit) {
            Ok(0) | Err(_) => THREADS_MAX,
            Ok(limit) => limit,
        };
        let most = limit.min(function.kernel.threads_max).min(THREADS_MAX);
        let sizes = (1..=most / WARP).map(|warps| warps * WARP);
        let filled = sizes.map(|size| {
            let blocks = blocks_at_once(device, function, size, shared(size));
            (blocks * size, size, blocks)
        });
        let (_, size, blocks) = filled.max().ok_or(Code::INVALID_VALUE)?;
        Ok((blocks * device.multiprocessors, size))
    }

    /// Shared memory that each block may take so that so many of them fit at once.
    pub(crate) fn shared_for(&self, function: Handle, blocks: i32) -> Outcome<usize> {
        let function = self.functions.get(function)?;
        let ordinal = self.context(function.context)?.device;
        let generation = self.device(ordinal)?.generation();
        let blocks = u32::try_from(blocks).ok().filter(|blocks| *blocks > 0);
        let each = generation.shared / blocks.ok_or(Code::INVALID_VALUE)?;
        let own = function.kernel.shared_bytes + generation.shared_reserved;
        let most = generation.shared_opt_in - function.kernel.shared_bytes;
        Ok(each.saturating_sub(own).min(most) as usize)
    }
}

fn blocks_at_once(device: &Device, function: &Function, threads: u32, shared: usize) -> u32 {
    let generation = device.generation();
    if threads > function.kernel.threads_max.min(THREADS_MAX) {
        return 0;
    }
    let whole_warps = threads.next_multiple_of(WARP);
    let by_threads = generation.threads / whole_warps;
    let by_registers = REGISTERS / (REGISTERS_EACH * whole_warps);
    let taken = shared + (function.kernel.shared_bytes + generation.shared_reserved) as usize;
    let by_shared = match taken {
        0 => generation.blocks,
        taken => (generation.shared as usize / taken) as u32,
    };
    let least = by_threads.min(by_registers).min(by_shared);
    least.min(generation.blocks)
}

fn check_shape(function: &Function, shape: Shape) -> Outcome<()> {
    let Shape {
        grid,
        block,
        shared_bytes,
    } = shape;
    let fits = |sizes: [u32; 3], most: [u32; 3]| {
        let pairs = sizes.iter().zip(most);
        pairs
            .into_iter()
            .all(|(size, most)| (1..=most).contains(size))
    };
    if !fits(grid, GRID_MAX) || !fits(block, BLOCK_MAX) {
        return Err(Code::INVALID_VALUE);
    }
    let threads = block.iter().product::<u32>();
    if threads > THREADS_MAX || shared_bytes > function.shared_max {
        return Err(Code::INVALID_VALUE);
    }
    if threads > function.kernel.threads_max {
        return Err(Code::LAUNCH_OUT_OF_RESOURCES);
    }
    Ok(())
}
