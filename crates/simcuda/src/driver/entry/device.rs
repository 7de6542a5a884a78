//! Starting the driver, and what it says of the devices.

use std::ffi::{c_char, c_int, c_uint};

use crate::driver::codes::Code;
use crate::driver::{entered, started};

use super::args::{Out, Text};
use super::{described, entries};

/// As long as a UUID is.
type Uuid = [u8; 16];

fn uuid(ordinal: c_int) -> Uuid {
    let mut uuid = *b"simulated card 0";
    uuid[15] = uuid[15].wrapping_add(ordinal as u8);
    uuid
}

entries! {
    fn cuInit(flags: c_uint) = entered(|driver| {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        driver.start()
    });

    fn cuDriverGetVersion(out: Out<c_int>) = entered(|driver| out.put(driver.settings.driver));

    fn cuDeviceGetCount(out: Out<c_int>) = started(|driver| out.put(driver.devices.len() as c_int));

    fn cuDeviceGet(out: Out<c_int>, ordinal: c_int) = started(|driver| {
        driver.device(ordinal)?;
        out.put(ordinal)
    });

    fn cuDeviceGetName(out: Out<c_char>, room: c_int, device: c_int) = started(|driver| {
        let name = &driver.device(device)?.name;
        let room = usize::try_from(room).ok().filter(|room| *room > 0);
        let room = room.ok_or(Code::INVALID_VALUE)?;
        let mut name = name.as_bytes().to_vec();
        name.truncate(room - 1);
        name.push(0);
        out.put_all(name.into_iter().map(|byte| byte as c_char), room)
    });

    fn cuDeviceGetUuid(out: Out<Uuid>, device: c_int) = started(|driver| {
        driver.device(device)?;
        out.put(uuid(device))
    });

    fn cuDeviceGetUuid_v2(out: Out<Uuid>, device: c_int) = started(|driver| {
        driver.device(device)?;
        out.put(uuid(device))
    });

    fn cuDeviceTotalMem_v2(out: Out<usize>, device: c_int) = started(|driver| {
        out.put(driver.device(device)?.memory.total() as usize)
    });

    fn cuDeviceGetAttribute(out: Out<c_int>, attribute: c_int, device: c_int) = started(|driver| {
        let value = driver.device(device)?.attribute(attribute);
        out.put(value.ok_or(Code::INVALID_VALUE)?)
    });

    fn cuDeviceComputeCapability(major: Out<c_int>, minor: Out<c_int>, device: c_int) = started(|driver| {
        let capability = driver.device(device)?.capability;
        major.put(capability.0 as c_int)?;
        minor.put(capability.1 as c_int)
    });

    fn cuDeviceGetPCIBusId(out: Out<c_char>, room: c_int, device: c_int) = started(|driver| {
        driver.device(device)?;
        let text = format!("0000:{:02x}:00.0\0", device + 1);
        let room = usize::try_from(room).ok().filter(|room| *room >= text.len());
        let room = room.ok_or(Code::INVALID_VALUE)?;
        out.put_all(text.into_bytes().into_iter().map(|byte| byte as c_char), room)
    });

    fn cuDeviceGetByPCIBusId(out: Out<c_int>, text: Text) = started(|driver| {
        let bus = text.get()?.split(':').nth(1);
        let bus = bus.and_then(|bus| i32::from_str_radix(bus, 16).ok());
        let device = bus.ok_or(Code::INVALID_VALUE)? - 1;
        driver.device(device)?;
        out.put(device)
    });
}

// SAFETY: as for every entry point.
#[unsafe(no_mangle)]
extern "C" fn cuGetErrorName(code: c_int, out: Out<*const c_char>) -> c_int {
    described(code, false, out)
}

// SAFETY: as for every entry point.
#[unsafe(no_mangle)]
extern "C" fn cuGetErrorString(code: c_int, out: Out<*const c_char>) -> c_int {
    described(code, true, out)
}
