//! Memory of device and host, and copies.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use crate::driver::codes::Code;
use crate::driver::pool::Pool;
use crate::driver::work::Work;
use crate::driver::{Driver, Handle, Outcome, current, started};

use super::args::{In, Out, host_bytes, host_bytes_mut};
use super::entries;

/// Copies from ordinary memory that are larger than this are made at once: the interface promises
/// only that the bytes are taken, and holding a model's weights twice would be too much.
const STAGED_MAX: usize = 1 << 20;

/// `CU_MEMHOSTALLOC_PORTABLE` and `..WRITECOMBINED`; the third, `..DEVICEMAP`, is not simulated.
const HOST_FLAGS: c_uint = 1 | 4;
const HOST_FLAG_MAPPED: c_uint = 2;

/// `CU_MEMORYTYPE_HOST` and `..DEVICE`.
const TYPE_HOST: c_uint = 1;
const TYPE_DEVICE: c_uint = 2;

/// One end of a copy.
#[derive(Clone, Copy)]
enum End {
    Device(u64),
    Host(usize),
}

/// What an address means in the one space of addresses.
fn end(driver: &mut Driver, context: Handle, address: u64, len: usize) -> Outcome<End> {
    let on_device = driver.device_of(context)?.holds(address, len as u64);
    Ok(if on_device {
        End::Device(address)
    } else {
        End::Host(address as usize)
    })
}

fn check(driver: &mut Driver, context: Handle, ends: [End; 2], len: usize) -> Outcome<()> {
    for end in ends {
        let fits = match end {
            End::Device(address) => driver.device_of(context)?.holds(address, len as u64),
            End::Host(address) => address != 0,
        };
        if !fits {
            return Err(Code::INVALID_VALUE);
        }
    }
    let count = match ends {
        [End::Device(_), End::Host(_)] => ["uploads", "uploaded_bytes"],
        [End::Host(_), End::Device(_)] => ["downloads", "downloaded_bytes"],
        _ => ["device_copies", "device_copied_bytes"],
    };
    driver.counters.copied(count, len as u64);
    Ok(())
}

/// A copy in the order of a stream.
fn copy_late(
    driver: &mut Driver,
    context: Handle,
    [to, from]: [End; 2],
    len: usize,
    stream: Handle,
) -> Outcome<()> {
    let stream = driver.stream(context, stream)?;
    if len == 0 {
        return Ok(());
    }
    check(driver, context, [to, from], len)?;
    let work = match (to, from) {
        (End::Device(to), End::Device(from)) => Work::Copy {
            to,
            from,
            len: len as u64,
        },
        (End::Device(to), End::Host(from)) if driver.host.holds(from, len) => Work::UploadLate {
            to,
            from,
            len: len as u64,
        },
        (End::Host(to), End::Device(from)) if driver.host.holds(to, len) => Work::Download {
            to,
            from,
            len: len as u64,
        },
        (End::Device(to), End::Host(from)) if len <= STAGED_MAX => Work::Upload {
            to,
            bytes: Arc::from(host_bytes(from, len)?),
        },
        (End::Host(_), End::Host(_)) => return Err(Code::NOT_SUPPORTED),
        _ => {
            driver.not_while_capturing(stream)?;
            driver.synchronize(stream)?;
            return move_now(driver, context, [to, from], len);
        }
    };
    driver.submit(stream, work)
}

/// A copy that is done when the call returns.
fn copy_now(driver: &mut Driver, context: Handle, ends: [End; 2], len: usize) -> Outcome<()> {
    driver.may_wait()?;
    let legacy = driver.stream(context, 0)?;
    driver.synchronize(legacy)?;
    driver.counters.add("copy_syncs", 1);
    if len == 0 {
        return Ok(());
    }
    check(driver, context, ends, len)?;
    move_now(driver, context, ends, len)
}

