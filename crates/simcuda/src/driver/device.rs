//! The simulated cards and what they say of themselves.

use std::collections::BTreeMap;

use crate::memory::Memory;
use crate::settings::Settings;

use super::codes::Code;
use super::{Driver, Handle, Outcome};

/// Where the memory of the first device begins: high enough that no pointer of the host lies there
/// by chance, low enough that an address of a kernel keeps its sign.
const FIRST_ADDRESS: u64 = 0x7_0000_0000_0000;

/// From one device's memory to the next one's; more than any card has.
const ADDRESSES_EACH: u64 = 1 << 44;

/// Threads of a warp on every card.
pub(crate) const WARP: u32 = 32;

/// Most threads of a block on every card.
pub(crate) const THREADS_MAX: u32 = 1024;

/// Most threads of a block in each direction on every card.
pub(crate) const BLOCK_MAX: [u32; 3] = [1024, 1024, 64];

/// Most blocks of a grid in each direction on every card.
pub(crate) const GRID_MAX: [u32; 3] = [0x7fff_ffff, 65_535, 65_535];

/// Shared memory that a block gets without being asked twice.
pub(crate) const SHARED_DEFAULT: u32 = 48 << 10;

/// Registers of a multiprocessor on every card.
pub(crate) const REGISTERS: u32 = 64 << 10;

/// Registers that every kernel is said to use. A translation that is never made has no number of
/// its own; this one lets a block of any size run.
pub(crate) const REGISTERS_EACH: u32 = 40;

/// What differs between generations, from the table of technical specifications in NVIDIA's "CUDA
/// C++ Programming Guide".
#[derive(Clone, Copy)]
pub(crate) struct Generation {
    capability: (u32, u32),
    pub(crate) threads: u32,
    pub(crate) blocks: u32,
    pub(crate) shared: u32,
    pub(crate) shared_opt_in: u32,
    /// Taken by the system of each block's shared memory.
    pub(crate) shared_reserved: u32,
}

const fn generation(
    capability: (u32, u32),
    [threads, blocks]: [u32; 2],
    [shared_k, opt_in_k, reserved]: [u32; 3],
) -> Generation {
    Generation {
        capability,
        threads,
        blocks,
        shared: shared_k << 10,
        shared_opt_in: opt_in_k << 10,
        shared_reserved: reserved,
    }
}

const GENERATIONS: [Generation; 8] = [
    generation((7, 0), [2048, 32], [96, 96, 0]),
    generation((7, 5), [1024, 16], [64, 64, 0]),
    generation((8, 0), [2048, 32], [164, 163, 1024]),
    generation((8, 6), [1536, 16], [100, 99, 1024]),
    generation((8, 9), [1536, 24], [100, 99, 1024]),
    generation((9, 0), [2048, 32], [228, 227, 1024]),
    generation((10, 0), [2048, 32], [228, 227, 1024]),
    generation((12, 0), [1536, 24], [100, 99, 1024]),
];

/// One card.
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) capability: (u32, u32),
    pub(crate) multiprocessors: u32,
    pub(crate) memory: Memory,
    pub(crate) used_by_others: u64,
    /// Who made each allocation.
    pub(crate) owners: BTreeMap<u64, Owner>,
    /// The code of the fault after which it answers nothing else.
    pub(crate) dead: Option<Code>,
    pub(crate) primary: Option<Handle>,
    pub(crate) primary_flags: u32,
    /// How often the primary context has been retained and not released.
    pub(crate) retained: u32,
    pub(crate) default_pool: Handle,
    pub(crate) pool: Handle,
}

/// Where an allocation came from.
#[derive(Clone, Copy)]
pub(crate) struct Owner {
    pub(crate) context: Handle,
    /// The pool of one that was made in the order of a stream.
    pub(crate) pool: Option<Handle>,
    pub(crate) bytes: u64,
    /// It was given back in the order of a stream, which may not have got there.
    pub(crate) going: bool,
}

