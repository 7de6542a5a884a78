//! Device memory: allocating, giving back, and the pools of what is allocated in the order of a
//! stream.

use super::codes::Code;
use super::device::Owner;
use super::work::Work;
use super::{Driver, Handle, Outcome};

/// A pool of one device.
pub(crate) struct Pool {
    pub(crate) device: i32,
    /// Bytes that it keeps for later when work has been waited for.
    pub(crate) threshold: u64,
    /// Bytes that were given back to it and that it has kept.
    pub(crate) cached: u64,
    pub(crate) used: u64,
    pub(crate) used_most: u64,
    pub(crate) reserved_most: u64,
}

impl Pool {
    pub(crate) fn new(device: i32) -> Self {
        Self {
            device,
            threshold: 0,
            cached: 0,
            used: 0,
            used_most: 0,
            reserved_most: 0,
        }
    }
}

impl Driver {
    /// Bytes that the pools of a device have kept.
    pub(crate) fn cached(&self, device: i32) -> u64 {
        let pools = self.pools.iter().map(|(_, pool)| pool);
        pools
            .filter(|pool| pool.device == device)
            .map(|pool| pool.cached)
            .sum()
    }

    /// Allocates device memory, out of a pool if there is one.
    pub(crate) fn allocate(
        &mut self,
        context: Handle,
        bytes: u64,
        pool: Option<Handle>,
    ) -> Outcome<u64> {
        if bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        if self.injected.allocated(&self.settings) {
            return Err(Code::OUT_OF_MEMORY);
        }
        let ordinal = self.context(context)?.device;
        let own = match pool {
            Some(pool) => self.pools.get(pool)?.cached,
            None => 0,
        };
        let others = self.cached(ordinal) - own;
        let fresh = self.settings.fresh;
        let device = self.device_mut(ordinal)?;
        let taken = bytes.checked_next_multiple_of(crate::memory::ALIGNMENT);
        let (free, _) = device.free_and_total(others);
        let taken = taken
            .filter(|taken| *taken <= free)
            .ok_or(Code::OUT_OF_MEMORY)?;
        let address = device
            .memory
            .alloc(bytes)
            .map_err(|_| Code::OUT_OF_MEMORY)?;
        // It comes full of these.
        if fresh != u8::MAX {
            let filled = device.memory.fill(address, bytes, fresh);
            filled.map_err(|_| Code::OUT_OF_MEMORY)?;
        }
        let owner = Owner {
            context,
            pool,
            bytes: taken,
            going: false,
        };
        device.owners.insert(address, owner);
        if let Some(pool) = pool {
            let pool = self.pools.get_mut(pool)?;
            pool.cached -= pool.cached.min(taken);
            pool.used += taken;
            pool.used_most = pool.used_most.max(pool.used);
            pool.reserved_most = pool.reserved_most.max(pool.used + pool.cached);
        }
        self.counters.add("allocations", 1);
        self.counters.add("allocated_bytes", bytes);
        Ok(address)
    }

    /// Frees an allocation at once. Work that may use it runs first, as on a card.
    pub(crate) fn free(&mut self, context: Handle, address: u64) -> Outcome<()> {
        let owner = self.owner(context, address)?;
        self.run_context(context)?;
        if owner.context != context {
            self.run_context(owner.context)?;
        }
        self.give_back(context, address)
    }

    /// Frees an allocation of a pool in the order of a stream.
    pub(crate) fn free_late(
        &mut self,
        context: Handle,
        address: u64,
        stream: Handle,
    ) -> Outcome<()> {
        if self.owner(context, address)?.pool.is_none() {
            return Err(Code::INVALID_VALUE);
        }
        self.submit(stream, Work::Free(address))?;
        if let Some(owner) = self.device_of(context)?.owners.get_mut(&address) {
            owner.going = true;
        }
        Ok(())
    }

    fn owner(&mut self, context: Handle, address: u64) -> Outcome<Owner> {
        let owner = self.device_of(context)?.owners.get(&address);
        let owner = owner.copied().filter(|owner| !owner.going);
        owner.ok_or(Code::INVALID_VALUE)
    }

    /// Gives an allocation back, to its pool if it has one.
    pub(crate) fn give_back(&mut self, context: Handle, address: u64) -> Outcome<()> {
        let device = self.device_of(context)?;
        let owner = device.owners.remove(&address).ok_or(Code::INVALID_VALUE)?;
        device
            .memory
            .free(address)
            .map_err(|_| Code::INVALID_VALUE)?;
        // A pool that was destroyed has nothing to keep it for.
        if let Some(Ok(pool)) = owner.pool.map(|pool| self.pools.get_mut(pool)) {
            pool.used -= owner.bytes;
            pool.cached += owner.bytes;
        }
        Ok(())
    }

    /// Lets pools give back what is beyond their thresholds.
    pub(crate) fn trim_pools(&mut self) {
        self.pools
            .for_each(|pool| pool.cached = pool.cached.min(pool.threshold));
    }

    /// Allocations that live on any device, and their bytes.
    pub(crate) fn allocated(&self) -> (u64, u64) {
        let owners = self
            .devices
            .iter()
            .flat_map(|device| device.owners.values());
        owners.fold((0, 0), |(count, bytes), owner| {
            (count + 1, bytes + owner.bytes)
        })
    }
}