fn move_now(driver: &mut Driver, context: Handle, ends: [End; 2], len: usize) -> Outcome<()> {
    let memory = &driver.device_of(context)?.memory;
    let done = match ends {
        [End::Device(to), End::Device(from)] => memory.copy(to, from, len as u64),
        [End::Device(to), End::Host(from)] => memory.write(to, host_bytes(from, len)?),
        [End::Host(to), End::Device(from)] => memory.read(from, host_bytes_mut(to, len)?),
        [End::Host(_), End::Host(_)] => return Err(Code::NOT_SUPPORTED),
    };
    // The range was checked and nothing has run since.
    done.map_err(|_| Code::INVALID_VALUE)
}

/// Fills in the order of a stream.
fn fill(driver: &mut Driver, context: Handle, work: Work, stream: Handle) -> Outcome<()> {
    let stream = driver.stream(context, stream)?;
    let Work::Fill {
        to, width, count, ..
    } = work
    else {
        return Err(Code::INVALID_VALUE);
    };
    let width = u64::from(width);
    let len = count.checked_mul(width).ok_or(Code::INVALID_VALUE)?;
    if count == 0 {
        return Ok(());
    }
    if !to.is_multiple_of(width) || !driver.device_of(context)?.holds(to, len) {
        return Err(Code::INVALID_VALUE);
    }
    driver.counters.add("fills", 1);
    driver.submit(stream, work)
}

fn filling(to: u64, value: u32, width: u8, count: usize) -> Work {
    Work::Fill {
        to,
        value: value.to_le_bytes(),
        width,
        count: count as u64,
    }
}

fn fill_now(driver: &mut Driver, context: Handle, work: Work) -> Outcome<()> {
    driver.may_wait()?;
    fill(driver, context, work, 0)
}