impl Device {
    pub(crate) fn new(ordinal: usize, settings: &Settings, pool: Handle) -> Self {
        let first = FIRST_ADDRESS + ordinal as u64 * ADDRESSES_EACH;
        Self {
            name: settings.name.clone(),
            capability: settings.capability,
            multiprocessors: settings.multiprocessors,
            memory: Memory::new(first, settings.memory),
            used_by_others: settings.used,
            owners: BTreeMap::new(),
            dead: None,
            primary: None,
            primary_flags: 0,
            retained: 0,
            default_pool: pool,
            pool,
        }
    }

    pub(crate) fn generation(&self) -> Generation {
        let fits = |g: &&Generation| g.capability <= self.capability;
        let found = GENERATIONS.iter().rev().find(fits);
        *found.unwrap_or(&GENERATIONS[0])
    }

    /// Whether `len` bytes from `address` lie in one allocation.
    pub(crate) fn holds(&self, address: u64, len: u64) -> bool {
        let end = address.checked_add(len);
        self.memory
            .find(address)
            .is_some_and(|(base, size)| end.is_some_and(|end| end <= base + size))
    }

    /// An attribute by its number in `cuda.h`.
    pub(crate) fn attribute(&self, number: i32) -> Option<i32> {
        let generation = self.generation();
        let (major, minor) = self.capability;
        let value = match number {
            1 => THREADS_MAX,
            2..=4 => BLOCK_MAX[number as usize - 2],
            5..=7 => GRID_MAX[number as usize - 5],
            8 => SHARED_DEFAULT,
            // Constant memory.
            9 => 64 << 10,
            10 => WARP,
            // Longest pitch of a copy.
            11 => 0x7fff_ffff,
            12 | 82 => REGISTERS,
            // Clocks in kHz, of the cores and of the memory: of no card, and of no use here.
            13 | 36 => 1_000_000,
            // Alignment of textures and of surfaces.
            14 | 30 => 512,
            // Copies beside kernels, kernels beside kernels, priorities of streams, compute
            // preemption, memory pools.
            15 | 31 | 78 | 90 | 115 => 1,
            16 => self.multiprocessors,
            // No limit on run time, a card of its own, no mapped host memory, default compute mode,
            // no ECC, bus, no TCC, no managed memory, no cooperative launches, and so on: what a
            // plain card says no to, and what is not simulated.
            17..=20 | 32..=35 | 83..=89 | 91..=96 | 98 | 100..=105 => 0,
            // Width of the memory bus in bits.
            37 => 256,
            // Second-level cache.
            38 => 4 << 20,
            39 => generation.threads,
            // Engines for copies.
            40 => 1,
            // Addresses of host and device are of one space; host memory can be registered.
            41 | 99 => 1,
            // PCI domain.
            50 => 0,
            75 => major,
            76 => minor,
            81 => generation.shared,
            97 => generation.shared_opt_in,
            106 => generation.blocks,
            111 => generation.shared_reserved,
            _ => return None,
        };
        i32::try_from(value).ok()
    }

    /// Free and all memory, in bytes.
    pub(crate) fn free_and_total(&self, cached: u64) -> (u64, u64) {
        let total = self.memory.total();
        let taken = self.used_by_others + self.memory.used() + cached;
        (total.saturating_sub(taken), total)
    }
}

impl Driver {
    /// The device of this number; the interface's `CUdevice` is the ordinal.
    pub(crate) fn device(&self, ordinal: i32) -> Outcome<&Device> {
        let ordinal = usize::try_from(ordinal).map_err(|_| Code::INVALID_DEVICE)?;
        self.devices.get(ordinal).ok_or(Code::INVALID_DEVICE)
    }

    pub(crate) fn device_mut(&mut self, ordinal: i32) -> Outcome<&mut Device> {
        let ordinal = usize::try_from(ordinal).map_err(|_| Code::INVALID_DEVICE)?;
        self.devices.get_mut(ordinal).ok_or(Code::INVALID_DEVICE)
    }
}
