//! Contexts.

use std::ffi::{c_int, c_uint, c_void};

use crate::driver::codes::Code;
use crate::driver::context::{current_or_null, pop_current, push_current, set_current};
use crate::driver::{Driver, Handle, Outcome, current, started};

use super::args::Out;
use super::entries;

/// The bits of `CUctx_flags` that CUDA 12.0 knows.
const FLAGS: c_uint = 0x1f;

/// `CU_LIMIT_STACK_SIZE`, `..PRINTF_FIFO_SIZE` and `..MALLOC_HEAP_SIZE` with what they begin with.
const LIMITS: [(c_int, usize); 3] = [(0, 1024), (1, 1 << 20), (2, 8 << 20)];

/// `CUfunc_cache` has four values.
const CACHES: std::ops::Range<c_int> = 0..4;

/// Priorities of streams, from the least to the greatest, as cards of today have them.
pub(super) const PRIORITIES: (c_int, c_int) = (0, -5);

fn create(driver: &mut Driver, out: Out<Handle>, flags: c_uint, device: c_int) -> Outcome<()> {
    if flags & !FLAGS != 0 || out.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let context = driver.create_context(device, flags)?;
    push_current(context);
    out.put(context)
}

entries! {
    fn cuDevicePrimaryCtxRetain(out: Out<Handle>, device: c_int) = started(|driver| {
        let context = driver.retain_primary(device)?;
        out.put(context)
    });

    fn cuDevicePrimaryCtxRelease_v2(device: c_int) = started(|driver| driver.release_primary(device));

    fn cuDevicePrimaryCtxReset_v2(device: c_int) = started(|driver| {
        match driver.device(device)?.primary {
            Some(context) => driver.reset_primary(device, context),
            None => Ok(()),
        }
    });

    fn cuDevicePrimaryCtxSetFlags_v2(device: c_int, flags: c_uint) = started(|driver| {
        if flags & !FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let device = driver.device_mut(device)?;
        device.primary_flags = flags;
        if let Some(context) = device.primary {
            driver.context_mut(context)?.flags = flags;
        }
        Ok(())
    });

    fn cuDevicePrimaryCtxGetState(device: c_int, flags: Out<c_uint>, active: Out<c_int>) = started(|driver| {
        let device = driver.device(device)?;
        flags.put(device.primary_flags)?;
        active.put(c_int::from(device.primary.is_some()))
    });

    fn cuCtxCreate_v2(out: Out<Handle>, flags: c_uint, device: c_int) = started(|driver| {
        create(driver, out, flags, device)
    });

    fn cuCtxCreate_v3(
        out: Out<Handle>,
        affinity: Out<c_void>,
        count: c_int,
        flags: c_uint,
        device: c_int,
    ) = started(|driver| {
        if count != 0 || !affinity.is_null() {
            return Err(Code::NOT_SUPPORTED);
        }
        create(driver, out, flags, device)
    });

    fn cuCtxDestroy_v2(context: Handle) = started(|driver| {
        if driver.context(context)?.primary {
            return Err(Code::INVALID_CONTEXT);
        }
        if current_or_null() == context {
            pop_current();
        }
        driver.destroy_context(context)
    });

    fn cuCtxGetCurrent(out: Out<Handle>) = started(|_| out.put(current_or_null()));

    fn cuCtxSetCurrent(context: Handle) = started(|driver| {
        if context != 0 {
            driver.context(context)?;
        }
        set_current(context);
        Ok(())
    });

    fn cuCtxPushCurrent_v2(context: Handle) = started(|driver| {
        driver.context(context)?;
        push_current(context);
        Ok(())
    });

    fn cuCtxPopCurrent_v2(out: Out<Handle>) = started(|_| {
        let context = pop_current().ok_or(Code::INVALID_CONTEXT)?;
        out.put_if_wanted(context)
    });

    fn cuCtxGetDevice(out: Out<c_int>) = started(|driver| {
        let context = driver.current_context()?;
        out.put(driver.context(context)?.device)
    });

    fn cuCtxGetFlags(out: Out<c_uint>) = current(|driver, context| {
        out.put(driver.context(context)?.flags)
    });

    fn cuCtxSynchronize() = current(|driver, context| {
        driver.none_captures(context)?;
        driver.counters.add("context_syncs", 1);
        driver.run_context(context)
    });

    fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) = current(|_, _| {
        least.put_if_wanted(PRIORITIES.0)?;
        greatest.put_if_wanted(PRIORITIES.1)
    });

    fn cuCtxGetLimit(out: Out<usize>, limit: c_int) = current(|driver, context| {
        let known = LIMITS.iter().find(|(number, _)| *number == limit);
        let (_, first) = known.ok_or(Code::UNSUPPORTED_LIMIT)?;
        let set = driver.context(context)?.limits.get(&limit);
        out.put(*set.unwrap_or(first))
    });

    fn cuCtxSetLimit(limit: c_int, value: usize) = current(|driver, context| {
        if !LIMITS.iter().any(|(number, _)| *number == limit) {
            return Err(Code::UNSUPPORTED_LIMIT);
        }
        driver.context_mut(context)?.limits.insert(limit, value);
        Ok(())
    });

    fn cuCtxGetCacheConfig(out: Out<c_int>) = current(|driver, context| {
        out.put(driver.context(context)?.cache)
    });

    fn cuCtxSetCacheConfig(config: c_int) = current(|driver, context| {
        if !CACHES.contains(&config) {
            return Err(Code::INVALID_VALUE);
        }
        driver.context_mut(context)?.cache = config;
        Ok(())
    });
}