entries! {
    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) = current(|driver, context| {
        let ordinal = driver.context(context)?.device;
        let cached = driver.cached(ordinal);
        let (free_bytes, total_bytes) = driver.device(ordinal)?.free_and_total(cached);
        free.put(free_bytes as usize)?;
        total.put(total_bytes as usize)
    });

    fn cuMemAlloc_v2(out: Out<u64>, bytes: usize) = current(|driver, context| {
        driver.may_wait()?;
        out.put(driver.allocate(context, bytes as u64, None)?)
    });

    fn cuMemFree_v2(address: u64) = current(|driver, context| {
        if address == 0 {
            return Ok(());
        }
        driver.may_wait()?;
        driver.free(context, address)
    });

    fn cuMemAllocAsync(out: Out<u64>, bytes: usize, stream: Handle) = current(|driver, context| {
        let stream = driver.stream(context, stream)?;
        driver.not_while_capturing(stream)?;
        let pool = driver.device_of(context)?.pool;
        out.put(driver.allocate(context, bytes as u64, Some(pool))?)
    });

    fn cuMemAllocFromPoolAsync(out: Out<u64>, bytes: usize, pool: Handle, stream: Handle) = current(|driver, context| {
        let stream = driver.stream(context, stream)?;
        driver.not_while_capturing(stream)?;
        if driver.pools.get(pool)?.device != driver.context(context)?.device {
            return Err(Code::NOT_SUPPORTED);
        }
        out.put(driver.allocate(context, bytes as u64, Some(pool))?)
    });

    fn cuMemFreeAsync(address: u64, stream: Handle) = current(|driver, context| {
        let stream = driver.stream(context, stream)?;
        driver.free_late(context, address, stream)
    });

    fn cuMemGetAddressRange_v2(base: Out<u64>, size: Out<usize>, address: u64) = current(|driver, context| {
        let found = driver.device_of(context)?.memory.find(address);
        let (start, bytes) = found.ok_or(Code::NOT_FOUND)?;
        base.put_if_wanted(start)?;
        size.put_if_wanted(bytes as usize)
    });

    fn cuPointerGetAttribute(out: Out<c_void>, attribute: c_int, address: u64) = current(|driver, context| {
        let ordinal = driver.context(context)?.device;
        let found = driver.device(ordinal)?.memory.find(address);
        let on_host = driver.host.holds(address as usize, 1);
        match (attribute, found) {
            (2, Some(_)) => out.of().put(TYPE_DEVICE),
            (2, None) if on_host => out.of().put(TYPE_HOST),
            (9, Some(_)) => out.of().put(ordinal),
            (11, Some((base, _))) => out.of().put(base),
            (12, Some((_, bytes))) => out.of().put(bytes as usize),
            (2 | 9 | 11 | 12, None) => Err(Code::INVALID_VALUE),
            _ => Err(Code::NOT_SUPPORTED),
        }
    });

    fn cuMemHostAlloc(out: Out<usize>, bytes: usize, flags: c_uint) = current(|driver, _| {
        driver.may_wait()?;
        if flags & HOST_FLAG_MAPPED != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        if flags & !HOST_FLAGS != 0 || out.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        out.put(driver.host.allocate(bytes, flags)?)
    });

    fn cuMemAllocHost_v2(out: Out<usize>, bytes: usize) = current(|driver, _| {
        driver.may_wait()?;
        out.put(driver.host.allocate(bytes, 0)?)
    });

    fn cuMemFreeHost(address: usize) = current(|driver, _| {
        driver.may_wait()?;
        driver.run_all()?;
        driver.host.free(address)
    });

    fn cuMemHostRegister_v2(address: usize, bytes: usize, flags: c_uint) = current(|driver, _| {
        driver.may_wait()?;
        if flags & HOST_FLAG_MAPPED != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        driver.host.register(address, bytes)
    });

    fn cuMemHostUnregister(address: usize) = current(|driver, _| {
        driver.may_wait()?;
        driver.run_all()?;
        driver.host.unregister(address)
    });

    fn cuMemHostGetFlags(out: Out<c_uint>, address: usize) = current(|driver, _| {
        let range = driver.host.range(address).ok_or(Code::INVALID_VALUE)?;
        out.put(range.flags)
    });

    fn cuMemcpyHtoD_v2(to: u64, from: usize, bytes: usize) = current(|driver, context| {
        copy_now(driver, context, [End::Device(to), End::Host(from)], bytes)
    });

    fn cuMemcpyDtoH_v2(to: usize, from: u64, bytes: usize) = current(|driver, context| {
        copy_now(driver, context, [End::Host(to), End::Device(from)], bytes)
    });

    fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) = current(|driver, context| {
        copy_now(driver, context, [End::Device(to), End::Device(from)], bytes)
    });

    fn cuMemcpy(to: u64, from: u64, bytes: usize) = current(|driver, context| {
        let ends = [end(driver, context, to, bytes)?, end(driver, context, from, bytes)?];
        copy_now(driver, context, ends, bytes)
    });

    fn cuMemcpyHtoDAsync_v2(to: u64, from: usize, bytes: usize, stream: Handle) = current(|driver, context| {
        copy_late(driver, context, [End::Device(to), End::Host(from)], bytes, stream)
    });

    fn cuMemcpyDtoHAsync_v2(to: usize, from: u64, bytes: usize, stream: Handle) = current(|driver, context| {
        copy_late(driver, context, [End::Host(to), End::Device(from)], bytes, stream)
    });

    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: Handle) = current(|driver, context| {
        copy_late(driver, context, [End::Device(to), End::Device(from)], bytes, stream)
    });

    fn cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: Handle) = current(|driver, context| {
        let ends = [end(driver, context, to, bytes)?, end(driver, context, from, bytes)?];
        copy_late(driver, context, ends, bytes, stream)
    });

    fn cuMemsetD8_v2(to: u64, value: u8, count: usize) = current(|driver, context| {
        fill_now(driver, context, filling(to, value.into(), 1, count))
    });

    fn cuMemsetD16_v2(to: u64, value: u16, count: usize) = current(|driver, context| {
        fill_now(driver, context, filling(to, value.into(), 2, count))
    });

    fn cuMemsetD32_v2(to: u64, value: u32, count: usize) = current(|driver, context| {
        fill_now(driver, context, filling(to, value, 4, count))
    });

    fn cuMemsetD8Async(to: u64, value: u8, count: usize, stream: Handle) = current(|driver, context| {
        fill(driver, context, filling(to, value.into(), 1, count), stream)
    });

    fn cuMemsetD16Async(to: u64, value: u16, count: usize, stream: Handle) = current(|driver, context| {
        fill(driver, context, filling(to, value.into(), 2, count), stream)
    });

    fn cuMemsetD32Async(to: u64, value: u32, count: usize, stream: Handle) = current(|driver, context| {
        fill(driver, context, filling(to, value, 4, count), stream)
    });
}

