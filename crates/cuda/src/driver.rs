//! The calls into the driver by which it is looked at. They run in the child process only: any of
//! them may hang or crash.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use libloading::Library;

use crate::answer::{Answer, CAPABILITY_NEEDED, CUDA_VERSION_NEEDED, CudaDevice};
use crate::symbols::SYMBOLS;

/// Where the driver's library is looked for, in this order. The last is where Windows puts it for
/// Linux programs, which not every distribution's loader searches.
#[cfg(not(windows))]
const LIBRARIES: [&str; 3] = [
    "libcuda.so.1",
    "libcuda.so",
    "/usr/lib/wsl/lib/libcuda.so.1",
];
#[cfg(windows)]
const LIBRARIES: [&str; 1] = ["nvcuda.dll"];

/// Longest device name that is read; NVIDIA's own programs use this length.
const NAME_BYTES: usize = 256;

/// `CUresult` of a machine without a card.
const NO_DEVICE: c_int = 100;

// On Windows the driver's functions are `stdcall`, which `extern "system"` is there and the C
// convention elsewhere.
type CuInit = unsafe extern "system" fn(flags: c_uint) -> c_int;
type CuDriverGetVersion = unsafe extern "system" fn(version: *mut c_int) -> c_int;
type CuDeviceGetCount = unsafe extern "system" fn(count: *mut c_int) -> c_int;
type CuDeviceGet = unsafe extern "system" fn(device: *mut c_int, ordinal: c_int) -> c_int;
type CuDeviceGetName =
    unsafe extern "system" fn(name: *mut c_char, len: c_int, device: c_int) -> c_int;
type CuDeviceGetAttribute =
    unsafe extern "system" fn(value: *mut c_int, attribute: c_int, device: c_int) -> c_int;
type CuDevicePrimaryCtxRetain =
    unsafe extern "system" fn(context: *mut *mut c_void, device: c_int) -> c_int;
