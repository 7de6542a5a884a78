//! Modules and functions.

use std::ffi::{c_int, c_uint};

use crate::driver::codes::Code;
use crate::driver::{Driver, Handle, Outcome, current};

use super::args::{In, Out, Text, host_bytes_mut};
use super::entries;

/// `CU_JIT_INFO_LOG_BUFFER` and what follows it: the two logs, each with its size in bytes.
const INFO_LOG: c_int = 3;
const INFO_LOG_BYTES: c_int = 4;
const ERROR_LOG_BYTES: c_int = 6;

/// `CU_JIT_NUM_OPTIONS` of CUDA 12.0.
const OPTIONS_END: c_int = 34;

/// Where the compiler's messages go.
#[derive(Default)]
struct Logs {
    info: Option<(usize, usize)>,
    error: Option<(usize, usize)>,
    /// Which of the option values are sizes, to be set to what was written.
    sizes: [Option<usize>; 2],
}

impl Logs {
    fn read(count: c_uint, options: &In<c_int>, values: &In<usize>) -> Outcome<Self> {
        let mut found = [None; 4];
        let mut sizes = [None; 2];
        for place in 0..count as usize {
            let (option, value) = (options.at(place)?, values.at(place)?);
            match option {
                INFO_LOG..=ERROR_LOG_BYTES => found[(option - INFO_LOG) as usize] = Some(value),
                0..OPTIONS_END => {}
                _ => return Err(Code::INVALID_VALUE),
            }
            match option {
                INFO_LOG_BYTES => sizes[0] = Some(place),
                ERROR_LOG_BYTES => sizes[1] = Some(place),
                _ => {}
            }
        }
        let [info, info_room, error, error_room] = found;
        Ok(Self {
            info: info.zip(info_room),
            error: error.zip(error_room),
            sizes,
        })
    }

    /// Writes a text with a zero byte behind it, and tells how many bytes that were.
    fn write(log: Option<(usize, usize)>, text: &str) -> Outcome<usize> {
        let Some((address, room)) = log.filter(|(_, room)| *room > 0) else {
            return Ok(0);
        };
        let len = text.len().min(room - 1);
        let to = host_bytes_mut(address, len + 1)?;
        to[..len].copy_from_slice(&text.as_bytes()[..len]);
        to[len] = 0;
        Ok(len + 1)
    }
}

fn load(
    driver: &mut Driver,
    context: Handle,
    image: &Text,
    logs: &Logs,
) -> Outcome<(Handle, [usize; 2])> {
    driver.may_wait()?;
    let text = image.get().map_err(|_| Code::INVALID_IMAGE)?;
    match driver.load_module(context, text) {
        Ok(module) => {
            let info = Logs::write(logs.info, "simulated: nothing was translated")?;
            Ok((module, [info, Logs::write(logs.error, "")?]))
        }
        Err(refused) => {
            Logs::write(logs.info, "")?;
            Logs::write(logs.error, &refused.log)?;
            Err(refused.code)
        }
    }
}

entries! {
    fn cuModuleLoadData(out: Out<Handle>, image: Text) = current(|driver, context| {
        let (module, _) = load(driver, context, &image, &Logs::default())?;
        out.put(module)
    });

    fn cuModuleLoadDataEx(
        out: Out<Handle>,
        image: Text,
        count: c_uint,
        options: In<c_int>,
        values: In<usize>,
    ) = current(|driver, context| {
        let logs = Logs::read(count, &options, &values)?;
        let (module, written) = load(driver, context, &image, &logs)?;
        for (place, written) in logs.sizes.iter().zip(written) {
            if let Some(place) = place {
                values.set(*place, written)?;
            }
        }
        out.put(module)
    });

    fn cuModuleLoad(out: Out<Handle>, path: Text) = current(|driver, context| {
        driver.may_wait()?;
        let text = std::fs::read_to_string(path.get()?).map_err(|_| Code::FILE_NOT_FOUND)?;
        out.put(driver.load_module(context, &text).map_err(|refused| refused.code)?)
    });

    fn cuModuleUnload(module: Handle) = current(|driver, _| {
        driver.may_wait()?;
        driver.unload_module(module)
    });

    fn cuModuleGetFunction(out: Out<Handle>, module: Handle, name: Text) = current(|driver, _| {
        out.put(driver.function(module, name.get()?)?)
    });

    fn cuModuleGetGlobal_v2(address: Out<u64>, bytes: Out<usize>, module: Handle, name: Text) = current(|driver, _| {
        let (start, size) = driver.global(module, name.get()?)?;
        address.put_if_wanted(start)?;
        bytes.put_if_wanted(size as usize)
    });

    fn cuFuncGetModule(out: Out<Handle>, function: Handle) = current(|driver, _| {
        out.put(driver.functions.get(function)?.module)
    });

    fn cuFuncGetAttribute(out: Out<c_int>, attribute: c_int, function: Handle) = current(|driver, _| {
        out.put(driver.function_attribute(function, attribute)?)
    });

    fn cuFuncSetAttribute(function: Handle, attribute: c_int, value: c_int) = current(|driver, _| {
        driver.set_function_attribute(function, attribute, value)
    });

    // A preference that a card may leave unheeded.
    fn cuFuncSetCacheConfig(function: Handle, config: c_int) = current(|driver, _| {
        driver.functions.get(function)?;
        if (0..4).contains(&config) { Ok(()) } else { Err(Code::INVALID_VALUE) }
    });
}