/// The beginning of `CUmemPoolProps`: what is allocated, for whom, and where.
#[repr(C)]
#[derive(Clone, Copy)]
struct PoolProperties {
    kind: c_int,
    handles: c_int,
    location: c_int,
    device: c_int,
}

/// `CU_MEM_ALLOCATION_TYPE_PINNED` and `CU_MEM_LOCATION_TYPE_DEVICE`; both are one.
const PINNED_ON_DEVICE: (c_int, c_int) = (1, 1);

entries! {
    fn cuDeviceGetDefaultMemPool(out: Out<Handle>, device: c_int) = started(|driver| {
        out.put(driver.device(device)?.default_pool)
    });

    fn cuDeviceGetMemPool(out: Out<Handle>, device: c_int) = started(|driver| {
        out.put(driver.device(device)?.pool)
    });

    fn cuDeviceSetMemPool(device: c_int, pool: Handle) = started(|driver| {
        if driver.pools.get(pool)?.device != device {
            return Err(Code::INVALID_VALUE);
        }
        driver.device_mut(device)?.pool = pool;
        Ok(())
    });

    fn cuMemPoolCreate(out: Out<Handle>, properties: In<PoolProperties>) = started(|driver| {
        let PoolProperties { kind, handles, location, device } = properties.get()?;
        if (kind, location) != PINNED_ON_DEVICE || handles != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        driver.device(device)?;
        out.put(driver.pools.insert(Pool::new(device)))
    });

    fn cuMemPoolDestroy(pool: Handle) = started(|driver| {
        let ordinal = driver.pools.get(pool)?.device;
        let device = driver.device_mut(ordinal)?;
        if device.default_pool == pool {
            return Err(Code::INVALID_VALUE);
        }
        if device.pool == pool {
            device.pool = device.default_pool;
        }
        driver.pools.remove(pool).map(|_| ())
    });

    fn cuMemPoolTrimTo(pool: Handle, keep: usize) = started(|driver| {
        let pool = driver.pools.get_mut(pool)?;
        pool.cached = pool.cached.min((keep as u64).saturating_sub(pool.used));
        Ok(())
    });

    fn cuMemPoolGetAttribute(pool: Handle, attribute: c_int, out: Out<c_void>) = started(|driver| {
        let pool = driver.pools.get(pool)?;
        match attribute {
            // Reuse across streams is a wish that is granted or not; every pool starts with it.
            1..=3 => out.of().put(1 as c_int),
            4 => out.of().put(pool.threshold),
            5 => out.of().put(pool.used + pool.cached),
            6 => out.of().put(pool.reserved_most),
            7 => out.of().put(pool.used),
            8 => out.of().put(pool.used_most),
            _ => Err(Code::INVALID_VALUE),
        }
    });

    fn cuMemPoolSetAttribute(pool: Handle, attribute: c_int, value: In<u64>) = started(|driver| {
        let pool = driver.pools.get_mut(pool)?;
        match attribute {
            4 => pool.threshold = value.get()?,
            // The two high-water marks can be set back to what is there now.
            6 if value.get()? == 0 => pool.reserved_most = pool.used + pool.cached,
            8 if value.get()? == 0 => pool.used_most = pool.used,
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    });
}