type CuDevicePrimaryCtxRelease = unsafe extern "system" fn(device: c_int) -> c_int;
type CuCtxSetCurrent = unsafe extern "system" fn(context: *mut c_void) -> c_int;
type CuMemGetInfo = unsafe extern "system" fn(free: *mut usize, total: *mut usize) -> c_int;

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`.
const CAPABILITY: [c_int; 2] = [75, 76];

/// Looks at the driver of this machine.
pub(crate) fn look() -> Answer {
    let answer = open().and_then(|library| {
        let answer = ask(&library);
        // Unloading a driver that is in an unknown state may crash; the process ends soon anyway.
        std::mem::forget(library);
        answer
    });
    answer.unwrap_or_else(|refusal| refusal)
}

/// Loads the library for good, in a process that is going to use it. Whether that succeeded shows
/// when it is used.
pub(crate) fn preload() {
    if let Ok(library) = open() {
        // It stays: unloading it while it is in use would crash.
        std::mem::forget(library);
    }
}

fn open() -> Result<Library, Answer> {
    let mut refusal = Answer::NoDriver;
    for name in LIBRARIES {
        // SAFETY: loading runs the library's initialisers. It is NVIDIA's driver by its
        // well-known name, and this process exists only to see whether it behaves.
        match unsafe { Library::new(name) } {
            Ok(library) => return Ok(library),
            Err(error) => {
                if let Some(message) = more_than_absent(name, &error) {
                    refusal = Answer::DoesNotLoad { message };
                }
            }
        }
    }
    Err(refusal)
}

/// The loader's message, unless it only says that the library is not there. Loaders have no code
/// for that. A library that is there but misses another one is named at the start of the message
/// by the missing one's name.
fn more_than_absent(name: &str, error: &libloading::Error) -> Option<String> {
    let message = match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    };
    let absent = message.starts_with(name) && message.contains("No such file")
        || message.contains("os error 126")
        || message.contains("image not found")
        || message.contains("no such file");
    (!absent).then_some(message)
}

fn ask(library: &Library) -> Result<Answer, Answer> {
    let version = version(library)?;
    if version < CUDA_VERSION_NEEDED {
        return Ok(Answer::TooOld { version });
    }
    // SAFETY: the type is that of `cuInit` in NVIDIA's driver interface.
    let init = unsafe { function::<CuInit>(library, "cuInit") }?;
    // SAFETY: `cuInit` takes only flags, which have to be zero.
    match unsafe { init(0) } {
        0 => {}
        NO_DEVICE => return Ok(Answer::NoDevice),
        code => return Err(failed("cuInit", code)),
    }
    let n_cards = count(library)?;
    if n_cards < 1 {
        return Ok(Answer::NoDevice);
    }
    for name in SYMBOLS {
        // SAFETY: only whether it is there is asked.
        unsafe { function::<*const ()>(library, name) }?;
    }
    let mut devices = Vec::new();
    let mut refusal = Answer::NoDevice;
    for ordinal in 0..n_cards {
        match card(library, ordinal, version) {
            Ok(device) => devices.push(device),
            Err(answer) => refusal = answer,
        }
    }
    if devices.is_empty() {
        return Ok(refusal);
    }
    Ok(Answer::Devices { devices })
}

/// Looks at one card; makes a context on it, since one that cannot be made is of no use.
fn card(library: &Library, ordinal: c_int, driver_version: c_int) -> Result<CudaDevice, Answer> {
    // SAFETY: the type is that of `cuDeviceGet` in NVIDIA's driver interface.
    let get = unsafe { function::<CuDeviceGet>(library, "cuDeviceGet") }?;
    let mut device = 0;
    // SAFETY: the pointer is valid for one int, and the card exists as the count said.
    let code = unsafe { get(&raw mut device, ordinal) };
    succeeded("cuDeviceGet", code)?;
    let name = name(library, device)?;
    let capability = (
        attribute(library, device, CAPABILITY[0])?,
        attribute(library, device, CAPABILITY[1])?,
    );
    if capability < CAPABILITY_NEEDED {
        return Err(Answer::CardTooOld { name, capability });
    }
    let (free_bytes, total_bytes) = memory(library, device)?;
    Ok(CudaDevice {
        ordinal: usize::try_from(ordinal).unwrap_or(0),
        name,
        capability,
        total_bytes,
        free_bytes,
        driver_version,
    })
}

fn attribute(library: &Library, device: c_int, attribute: c_int) -> Result<c_int, Answer> {
    let call = "cuDeviceGetAttribute";
    // SAFETY: the type is that of this function in NVIDIA's driver interface.
    let get = unsafe { function::<CuDeviceGetAttribute>(library, call) }?;
    let mut value = 0;
    // SAFETY: the pointer is valid for one int, and the device was just got.
    let code = unsafe { get(&raw mut value, attribute, device) };
    succeeded(call, code).map(|()| value)
}

/// Free and all memory of a card.
fn memory(library: &Library, device: c_int) -> Result<(u64, u64), Answer> {
    // SAFETY: the types are those of these functions in NVIDIA's driver interface.
    let (retain, release, set_current, info) = unsafe {
        (
            function::<CuDevicePrimaryCtxRetain>(library, "cuDevicePrimaryCtxRetain")?,
            function::<CuDevicePrimaryCtxRelease>(library, "cuDevicePrimaryCtxRelease_v2")?,
            function::<CuCtxSetCurrent>(library, "cuCtxSetCurrent")?,
            function::<CuMemGetInfo>(library, "cuMemGetInfo_v2")?,
        )
    };
    let mut context = std::ptr::null_mut();
    // SAFETY: the pointer is valid for one handle, and the device was just got.
    let code = unsafe { retain(&raw mut context, device) };
    succeeded("cuDevicePrimaryCtxRetain", code)?;
    let (mut free, mut total) = (0, 0);
    // SAFETY: the context was just made; both pointers are valid for one size.
    let code = unsafe {
        match set_current(context) {
            0 => info(&raw mut free, &raw mut total),
            code => code,
        }
    };
    // SAFETY: the context is given back once. A failure changes nothing: the process ends soon.
    let _ = unsafe { release(device) };
    succeeded("cuMemGetInfo", code)?;
    Ok((free as u64, total as u64))
}

fn version(library: &Library) -> Result<i32, Answer> {
    // SAFETY: the type is that of `cuDriverGetVersion` in NVIDIA's driver interface.
    let get = unsafe { function::<CuDriverGetVersion>(library, "cuDriverGetVersion") }?;
    let mut version = 0;
    // SAFETY: the pointer is valid for one int, which is what the function writes; it may be
    // called before `cuInit`.
    let code = unsafe { get(&raw mut version) };
    succeeded("cuDriverGetVersion", code)?;
    Ok(version)
}

fn count(library: &Library) -> Result<i32, Answer> {
    // SAFETY: the type is that of `cuDeviceGetCount` in NVIDIA's driver interface.
    let get = unsafe { function::<CuDeviceGetCount>(library, "cuDeviceGetCount") }?;
    let mut count = 0;
    // SAFETY: the pointer is valid for one int; `cuInit` succeeded before.
    match unsafe { get(&raw mut count) } {
        NO_DEVICE => Ok(0),
        code => succeeded("cuDeviceGetCount", code).map(|()| count),
    }
}

fn name(library: &Library, device: c_int) -> Result<String, Answer> {
    // SAFETY: the type is that of `cuDeviceGetName` in NVIDIA's driver interface.
    let get_name = unsafe { function::<CuDeviceGetName>(library, "cuDeviceGetName") }?;
    let mut name = [0_u8; NAME_BYTES];
    // One byte less than there is, so that the last stays the end whatever the driver does.
    let len = (NAME_BYTES - 1) as c_int;
    // SAFETY: the buffer has more bytes than the length says, and the device was just got.
    let code = unsafe { get_name(name.as_mut_ptr().cast(), len, device) };
    succeeded("cuDeviceGetName", code)?;
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    Ok(name.to_string_lossy().trim().to_owned())
}

/// A function of the library.
///
/// # Safety
/// `F` has to be the function's type.
unsafe fn function<F: Copy>(library: &Library, name: &str) -> Result<F, Answer> {
    // SAFETY: the caller answers for the type; the pointer is used while the library is loaded,
    // because `look` never unloads it.
    let symbol = unsafe { library.get::<F>(name) };
    match symbol {
        Ok(symbol) => Ok(*symbol),
        Err(_) => Err(Answer::Incomplete {
            function: String::from(name),
        }),
    }
}

fn succeeded(call: &str, code: c_int) -> Result<(), Answer> {
    if code == 0 {
        Ok(())
    } else {
        Err(failed(call, code))
    }
}

fn failed(call: &str, code: c_int) -> Answer {
    Answer::Failed {
        call: String::from(call),
        code,
    }
}
