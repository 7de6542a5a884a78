//! One card: its context, its stream, its modules and its memory.
//!
//! Everything that the driver is asked for after the probe goes through this folder. A call that
//! fails in a way from which a context does not recover poisons the device: every later call gives
//! the same fault without asking the driver again.

mod event;
mod fault;
mod graph;
mod memory;
mod modules;
mod pinned;

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_int, c_uint};
use std::panic::catch_unwind;
use std::rc::Rc;

use cudarc::driver::sys::{self, CUresult};

use crate::codes;
use crate::driver;
use crate::launch::{Args, Grid, Kernel};
use crate::symbols::SYMBOLS;

pub(crate) use event::Event;
pub(crate) use fault::Fault;
pub(crate) use graph::Graph;
pub(crate) use pinned::Pinned;

/// A card in use. Belongs to the thread that opened it.
pub(crate) struct Device {
    device: sys::CUdevice,
    context: sys::CUcontext,
    stream: sys::CUstream,
    /// Compute capability.
    capability: (i32, i32),
    modules: RefCell<HashMap<String, sys::CUmodule>>,
    poison: RefCell<Option<Fault>>,
}

impl Device {
    /// Makes a context and a stream on a card. Only after the probe's child process has seen the
    /// driver behave.
    pub(crate) fn open(ordinal: usize) -> Result<Rc<Self>, Fault> {
        check_symbols()?;
        let device = start(ordinal)?;
        // A waiting thread sleeps, where the flags can still be set: else it would spin a whole
        // core of the user's machine. A context that another library made keeps its own.
        // SAFETY: the device was just got from the driver.
        let _ = unsafe {
            sys::cuDevicePrimaryCtxSetFlags_v2(
                device,
                sys::CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC as c_uint,
            )
        };
        let mut context = std::ptr::null_mut();
        // SAFETY: the pointer is valid for one handle.
        let code = unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut context, device) };
        succeeded("cuDevicePrimaryCtxRetain", code)?;
        let mut this = Self {
            device,
            context,
            stream: std::ptr::null_mut(),
            capability: (0, 0),
            modules: RefCell::default(),
            poison: RefCell::default(),
        };
        this.bind()?;
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as c_uint;
        // SAFETY: the pointer is valid for one handle, and the context is current.
        let code = unsafe { sys::cuStreamCreate(&raw mut this.stream, flags) };
        succeeded("cuStreamCreate", code)?;
        use sys::CUdevice_attribute as Attribute;
        this.capability = (
            this.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            this.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        Ok(Rc::new(this))
    }

    /// Makes the context the thread's own. Called where work of a session begins: another card's
    /// session may have run on this thread in between.
    pub(crate) fn bind(&self) -> Result<(), Fault> {
        self.healthy()?;
        // SAFETY: the context is retained as long as this value lives.
        self.checked("cuCtxSetCurrent", unsafe {
            sys::cuCtxSetCurrent(self.context)
        })
    }

    /// Compute capability.
    pub(crate) fn capability(&self) -> (i32, i32) {
        self.capability
    }

    /// Enqueues a kernel.
    pub(crate) fn launch(&self, kernel: &Kernel, grid: Grid, mut args: Args) -> Result<(), Fault> {
        self.healthy()?;
        let (mut pointers, _) = args.pointers();
        let [x, y, z] = grid.blocks;
        // SAFETY: the function belongs to a module of this device, which lives as long as it. The
        // pointers lead to the parameters in `args`, which the driver copies before it returns.
        // That they are those of the kernel is the business of each operation's file, and of its
        // tests over the simulated driver, which checks every access.
        let code = unsafe {
            sys::cuLaunchKernel(
                kernel.function,
                x,
                y,
                z,
                grid.threads,
                1,
                1,
                grid.shared_bytes,
                self.stream,
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        match code {
            CUresult::CUDA_SUCCESS => Ok(()),
            code => Err(self.fault(kernel.name, code)),
        }
    }

    /// Waits for everything that was enqueued.
    pub(crate) fn synchronize(&self) -> Result<(), Fault> {
        self.healthy()?;
        // SAFETY: the stream lives as long as this value.
        self.checked("cuStreamSynchronize", unsafe {
            sys::cuStreamSynchronize(self.stream)
        })
    }

    /// The fault after which nothing works any more.
    fn healthy(&self) -> Result<(), Fault> {
        match &*self.poison.borrow() {
            Some(fault) => Err(fault.clone()),
            None => Ok(()),
        }
    }

    fn checked(&self, call: &'static str, code: CUresult) -> Result<(), Fault> {
        match code {
            CUresult::CUDA_SUCCESS => Ok(()),
            code => Err(self.fault(call, code)),
        }
    }

    /// What a failed call becomes; remembered if the device is lost by it.
    fn fault(&self, call: &'static str, code: CUresult) -> Fault {
        let fault = Fault::of(call, code);
        if codes::is_sticky(code as u32) {
            *self.poison.borrow_mut() = Some(fault.clone());
        }
        fault
    }

    fn attribute(&self, attribute: sys::CUdevice_attribute) -> Result<i32, Fault> {
        let mut value = 0;
        // SAFETY: the pointer is valid for one int, and the device exists.
        let code = unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, self.device) };
        self.checked("cuDeviceGetAttribute", code)?;
        Ok(value)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // Nobody is left who could hear of a failure, and a lost context frees all by itself.
        // SAFETY: everything that was made on this device holds it, so nothing of it is in use;
        // each handle is given back once.
        unsafe {
            let _ = sys::cuCtxSetCurrent(self.context);
            for module in self.modules.borrow().values() {
                let _ = sys::cuModuleUnload(*module);
            }
            if !self.stream.is_null() {
                let _ = sys::cuStreamDestroy_v2(self.stream);
            }
            let _ = sys::cuDevicePrimaryCtxRelease_v2(self.device);
        }
    }
}

fn succeeded(call: &'static str, code: CUresult) -> Result<(), Fault> {
    match code {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(Fault::of(call, code)),
    }
}

/// Looks every function up once: from here on no call can panic for a missing one.
fn check_symbols() -> Result<(), Fault> {
    let missing = catch_unwind(|| {
        preload();
        // SAFETY: loads the driver's library, which the probe's child process has done before.
        let library = unsafe { sys::culib() };
        SYMBOLS.iter().find(|name| {
            // SAFETY: only whether it is there is asked.
            unsafe { library.get::<*const ()>(name.as_bytes()) }.is_err()
        })
    });
    let reason = match missing {
        Ok(None) => return Ok(()),
        Ok(Some(name)) => format!("the driver lacks {name}"),
        Err(_) => String::from("the driver's library does not load"),
    };
    Err(Fault::Lost { reason })
}

/// Loads the library from where the probe found it, if cudarc would not look there: it then finds it
/// by its name.
fn preload() {
    // SAFETY: only asks the loader for the driver's library by its names.
    if !unsafe { sys::is_culib_present() } {
        driver::preload();
    }
}

fn start(ordinal: usize) -> Result<sys::CUdevice, Fault> {
    // SAFETY: takes only flags, which have to be zero.
    succeeded("cuInit", unsafe { sys::cuInit(0) })?;
    let mut device = 0;
    let ordinal = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
    // SAFETY: the pointer is valid for one int.
    succeeded("cuDeviceGet", unsafe {
        sys::cuDeviceGet(&raw mut device, ordinal)
    })?;
    Ok(device)
}
